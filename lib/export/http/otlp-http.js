'use strict'

// Sends one POST at a time to an OTLP/HTTP collector over a persistent connection. Spans and metrics for the same server share it.

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

// Sent with each POST. It is unsampled, so that a traced collector does not trace our exports. An app in this process may ignore that
// flag (if it does not trust clients, or keeps failed requests), but it recognizes this traceparent, whose ids cannot be guessed.
const TRACEPARENT = `00-${crypto.randomBytes(16).toString('hex')}-${crypto.randomBytes(8).toString('hex')}-00`
processState.exporterTraceparents.add(TRACEPARENT)

// A shorter message is copied into one buffer: the copy costs less than a second write to the socket.
const ONE_PIECE_BYTES = 16 * 1024

/** Posts to one path of a collector. `exporter` was checked before: its headers are valid, and none has a name that is set here. */
class OtlpHttp {
  #shared
  #head
  #secrets
  #encoding // the configured one, until the server refuses it
  #isAborted = false
  #absentUntil = 0

  // suppress(fn) calls fn outside any request's context, with tracing off.
  constructor (exporter, suppress, shared = new SharedConnection(exporter, suppress)) {
    this.#shared = shared
    this.#head = headOf(exporter, shared.proxy)
    this.timeoutMs = exporter.timeoutMs
    this.#secrets = secretsOf(exporter, shared.proxy)
    this.#encoding = encodingOf(exporter)
    shared.users++
  }

  // Returns an OtlpHttp for another path of the same server, over the same connection.
  share (exporter) { return new OtlpHttp(exporter, undefined, this.#shared) }

  // Sends `parts` as one body. encoding: 'gzip' if it is already compressed, '' to compress it as configured. Calls done(outcome) once,
  // never synchronously.
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
    if (this.#isAborted) return process.nextTick(done, new Outcome()) // aborted during compression
    const byteLength = parts.reduce((sum, { length }) => sum + length, 0)
    const head = `${this.#head}${encoding === '' ? '' : `content-encoding: ${encoding}\r\n`}content-length: ${byteLength}\r\n\r\n`
    this.#shared.post(new Attempt(this.#shared, this, messageOf(head, parts, byteLength), done))
  }

  answerOf (response) {
    this.#absentUntil = response.status === 404 ? monotonicNow() + ASK_AGAIN_MS : 0
    return readAnswer(response, wallNow(), this.#secrets, this.#shared.proxy !== null)
  }

  /** Whether the server has recently answered 404 for this path, see ASK_AGAIN_MS. */
  get isAbsent () { return this.#absentUntil > 0 && monotonicNow() < this.#absentUntil }

  // While held (the caller sets a deadline), a request in flight keeps the process alive. `wasFrozen`: the platform may have frozen the
  // process since the request was sent.
  hold (isHeld, wasFrozen = false) { this.#shared.hold(this, isHeld, wasFrozen) }

  // Aborts the current request. Nothing is sent after that.
  abort () {
    this.#isAborted = true
    this.#shared.abort(this)
  }

  // Closes the connection once all its users have closed.
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

/** The connection to a server, and the queue of attempts that wait for it. */
class SharedConnection {
  #address
  #suppress
  #connection = null
  #session = null // the TLS session to resume
  #isWaitedFor = false // the current attempt waits for the next connection
  #current = null
  #queue = []
  #holders = new Set()

  users = 0

  constructor ({ url, ca, cert, key, proxy = null }, suppress) {
    const target = new URL(url)
    this.proxy = proxy
    this.#suppress = suppress
    // Created once: parsing a bundle of all public CAs for each connection would block the event loop for 8 to 26 ms.
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

  // Gives the current attempt a connection, now or once the previous connection is gone. Only one exists at a time.
  serve (attempt) {
    this.#connection ??= this.#suppress(() => new Connection(this.#address, this.#session, (session) => { this.#session = session }, () => this.#onGone()))
    if (this.#connection.isFree) attempt.useConnection(this.#connection)
    else this.#isWaitedFor = true
  }

  end ({ done }, outcome) {
    this.#current = null
    this.#isWaitedFor = false
    // Start the waiting request before calling `done`, which may post the owner's next one.
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

// A proxy is verified with the CAs that Node trusts, because `ca` is meant for the collector.
function proxyAddress ({ host, port, authorization, isSecure }, secrets) {
  return { host, port, authorization, secrets, secureContext: isSecure ? tls.createSecureContext({}) : undefined }
}

function headOf ({ url, headers }, proxy) {
  const { protocol, pathname, search, host } = new URL(url)
  const isForwarded = proxy !== null && protocol === 'http:' // https: goes through a tunnel instead
  const fields = {
    ...headers,
    ...(isForwarded && { 'proxy-connection': 'keep-alive' }),
    ...(isForwarded && proxy.authorization !== '' && { 'proxy-authorization': proxy.authorization }),
    connection: 'keep-alive',
    'content-type': 'application/x-protobuf',
    // We do not decompress responses: a small one could expand to gigabytes.
    'accept-encoding': 'identity',
    'user-agent': `light-trace/${version}`,
    traceparent: TRACEPARENT
  }
  let head = `POST ${isForwarded ? `http://${host}` : ''}${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\n`
  for (const [name, value] of Object.entries(fields)) head += `${name}: ${value}\r\n`
  return head
}

// One POST. Whatever happens to it (a response, half a response, an endless one, a reset, silence) becomes one outcome.

// The timeout is counted in timer ticks, which do not happen while the event loop is blocked or the laptop sleeps.
const TICKS_PER_TIMEOUT = 8

// A connection that was idle while the process was frozen may be dead without having reported an error.
const STALE_MS = 500

const MESSAGES = { ABORTED: 'the request was given up', ETIMEDOUT: 'no answer in time' }

class Outcome {
  disposition = dispositionOf(0) // replaced when a response arrives
  status = 0
  error = { code: 'ABORTED', message: MESSAGES.ABORTED } // null if a response arrived
  isUnreachable = false
  retryAfterMs = -1
  format = '' // of the response, see response.js
  partialSuccess = null
  wasResent = false // the collector may have received it twice
  isUploaded = false // no socket reads the body's buffers any more
  message = '' // what the collector said about a failure
}

/** One request and its response. A Connection calls onReady, onData, onEnd and onClosed. */
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

  // `message` is an array of buffers. SharedConnection calls `done`.
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

  // Sends the request again over a new connection if it was sent over a reused one and has no response yet.
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

  // If the server closes a reused connection just as we send, the collector has not failed. The request is sent again, once, without a wait.
  get #mayResend () { return this.#connection.wasUsed && !this.#outcome.wasResent }

  #resend () {
    this.#connection.destroy()
    this.#connection = null
    this.#response = new HttpResponse()
    this.#outcome.isUploaded = false
    this.#outcome.wasResent = true
    this.#shared.serve(this)
  }

  // Once the status is known, a later connection failure does not change the outcome.
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

// After Happy Eyeballs has tried several addresses, the error for all of them has no message or code of its own.
function readError (error, outcome) {
  const { code, name, message } = error.errors?.at(-1) ?? error
  outcome.error = { code: printable(code ?? name), message: printable(message) }
  outcome.isUnreachable = isUnreachable(outcome.error)
}

module.exports = { OtlpHttp, Outcome }
