'use strict'

// The life of one POST: whatever happens to it (an answer, half of one, an endless one, a reset, silence) becomes one outcome.

const { setInterval, clearInterval, monotonicNow, wallNow } = require('../../runtime/timers')
const { isUnreachable } = require('./retry')
const { HttpResponse } = require('./response')
const { readAnswer } = require('./answer')
const { printable } = require('../../runtime/report')

// The timeout is counted in ticks of a timer, of which none is due while the loop is blocked or the laptop sleeps.
const TICKS_PER_TIMEOUT = 8

// A connection that was idle while the process was frozen may have died without a word.
const STALE_MS = 500

const MESSAGES = { ABORTED: 'the request was given up', ETIMEDOUT: 'no answer in time' }

class Outcome {
  disposition = 'retry' // 'delivered' | 'retry' | 'split' | 'refused' | 'misdirected': a success that is not OTLP's
  status = 0
  error = { code: 'ABORTED', message: MESSAGES.ABORTED } // null if an answer came
  isUnreachable = false
  retryAfterMs = -1
  format = '' // of the answer, see answer.js
  partialSuccess = null
  wasResent = false // the collector may have had it twice
  isUploaded = false // no socket reads the body's memory any more
  message = '' // what the collector said about a failure
}

/** One request and its answer. A Connection calls the methods onReady, onData, onEnd and onClosed. */
class Attempt {
  #message
  #secrets
  #done
  #timer
  #withConnection
  #ticks = 0
  #startedAt = monotonicNow()
  #connection = null
  #response = new HttpResponse()
  #isHeld = false
  #outcome = new Outcome()

  // `message`: the head as text, then parts of the body. `secrets`: see secrets.js. withConnection(use) calls use(connection)
  // once, in this turn or later.
  constructor (message, timeoutMs, secrets, withConnection, done) {
    this.#message = message
    this.#secrets = secrets
    this.#withConnection = withConnection
    this.#done = done
    this.#timer = setInterval(() => {
      if (++this.#ticks === TICKS_PER_TIMEOUT) this.abort('ETIMEDOUT')
    }, Math.max(1, timeoutMs / TICKS_PER_TIMEOUT))
    this.#timer.unref()
  }

  start () {
    this.#withConnection((connection) => {
      this.#connection = connection
      connection.hold(this.#isHeld)
      connection.serve(this)
    })
  }

  hold (isHeld) {
    this.#isHeld = isHeld
    this.#connection?.hold(isHeld)
    if (isHeld) this.#timer.ref()
    else this.#timer.unref()
  }

  // Sends anew, over a new connection, what has no answer over one that was kept.
  resendIfStale () {
    if (this.#connection !== null && this.#mayResend && this.#response.status === 0 && monotonicNow() - this.#startedAt >= STALE_MS) {
      this.#resend()
    }
  }

  abort (code) { this.#complete({ code, message: MESSAGES[code] }) }

  onReady () {
    this.#connection.write(this.#message, () => { this.#outcome.isUploaded = true })
  }

  onData (bytes) {
    try {
      this.#response.push(bytes)
    } catch (error) {
      this.#complete(error)
      return
    }
    this.#completeIfOver()
  }

  onEnd () {
    this.#response.end()
    this.#completeIfOver()
  }

  onClosed (error) {
    const wasIdle = this.#response.status === 0 && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
    if (wasIdle && this.#mayResend) this.#resend()
    else this.#complete(error)
  }

  #completeIfOver () {
    if (!this.#response.isOver) return
    // Some servers end an idle connection with 408 (RFC 9110, 15.5.9).
    if (this.#response.status === 408 && this.#mayResend) this.#resend()
    else this.#complete(null)
  }

  // A kept connection that the server closed just as we used it is no failure of the collector, so it costs no wait. Once.
  get #mayResend () { return this.#connection.wasUsed && !this.#outcome.wasResent }

  #resend () {
    this.#connection.destroy()
    this.#connection = null
    this.#response = new HttpResponse()
    this.#outcome.isUploaded = false
    this.#outcome.wasResent = true
    this.start()
  }

  // Once the status is known, no later failure of the connection changes what it means.
  #complete (error) {
    if (this.#timer === null) return
    clearInterval(this.#timer)
    this.#timer = null
    const outcome = this.#outcome
    const response = this.#response
    if (outcome.isUploaded && response.isComplete && response.isKeptAlive) this.#connection.release()
    else this.#connection?.destroy()
    if (response.status !== 0) Object.assign(outcome, readAnswer(response, wallNow(), this.#secrets))
    else readError(error, outcome)
    this.#connection = this.#response = this.#message = this.#withConnection = null
    this.#done(outcome)
  }
}

// If several addresses were tried (happy eyeballs) the error of all has neither message nor a code of its own.
function readError (error, outcome) {
  const { code, name, message } = error.errors?.at(-1) ?? error
  outcome.error = { code: printable(code ?? name), message: printable(message) }
  outcome.isUnreachable = isUnreachable(outcome.error)
}

module.exports = { Attempt, Outcome }
