'use strict'

// One POST at a time to an OTLP/HTTP collector, over one kept connection. Spans and metrics for the same server share it.

const crypto = require('node:crypto')
const tls = require('node:tls')
const { version } = require('../../../package.json')
const { hostAndPort } = require('../../config/endpoint')
const { processState } = require('../../runtime/process-state')
const { Attempt, Outcome } = require('./attempt')
const { Connection } = require('./connection')
const { secretsOf } = require('./secrets')

// Sent with each POST. Not sampled: a collector that is itself traced makes no span of our spans. If its app does not go by
// that (it trusts no caller, or keeps failed requests), it knows what comes from its own process: nobody can guess these ids.
const TRACEPARENT = `00-${crypto.randomBytes(16).toString('hex')}-${crypto.randomBytes(8).toString('hex')}-00`
processState.exporterTraceparents.add(TRACEPARENT)

/** One path of a collector. What `exporter` holds was checked: its headers are valid, under no name that is set here. */
class OtlpHttp {
  #line
  #head
  #timeoutMs
  #secrets

  // suppress(fn) calls fn outside of any request's context, with tracing off.
  constructor (exporter, suppress, line = new Line(exporter, suppress)) {
    this.#line = line
    this.#head = headOf(exporter, line.proxy)
    this.#timeoutMs = exporter.timeoutMs
    this.#secrets = secretsOf(exporter, line.proxy)
    line.users++
  }

  // Makes an OtlpHttp for another path of the same server, over the same connection.
  share (exporter) { return new OtlpHttp(exporter, undefined, this.#line) }

  // Sends `parts` as one body. done(outcome) is called once, never in this turn.
  post (parts, isGzip, done) {
    const byteLength = parts.reduce((sum, { length }) => sum + length, 0)
    const head = `${this.#head}${isGzip ? 'content-encoding: gzip\r\n' : ''}content-length: ${byteLength}\r\n\r\n`
    this.#line.post({ owner: this, message: [head, ...parts], timeoutMs: this.#timeoutMs, secrets: this.#secrets, done })
  }

  // While held, what is in flight keeps the process alive: only during flush and close, which have a deadline. `wasFrozen`: the
  // process may have been frozen since it was sent.
  hold (isHeld, wasFrozen = false) { this.#line.hold(this, isHeld, wasFrozen) }

  abort () { this.#line.abort(this) }

  // Closes the connection once all that share it have closed.
  close () {
    if (--this.#line.users === 0) this.#line.close()
  }
}

/** The connection to a server, and the requests that wait for it. */
class Line {
  #address
  #suppress
  #connection = null
  #session = null // of TLS
  #onFree = null // takes the next connection
  #current = null // { attempt, owner }
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

  post (request) {
    if (this.#current === null) this.#send(request)
    else this.#queue.push(request)
  }

  hold (owner, isHeld, wasFrozen) {
    if (isHeld) this.#holders.add(owner)
    else this.#holders.delete(owner)
    this.#current?.attempt.hold(this.#holders.size > 0)
    if (wasFrozen) this.#current?.attempt.resendIfStale()
  }

  abort (owner) {
    const aborted = this.#queue.filter((request) => request.owner === owner)
    this.#queue = this.#queue.filter((request) => request.owner !== owner)
    for (const { done } of aborted) process.nextTick(done, new Outcome())
    if (this.#current?.owner === owner) this.#current.attempt.abort('ABORTED')
  }

  close () {
    this.#connection?.destroy()
  }

  #send ({ owner, message, timeoutMs, secrets, done }) {
    const attempt = new Attempt(message, timeoutMs, secrets, (use) => this.#withConnection(use), (outcome) => {
      this.#current = this.#onFree = null
      // Not the collector's: a tunnel that the proxy does not open for the same reason is no answer of it either.
      if (outcome.status === 407 && this.proxy !== null) outcome.disposition = 'retry'
      // Before `done`, which may post the owner's next request: the one that waits comes first.
      if (this.#queue.length > 0) this.#send(this.#queue.shift())
      done(outcome)
    })
    this.#current = { attempt, owner }
    attempt.hold(this.#holders.size > 0)
    this.#suppress(() => attempt.start())
  }

  // use(connection): in this turn, or when the last one is gone. There is one at a time.
  #withConnection (use) {
    this.#connection ??= new Connection(this.#address, this.#session, (session) => { this.#session = session }, () => this.#onGone())
    if (this.#connection.isFree) use(this.#connection)
    else this.#onFree = use
  }

  #onGone () {
    this.#connection = null
    const use = this.#onFree
    this.#onFree = null
    if (use !== null) this.#withConnection(use)
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

module.exports = { OtlpHttp }
