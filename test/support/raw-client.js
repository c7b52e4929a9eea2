'use strict'

// A TCP client that sends exactly the bytes that a test wants, also those that fetch would not send.

const net = require('node:net')
const { once } = require('node:events')

/**
 * @param {number | string | object} where a port on 127.0.0.1, the path of a unix socket, or an open socket
 * @returns {Promise<RawClient>}
 */
async function connect (where) {
  const socket = typeof where === 'object' ? where : typeof where === 'number' ? net.connect(where, '127.0.0.1') : net.connect(where)
  const client = new RawClient(socket)
  if (socket.connecting) await once(socket, 'connect')
  return client
}

class RawClient {
  received = ''
  #waiting = []

  constructor (socket) {
    this.socket = socket
    socket.setEncoding('latin1')
    socket.on('error', () => {}) // some tests are about resets
    socket.on('data', (text) => {
      this.received += text
      this.#look()
    })
    this.closed = new Promise((resolve) => socket.on('close', resolve))
    this.closed.then(() => this.#look(true))
  }

  send (text) {
    this.socket.write(text)
    return this
  }

  /** Sends `GET path` with a Host header, and a body if one is given. */
  request (method, path, { body = '', headers = {} } = {}) {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join('')
    const length = body === '' ? '' : `content-length: ${Buffer.byteLength(body)}\r\n`
    return this.send(`${method} ${path} HTTP/1.1\r\nhost: shop.test\r\n${lines}${length}\r\n${body}`)
  }

  /** Waits until `pattern` was received `count` times. Resolves to all text that was received. */
  until (pattern, count = 1) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ holds: () => this.received.split(pattern).length > count, resolve, reject, pattern })
      this.#look()
    })
  }

  /** Closes the connection normally (FIN). */
  leave () {
    this.socket.destroy()
    return this.closed
  }

  /** Closes the connection with a reset (RST). */
  reset () {
    this.socket.resetAndDestroy()
    return this.closed
  }

  #look (ended = false) {
    this.#waiting = this.#waiting.filter((wait) => {
      if (wait.holds()) wait.resolve(this.received)
      else if (ended) wait.reject(new Error(`closed before ${wait.pattern} came: ${this.received}`))
      else return true
      return false
    })
  }
}

/** A promise and its resolve function, e.g. to signal that a handler is running. */
function signal () {
  let resolve
  const promise = new Promise((_resolve) => { resolve = _resolve })
  return { promise, give: (value) => resolve({ value }) } // boxed, because a reply is a thenable
}

/** A handler of `/:place`. When `count` requests have arrived, it answers them in the order of their places, one per turn of the event loop. */
function inOrder (count) {
  const waiting = []
  return async ({ params: { place } }) => {
    const mine = signal()
    waiting.push([place, mine])
    if (waiting.length === count) answerInTurn(waiting.splice(0).sort(([a], [b]) => a - b))
    await mine.promise
    return `as ${place}.`
  }
}

async function answerInTurn (waiting) {
  for (const [, { give }] of waiting) {
    give()
    await new Promise((resolve) => setImmediate(resolve))
  }
}

module.exports = { connect, signal, inOrder }
