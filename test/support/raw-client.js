'use strict'

// A TCP client that says exactly what a test wants, where fetch is too well-behaved.

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
    socket.on('error', () => {}) // resets are what some tests are about
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

  /** `GET path` with a Host, and a body where one is given. */
  request (method, path, { body = '', headers = {} } = {}) {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join('')
    const length = body === '' ? '' : `content-length: ${Buffer.byteLength(body)}\r\n`
    return this.send(`${method} ${path} HTTP/1.1\r\nhost: shop.test\r\n${lines}${length}\r\n${body}`)
  }

  /** Waits until `pattern` was received, `count` times; answers all that was. */
  until (pattern, count = 1) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ holds: () => this.received.split(pattern).length > count, resolve, reject, pattern })
      this.#look()
    })
  }

  /** Leaves politely (FIN). */
  leave () {
    this.socket.destroy()
    return this.closed
  }

  /** Leaves with a reset (RST). */
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

/** A promise with its resolve, for "the handler is running now". */
function signal () {
  let resolve
  const promise = new Promise((_resolve) => { resolve = _resolve })
  return { promise, give: (value) => resolve({ value }) } // boxed: a reply is a thenable
}

/** A handler of `/:place`: once `count` requests are there it answers them in the order of their places, a turn of the event loop apart. */
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
