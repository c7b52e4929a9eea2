'use strict'

// A slice of load: a fixed number of requests over connections that stay open from one slice to the next, so that its figure contains
// nothing but the requests. It writes whole batches to raw sockets, so that the sender is not what is measured. With `isFresh`, each
// request has its own connection, one after the other.
//
// Placeholders in the path, headers and body: {n} is a number that never repeats, {t} one of four that take turns, {h} one of a hundred,
// {ip} an address that repeats after a million requests.

const net = require('node:net')
const { once } = require('node:events')

const HEAD_END = '\r\n\r\n'
const TURNS = 4
const PLACES = { // of fixed length, so that nothing in the batch moves
  '{n}': (n) => String(n).padStart(8, '0'),
  '{t}': (n) => String(n % TURNS),
  '{h}': twoDigits,
  '{ip}': (n) => `10.1${twoDigits(n / 10000)}.1${twoDigits(n / 100)}.1${twoDigits(n)}`
}

const PLACE = /(\{n\}|\{t\}|\{h\}|\{ip\})/g

const connectionsOf = new Map() // by port

module.exports = { runSlice, openSockets, batchOf, lengthOf }

async function runSlice ({ port, requests, connections, pipelining, status = 200, answer, isFresh = false, ...request }) {
  if (!connectionsOf.has(port)) connectionsOf.set(port, await connect(port, connections, { batch: batchOf({ ...request, pipelining, isFresh }), status, answer, isFresh }))
  const sockets = connectionsOf.get(port)
  const batches = Math.ceil(requests / (sockets.length * pipelining))
  const started = performance.now()
  await Promise.all(sockets.map((send) => send(batches)))
  return { requests: batches * sockets.length * pipelining, seconds: (performance.now() - started) / 1000 }
}

function batchOf ({ method = 'GET', path, headers, body = '', pipelining, isFresh = false }) {
  const all = { Host: 'localhost:3000', Connection: isFresh ? 'close' : 'keep-alive', ...headers, ...body !== '' && { 'Content-Length': body.replaceAll(PLACE, (place) => PLACES[place](0)).length } }
  const lines = [`${method} ${path} HTTP/1.1`, ...Object.entries(all).map(([name, value]) => `${name}: ${value}`)]
  const places = []
  const text = (lines.join('\r\n') + HEAD_END + body).repeat(pipelining)
  let bytes = ''
  for (const part of text.split(PLACE)) {
    if (part in PLACES) places.push({ at: bytes.length, valueOf: PLACES[part] })
    bytes += part in PLACES ? PLACES[part](0) : part
  }
  return { bytes: Buffer.from(bytes), requests: pipelining, places, sent: 0 }
}

function twoDigits (n) {
  return String(Math.floor(n) % 100).padStart(2, '0')
}

/** Returns the bytes of the next batch. The buffer is reused for the batch after it. */
function nextOf (batch) {
  const n = batch.sent++
  for (const { at, valueOf } of batch.places) batch.bytes.write(valueOf(n), at)
  return batch.bytes
}

async function connect (port, connections, what) {
  if (what.isFresh) return Array.from({ length: connections }, () => freshSender(port, what))
  return (await openSockets(port, connections)).map((socket) => sender(socket, { ...what, batch: { ...what.batch, bytes: Buffer.from(what.batch.bytes) } }))
}

function openSockets (port, connections) {
  return Promise.all(Array.from({ length: connections }, async () => {
    const socket = net.connect(port, '127.0.0.1').setNoDelay(true)
    await once(socket, 'connect')
    return socket
  }))
}

// All responses of a route have the same length, which is taken from the first one.
function sender (socket, { batch, status, answer }) {
  const { requests } = batch
  let answerBytes = 0
  let got = 0
  let left = 0
  let isClosed = false
  let finish
  let fail
  socket.on('data', (chunk) => {
    if (answerBytes === 0) answerBytes = lengthOf(chunk, answer, status)
    got += chunk.length
    if (got < answerBytes * requests) return
    if (got > answerBytes * requests || !chunk.subarray(-answer.length).equals(answer)) return fail(new Error(`unexpected response: ${chunk.subarray(-200)}`))
    got = 0
    if (--left > 0) socket.write(nextOf(batch))
    else finish()
  })
  socket.on('close', () => {
    isClosed = true
    fail?.(new Error('the server closed a connection'))
  })
  return (batches) => new Promise((resolve, reject) => {
    if (isClosed) throw new Error('the server closed a connection between two slices')
    left = batches
    finish = resolve
    fail = reject
    socket.write(nextOf(batch))
  })
}

/** Sends each request over its own connection, which the server closes after the response. */
function freshSender (port, { batch, status, answer, isFresh }) {
  return async (batches) => {
    for (let i = 0; i < batches; i++) {
      const localAddress = isFresh === 'elsewhere' ? elsewhere(batch.sent) : undefined
      const socket = net.connect({ port, host: '127.0.0.1', localAddress }).setNoDelay(true)
      const chunks = []
      socket.write(nextOf(batch))
      for await (const chunk of socket) chunks.push(chunk)
      const whole = Buffer.concat(chunks)
      if (lengthOf(whole, answer, status) !== whole.length) throw new Error(`unexpected response: ${whole.subarray(-200)}`)
    }
  }
}

/** Returns a loopback address. Addresses repeat after a million connections. */
function elsewhere (n) {
  return `127.1${twoDigits(n / 10000)}.1${twoDigits(n / 100)}.1${twoDigits(n)}`
}

function lengthOf (chunk, answer, status = 200) {
  const at = chunk.indexOf(answer)
  if (at === -1 || !chunk.toString('latin1', 0, 15).startsWith(`HTTP/1.1 ${status}`)) throw new Error(`unexpected response: ${chunk.subarray(0, 200)}`)
  return at + answer.length
}
