'use strict'

// The life of one POST: whatever happens to it (an answer, half an answer, an early one, an endless one, a
// reset, silence) becomes exactly one outcome.

const { setInterval, clearInterval, setImmediate, wallNow } = require('./timers')
const { fateOf, isUnreachable, retryAfterMs } = require('./retry')
const { readPartialSuccess } = require('./response')
const { printable } = require('../config/printable')

// The specification asks for a limit and recommends this one.
const RESPONSE_BYTES_MAX = 4 * 1024 * 1024
// A partial success is some 300 bytes; of an error page we want the first words.
const RESPONSE_BYTES_READ = 64 * 1024

// The timeout is counted in ticks of a timer, not from clock to clock: while the loop was blocked or the
// laptop slept no tick was due, so that our own pause is not taken for the collector's.
const TICKS_PER_TIMEOUT = 8

const NOT_SENT = { code: 'ABORTED', message: 'the request was given up' }

class Outcome {
  constructor () {
    this.fate = 'retry' // 'delivered' | 'retry' | 'split' | 'refused'
    this.status = 0
    this.error = NOT_SENT // { code, message } where no answer came, null where one did
    this.isUnreachable = false
    this.retryAfterMs = -1
    this.partialSuccess = null
    this.isOversized = false // the answer was longer than we read
    this.wasResent = false // the collector may have had it twice
    this.isUploaded = false // no socket reads the body's memory any more
    this.message = '' // what the collector said about a failure
  }
}

class Attempt {
  #done
  #create
  #timer
  #ticks = 0
  #request = null
  #response = null
  #isHeld = false
  #received = []
  #receivedBytes = 0
  #outcome = new Outcome()

  constructor (timeoutMs, done) {
    this.#done = done
    this.#timer = setInterval(() => this.#tick(), Math.max(1, timeoutMs / TICKS_PER_TIMEOUT))
    this.#timer.unref()
  }

  // `create` makes the request and writes its body.
  start (create) {
    this.#create = create
    try {
      this.#listen(create())
    } catch (error) { // a header or path that Node refuses, or a permission that we lack
      this.#outcome.fate = isUnreachable(error) ? 'retry' : 'refused'
      process.nextTick(() => this.#settle(error))
    }
  }

  hold (isHeld) {
    this.#isHeld = isHeld
    this.#applyHold(this.#request?.socket)
    if (isHeld) this.#timer.ref()
    else this.#timer.unref()
  }

  abort (code) {
    this.#settle({ code, message: code === 'ETIMEDOUT' ? 'no answer in time' : NOT_SENT.message })
  }

  #listen (request) {
    this.#request = request
    request.on('socket', (socket) => {
      this.#applyHold(socket)
      // Each address that happy eyeballs tries gets a handle of its own, which starts out referenced.
      if (socket.connecting) socket.on('connectionAttempt', () => this.#applyHold(socket))
    })
    request.on('response', (response) => this.#onResponse(response))
    request.on('error', (error) => {
      if (!this.#resend(request, error)) this.#settle(error)
    })
    request.on('close', () => {
      if (request === this.#request) this.#settle({ code: 'ECONNRESET', message: 'closed without an answer' })
    })
  }

  // A kept connection that the server closed just as we used it: not a failure of the collector, so it
  // costs no wait. Once: a fresh connection cannot have this excuse.
  #resend (request, error) {
    if (!request.reusedSocket || this.#response !== null || this.#outcome.wasResent) return false
    if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') return false
    this.#outcome.wasResent = true
    this.start(this.#create)
    return true
  }

  #applyHold (socket) {
    if (!socket || socket.destroyed) return
    if (this.#isHeld) socket.ref()
    else socket.unref()
  }

  #onResponse (response) {
    const outcome = this.#outcome
    this.#response = response
    outcome.error = null
    outcome.status = response.statusCode
    outcome.fate = fateOf(response.statusCode)
    outcome.retryAfterMs = retryAfterMs(response.headers['retry-after'], wallNow())
    response.on('data', (bytes) => {
      if (this.#receivedBytes < RESPONSE_BYTES_READ) this.#received.push(bytes)
      this.#receivedBytes += bytes.length
      if (this.#receivedBytes > RESPONSE_BYTES_MAX) {
        outcome.isOversized = true
        this.#settle(null)
      } else if (this.#receivedBytes > RESPONSE_BYTES_READ) this.#pause(response)
    })
    // The status is known: whatever befalls the rest of the answer does not change what it means.
    response.on('error', () => this.#settle(null))
    response.on('end', () => this.#settle(null))
    response.on('close', () => this.#settle(null))
  }

  // A socket that has megabytes for us would be read for milliseconds on end: here it is one piece for each turn.
  #pause (response) {
    if (response.isPaused()) return
    response.pause()
    setImmediate(() => response.resume())
  }

  #tick () {
    if (++this.#ticks < TICKS_PER_TIMEOUT) return
    if (this.#response !== null) this.#settle(null)
    else this.abort('ETIMEDOUT')
  }

  #settle (error) {
    if (this.#timer === null) return
    clearInterval(this.#timer)
    this.#timer = null
    const outcome = this.#outcome
    const request = this.#request
    outcome.isUploaded = request !== null && request.writableFinished
    if (!outcome.isUploaded || !this.#response?.complete) request?.destroy()
    if (this.#response !== null) this.#readAnswer()
    else {
      outcome.error = { code: printable(error.code ?? error.name), message: printable(error.message) }
      outcome.isUnreachable = isUnreachable(error)
    }
    this.#request = this.#response = this.#create = null
    this.#done(outcome)
  }

  #readAnswer () {
    const outcome = this.#outcome
    const type = this.#response.headers['content-type'] ?? ''
    const bytes = Buffer.concat(this.#received)
    this.#received = []
    if (outcome.fate !== 'delivered') outcome.message = /^text\/plain|json/.test(type) ? printable(bytes.toString('latin1', 0, 1024)) : ''
    else if (!/json|html|text/.test(type)) outcome.partialSuccess = readPartialSuccess(bytes)
  }
}

module.exports = { Attempt, Outcome }
