'use strict'

// Where Node itself says that a response has gone out: the channel `http.server.response.finish`. It costs less than half of
// what a listener of the response's `close` costs, but it speaks first, before any listener of `finish`. So it is for requests
// of which nothing can be learned from then on: those without a span, whose duration is counted. A response that never goes
// out is noticed by its connection's `close`, for which one listener a connection is enough.
//
// From Node 24 on: before, a response whose socket was reset with the answer still in it says that it has finished.

const { subscribe, unsubscribe } = require('node:diagnostics_channel')
const { isByParser } = require('./dispatch')

const CHANNEL = 'http.server.response.finish'

const isSupported = Number(process.versions.node.split('.')[0]) >= 24

const kConnection = Symbol('light-trace.connection')

/** What a connection is sending: one response at a time. All of it private: it hangs on a socket, which others print and compare. */
class Connection {
  #response = null
  #onClose = null

  constructor (socket) {
    // First: Node tells the response, and a listener of the application may then still answer.
    socket.prependListener('close', () => this.#brokenOff(socket))
  }

  watch (response, onClose) {
    if (this.#response !== null) return false
    this.#response = response
    this.#onClose = onClose
    return true
  }

  /** Something has gone out. */
  finished (response) {
    if (this.#response === null || this.#response !== response) return
    this.#response = null
    // Its error may still get a name, from a listener of `finish`, or in an onResponse hook.
    if (response.statusCode >= 500 || !response.writableFinished) response.on('close', this.#onClose)
    else this.#onClose.call(response)
  }

  /** A socket that the application has taken from its response is no request any more. */
  #brokenOff (socket) {
    const response = this.#response
    this.#response = null
    if (response !== null && response.socket === socket) this.#onClose.call(response)
  }
}

let listeners = 0

/** Of one application. Listens from its first request without a span until it is closed. */
class FinishedResponses {
  #isListening = false
  #isClosed = !isSupported

  /**
   * Calls `onClose` with the response as `this`, once, when it has gone out or is broken off. HOT, once per request without a
   * span where metrics are on.
   * @param {Function} handler the application's handler of requests
   * @returns {boolean} false where it cannot: listen to the response
   */
  watch (raw, response, handler, onClose) {
    // Each time: who else dispatches, even once on a connection, may give the handler a response of its own, of which Node does not tell.
    if (this.#isClosed || raw.httpVersionMajor !== 1 || !isByParser(raw, handler)) return false
    const { socket } = raw
    if (response.socket !== socket) return false // it waits for another one
    if (!this.#isListening) this.#listen()
    const connection = socket[kConnection]
    return (connection === undefined ? connectionOf(socket) : connection).watch(response, onClose)
  }

  #listen () {
    this.#isListening = true
    if (listeners++ === 0) subscribe(CHANNEL, onFinish)
  }

  close () {
    this.#isClosed = true
    if (!this.#isListening) return
    this.#isListening = false
    if (--listeners === 0) unsubscribe(CHANNEL, onFinish)
  }
}

function connectionOf (socket) {
  return (socket[kConnection] = new Connection(socket))
}

// HOT, once per response of this process where metrics are on and a request had no span. Anybody may publish anything there,
// and what is thrown here ends the process.
function onFinish (message) {
  const connection = message?.socket?.[kConnection]
  if (connection !== undefined) connection.finished(message.response)
}

module.exports = { FinishedResponses }
