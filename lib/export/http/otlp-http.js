'use strict'

// One POST at a time to an OTLP/HTTP collector, over one kept connection. Spans and metrics for the same server share it.

const crypto = require('node:crypto')
const tls = require('node:tls')
const { version } = require('../../../package.json')
const { hostAndPort } = require('../../config/endpoint.js')
const { processState } = require('../../runtime/process-state.js')
const { Connection } = require('./connection.js')
const { secretsOf } = require('./secrets.js')
const { setInterval, clearInterval, monotonicNow, wallNow } = require('../../runtime/timers.js')
const { compressBody, encodingOf, refusesZstd } = require('../compressor.js')
const { ASK_AGAIN_MS, dispositionOf, isUnreachable } = require('./retry.js')
const { HttpResponse, readAnswer } = require('./response.js')
const { printable } = require('../../runtime/report.js')

// Sent with each POST. Not sampled: a collector that is itself traced makes no span of our spans. If its app does not go by
// that (it trusts no caller, or keeps failed requests), it knows what comes from its own process: nobody can guess these ids.
const TRACEPARENT = `00-${crypto.randomBytes(16).toString('hex')}-${crypto.randomBytes(8).toString('hex')}-00`
processState.exporterTraceparents.add(TRACEPARENT)

// What is shorter goes into one piece of memory: to copy it costs less than a socket takes for a second piece.
const ONE_PIECE_BYTES = 16 * 1024

/** One path of a collector. What `exporter` holds was checked: its headers are valid, under no name that is set here. */
class OtlpHttp {
  #shared
  #head
  #secrets
  #encoding // what the options ask for, until the server refuses it
  #isAborted = false
  #absentUntil = 0

  // suppress(fn) calls fn outside of any request's context, with tracing off.
  constructor (exporter, suppress, shared = new SharedConnection(exporter, suppress)) {
    this.#shared = shared
    this.#head = headOf(exporter, shared.proxy)
    this.timeoutMs = exporter.timeoutMs
    this.#secrets = secretsOf(exporter, shared.proxy)
    this.#encoding = encodingOf(exporter)
    shared.users++
  }

  // Makes an OtlpHttp for another path of the same server, over the same connection.
  share (exporter) { return new OtlpHttp(exporter, undefined, this.#shared) }

  // Sends `parts` as one body. encoding: 'gzip' for what is compressed already, '' for what is to be as the options say.
  // done(outcome) is called once, never in this turn.
  post (parts, encoding, done) {
    if (encoding !== '') return this.#send(parts, encoding, done)
    compressBody(this.#encoding, parts, (body, used) => this.#send(body, used, (outcome) => {
      if (!refusesZstd(used, outcome)) return done(outcome)
      this.#encoding = 'gzip'
      this.post(parts, '', (outcome) => {
        outcome.wasResent = true
        done(outcome)
      })
    }))
  }

  #send (parts, encoding, done) {
    if (this.#isAborted) return process.nextTick(done, new Outcome()) // while it was compressed
    const byteLength = parts.reduce((sum, { length }) => sum + length, 0)
    const head = `${this.#head}${encoding === '' ? '' : `content-encoding: ${encoding}\r\n`}content-length: ${byteLength}\r\n\r\n`
    this.#shared.post(new Attempt(this.#shared, this, messageOf(head, parts, byteLength), done))
  }

