'use strict'

// Sends requests to one app over raw sockets at a fixed rate. A request's latency counts from when it was due, so a blocked loop shows
// in every request that it delayed. Each response is compared with the expected one, byte for byte.

const net = require('node:net')
const { once } = require('node:events')

const CONNECTIONS = 20
const TICK_MS = 1
// The only part of a response that may differ.
const DATE = /\r\nDate: [^\r]*/

class Client {
  wrong = 0
  answered = 0
  #idle = []
  #sockets = []
  #due = [] // due times of the requests that have no connection yet
  #requests
  #latencies = []
  #turn = 0
  #onSettled = null
  #left = 0

  // requests: [{ bytes, answer: Buffer without its Date, length: including the Date }]
  constructor (requests) {
    this.#requests = requests
  }

  async connect (port) {
    for (let i = 0; i < CONNECTIONS; i++) {
      const socket = net.connect(port, '127.0.0.1').setNoDelay(true)
      await once(socket, 'connect')
      const connection = { socket, request: null, dueAt: 0, parts: [], byteLength: 0 }
      socket.on('data', (bytes) => this.#onData(connection, bytes))
      socket.on('error', () => {})
      socket.on('close', () => this.#onClose(connection))
      this.#sockets.push(socket)
      this.#idle.push(connection)
    }
  }

  // → latencies in ms
  run (ms, perSecond) {
    const count = Math.round(ms * perSecond / 1000)
    const startedAt = performance.now()
    this.#latencies = []
    this.#left = count
    let sent = 0
    const timer = setInterval(() => {
      const due = Math.min(count, Math.floor((performance.now() - startedAt) * perSecond / 1000))
      for (; sent < due; sent++) this.#due.push(startedAt + sent * 1000 / perSecond)
      this.#send()
      if (sent === count) clearInterval(timer)
    }, TICK_MS)
    return new Promise((resolve) => { this.#onSettled = resolve })
  }

  close () {
    for (const socket of this.#sockets) socket.removeAllListeners('close').destroy()
  }

  #send () {
    while (this.#due.length > 0 && this.#idle.length > 0) {
      const connection = this.#idle.pop()
      connection.dueAt = this.#due.shift()
      connection.request = this.#requests[this.#turn++ % this.#requests.length]
      connection.socket.write(connection.request.bytes)
    }
  }

  #onData (connection, bytes) {
    connection.byteLength += bytes.length
    connection.parts.push(bytes)
    if (connection.request === null || connection.byteLength < connection.request.length) return
    const answer = Buffer.concat(connection.parts.splice(0))
    this.#settle(connection, answerOf(answer).equals(connection.request.answer))
    this.#idle.push(connection)
    this.#send()
  }

  #settle (connection, isRight) {
    this.#latencies.push(performance.now() - connection.dueAt)
    connection.request = null
    connection.byteLength = 0
    this.answered++
    if (!isRight) this.wrong++
    if (--this.#left === 0) this.#onSettled(this.#latencies)
  }

  #onClose (connection) {
    if (connection.request !== null) this.#settle(connection, false)
  }
}

function answerOf (bytes) {
  return Buffer.from(bytes.toString('latin1').replace(DATE, ''), 'latin1')
}

module.exports = { Client, answerOf }
