'use strict'

// A slice of load: a fixed number of requests over connections that stay open from one slice to the next,
// so that nothing but the requests is in its figure. Raw sockets and whole batches: whoever sends must not
// be what is measured.

const net = require('node:net')
const { once } = require('node:events')

const HEAD_END = '\r\n\r\n'

const connectionsOf = new Map() // by port

module.exports = { runSlice, openSockets, batchOf, lengthOf }

async function runSlice ({ port, requests, connections, pipelining, path, headers = {}, answer }) {
  if (!connectionsOf.has(port)) connectionsOf.set(port, await connect(port, connections, batchOf({ path, headers, pipelining }), answer))
  const sockets = connectionsOf.get(port)
  const batches = Math.ceil(requests / (sockets.length * pipelining))
  const started = performance.now()
  await Promise.all(sockets.map((send) => send(batches)))
  return { requests: batches * sockets.length * pipelining, seconds: (performance.now() - started) / 1000 }
}

function batchOf ({ path, headers, pipelining }) {
  const lines = [`GET ${path} HTTP/1.1`, 'Host: localhost:3000', 'Connection: keep-alive', ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)]
  return { bytes: Buffer.from((lines.join('\r\n') + HEAD_END).repeat(pipelining)), requests: pipelining }
}

async function connect (port, connections, batch, answer) {
  return (await openSockets(port, connections)).map((socket) => sender(socket, batch, answer))
}

function openSockets (port, connections) {
  return Promise.all(Array.from({ length: connections }, async () => {
    const socket = net.connect(port, '127.0.0.1').setNoDelay(true)
    await once(socket, 'connect')
    return socket
  }))
}

// All answers of a route are of one length; the first one tells it.
function sender (socket, { bytes, requests }, answer) {
  let answerBytes = 0
  let got = 0
  let left = 0
  let isClosed = false
  let finish
  let fail
  socket.on('data', (chunk) => {
    if (answerBytes === 0) answerBytes = lengthOf(chunk, answer)
    got += chunk.length
    if (got < answerBytes * requests) return
    if (got > answerBytes * requests || !chunk.subarray(-answer.length).equals(answer)) return fail(new Error(`unexpected answer: ${chunk.subarray(-200)}`))
    got = 0
    if (--left > 0) socket.write(bytes)
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
    socket.write(bytes)
  })
}

function lengthOf (chunk, answer) {
  const at = chunk.indexOf(answer)
  if (at === -1 || !chunk.toString('latin1', 0, 15).startsWith('HTTP/1.1 200')) throw new Error(`unexpected answer: ${chunk.subarray(0, 200)}`)
  return at + answer.length
}