  answerOf (response) {
    this.#absentUntil = response.status === 404 ? monotonicNow() + ASK_AGAIN_MS : 0
    return readAnswer(response, wallNow(), this.#secrets, this.#shared.proxy !== null)
  }

  /** Whether the server has lately said that this path is not there: see ASK_AGAIN_MS. */
  get isAbsent () { return this.#absentUntil > 0 && monotonicNow() < this.#absentUntil }

  // While held, until a deadline, what is in flight keeps the process alive. `wasFrozen`: it may have been frozen since that was sent.
  hold (isHeld, wasFrozen = false) { this.#shared.hold(this, isHeld, wasFrozen) }

  // Ends what is under way; nothing is sent any more.
  abort () {
    this.#isAborted = true
    this.#shared.abort(this)
  }

  // Closes the connection once all that share it have closed.
  close () {
    if (--this.#shared.users === 0) this.#shared.close()
  }
}

function messageOf (head, parts, byteLength) {
  if (byteLength > ONE_PIECE_BYTES) return [Buffer.from(head, 'latin1'), ...parts]
  const message = Buffer.allocUnsafe(head.length + byteLength)
  let at = message.latin1Write(head)
  for (const part of parts) {
    message.set(part, at)
    at += part.length
  }
  return [message]
}

/** The connection to a server, and the attempts that wait for it. */
class SharedConnection {
  #address
  #suppress
  #connection = null
  #session = null // of TLS
  #isWaitedFor = false // the current attempt takes the next connection
  #current = null
  #queue = []
  #holders = new Set()

  users = 0

  constructor ({ url, ca, cert, key, proxy = null }, suppress) {
    const target = new URL(url)
    this.proxy = proxy
    this.#suppress = suppress
    // Once: a bundle of all public authorities, parsed for each connection, would take the loop 8 to 26 ms.
    this.#address = {
      ...hostAndPort(target),
      secureContext: target.protocol === 'https:' ? tls.createSecureContext({ ca, cert, key }) : undefined,
      proxy: proxy === null ? null : proxyAddress(proxy, secretsOf({ url, headers: {} }, proxy))
    }
  }

  post (attempt) {
    if (this.#current !== null) {
      this.#queue.push(attempt)
      return
    }
    this.#current = attempt
    attempt.start(this.#holders.size > 0)
  }

  hold (owner, isHeld, wasFrozen) {
    if (isHeld) this.#holders.add(owner)
    else this.#holders.delete(owner)
    this.#current?.hold(this.#holders.size > 0)
    if (wasFrozen) this.#current?.resendIfStale()
  }

  abort (owner) {
    const aborted = this.#queue.filter((attempt) => attempt.owner === owner)
    this.#queue = this.#queue.filter((attempt) => attempt.owner !== owner)
    for (const { done } of aborted) process.nextTick(done, new Outcome())
    if (this.#current?.owner === owner) this.#current.abort('ABORTED')
  }

  close () { this.#connection?.destroy() }

  // Gives the current attempt a connection: in this turn, or when the last one is gone. There is one at a time.
  serve (attempt) {
    this.#connection ??= this.#suppress(() => new Connection(this.#address, this.#session, (session) => { this.#session = session }, () => this.#onGone()))
    if (this.#connection.isFree) attempt.useConnection(this.#connection)
    else this.#isWaitedFor = true
  }

  end ({ done }, outcome) {
    this.#current = null
    this.#isWaitedFor = false
    // Before `done`, which may post the owner's next request: the one that waits comes first.
    if (this.#queue.length > 0) this.post(this.#queue.shift())
    done(outcome)
  }

  #onGone () {
    this.#connection = null
    if (!this.#isWaitedFor) return
    this.#isWaitedFor = false
    this.serve(this.#current)
  }
}

// A proxy is verified with the authorities that Node trusts: `ca` is the collector's.
function proxyAddress ({ host, port, authorization, isSecure }, secrets) {
  return { host, port, authorization, secrets, secureContext: isSecure ? tls.createSecureContext({}) : undefined }
}

function headOf ({ url, headers }, proxy) {
  const { protocol, pathname, search, host } = new URL(url)
  const isForwarded = proxy !== null && protocol === 'http:' // by a proxy that reads it; https: goes through a tunnel
  const fields = {
    ...headers,
    ...(isForwarded && { 'proxy-connection': 'keep-alive' }),
    ...(isForwarded && proxy.authorization !== '' && { 'proxy-authorization': proxy.authorization }),
    connection: 'keep-alive',
    'content-type': 'application/x-protobuf',
    // We would not inflate an answer: a small one may unpack to gigabytes.
    'accept-encoding': 'identity',
    'user-agent': `light-trace/${version}`,
    traceparent: TRACEPARENT
  }
  let head = `POST ${isForwarded ? `http://${host}` : ''}${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\n`
  for (const [name, value] of Object.entries(fields)) head += `${name}: ${value}\r\n`
  return head
}

// The life of one POST: whatever happens to it (an answer, half of one, an endless one, a reset, silence) becomes one outcome.

// The timeout is counted in ticks of a timer, of which none is due while the loop is blocked or the laptop sleeps.
const TICKS_PER_TIMEOUT = 8

// A connection that was idle while the process was frozen may have died without a word.
const STALE_MS = 500

const MESSAGES = { ABORTED: 'the request was given up', ETIMEDOUT: 'no answer in time' }

class Outcome {
  disposition = dispositionOf(0) // of an answer: see there
  status = 0
  error = { code: 'ABORTED', message: MESSAGES.ABORTED } // null if an answer came
  isUnreachable = false
  retryAfterMs = -1
  format = '' // of the answer, see response.js
  partialSuccess = null
  wasResent = false // the collector may have had it twice
  isUploaded = false // no socket reads the body's memory any more
  message = '' // what the collector said about a failure
}

/** One request and its answer. A Connection calls the methods onReady, onData, onEnd and onClosed. */
class Attempt {
  #shared
  #message
  #timer = null
  #ticks = 0
  #startedAt = 0
  #connection = null
  #response = new HttpResponse()
  #isHeld = false
  #outcome = new Outcome()

  // `message`: in pieces. `done` is for the connection to call.
  constructor (shared, owner, message, done) {
    this.owner = owner
    this.done = done
    this.#shared = shared
    this.#message = message
  }

  start (isHeld) {
    this.#startedAt = monotonicNow()
    this.#timer = setInterval(() => {
      if (++this.#ticks === TICKS_PER_TIMEOUT) this.abort('ETIMEDOUT')
    }, Math.max(1, this.owner.timeoutMs / TICKS_PER_TIMEOUT))
    this.hold(isHeld)
    this.#shared.serve(this)
  }

  useConnection (connection) {
    this.#connection = connection
    connection.hold(this.#isHeld)
    connection.serve(this)
  }

  hold (isHeld) {
    this.#isHeld = isHeld
    this.#connection?.hold(isHeld)
    if (isHeld) this.#timer?.ref()
    else this.#timer?.unref()
  }

  // Sends anew, over a new connection, what has no answer over one that was kept.
  resendIfStale () {
    if (this.#connection !== null && this.#mayResend && this.#response.status === 0 && monotonicNow() - this.#startedAt >= STALE_MS) {
      this.#resend()
    }
  }

  abort (code) { this.#complete({ code, message: MESSAGES[code] }) }

  onReady () { this.#connection.write(this.#message, () => { this.#outcome.isUploaded = true }) }

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
    this.#shared.serve(this)
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
    if (response.status !== 0) Object.assign(outcome, this.owner.answerOf(response))
    else readError(error, outcome)
    this.#connection = this.#response = this.#message = null
    this.#shared.end(this, outcome)
  }
}

// If several addresses were tried (happy eyeballs) the error of all has neither message nor a code of its own.
function readError (error, outcome) {
  const { code, name, message } = error.errors?.at(-1) ?? error
  outcome.error = { code: printable(code ?? name), message: printable(message) }
  outcome.isUnreachable = isUnreachable(outcome.error)
}

module.exports = { OtlpHttp, Outcome }
