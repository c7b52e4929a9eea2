'use strict'

// One POST at a time to an OTLP/HTTP collector, over one kept connection of our own. Spans and metrics for the same
// server share it and take turns.

const crypto = require('node:crypto')

const { version } = require('../../../package.json')
const { processState } = require('../../runtime/process-state')
const { Attempt, Outcome } = require('./attempt')
const { Connection } = require('./connection')

const PORTS = { 'http:': 80, 'https:': 443 }

class OtlpHttp {
  #address
  #proxy
  #head
  #traceparent
  #timeoutMs
  #suppress
  #connection = null
  #session = null // of TLS
  #waiting = null // who is given the next connection
  #current = null // { attempt, owner }
  #queue = [] // of requests that wait for their turn
  #holders = new Set()
  #users = 1

  // `suppress(fn)` calls fn outside of any request's context, with tracing off. What `exporter` holds was checked: its
  // headers are tokens and text without control characters, under no name that is set here.
  constructor ({ url, headers, timeoutMs, ca, cert, key, proxy }, suppress) {
    const target = new URL(url)
    const { protocol, hostname, port } = target
    this.#proxy = proxy ?? null
    this.#timeoutMs = timeoutMs
    this.#suppress = suppress
    this.#address = {
      host: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname,
      port: port === '' ? PORTS[protocol] : Number(port),
      secureContext: protocol === 'https:' ? secureContextOf({ ca, cert, key }) : undefined,
      proxy: this.#proxy === null ? null : addressOf(this.#proxy)
    }
    // Not sampled: a collector that is itself traced makes no span of our spans. Where its app does not go by that (it
    // trusts no caller, or keeps failed requests), it knows what comes from its own process: nobody can guess these ids.
    this.#traceparent = `00-${crypto.randomBytes(16).toString('hex')}-${crypto.randomBytes(8).toString('hex')}-00`
    processState.exporterTraceparents.add(this.#traceparent)
    this.#head = this.#headFor(target, headers)
  }

  #headFor ({ protocol, pathname, search, host }, headers) {
    const isForwarded = this.#proxy !== null && protocol === 'http:' // by a proxy that reads it; https: goes through a tunnel
    return headOf(`${isForwarded ? `http://${host}` : ''}${pathname}${search}`, host, {
      ...headers,
      ...(isForwarded && forwardedHeaders(this.#proxy)),
      connection: 'keep-alive',
      'content-type': 'application/x-protobuf',
      // We would not inflate an answer: a small one may unpack to gigabytes.
      'accept-encoding': 'identity',
      'user-agent': `light-trace/${version}`,
      traceparent: this.#traceparent
    })
  }

  // Sends `parts` as one body. done(outcome) is called once, never in this turn.
  post (parts, isGzip, done) {
    this.#enqueue(this, this.#head, this.#timeoutMs, parts, isGzip, done)
  }

  // While held, what is in flight keeps the process alive: only during flush and close, which have a deadline.
  hold (isHeld) {
    this.#hold(this, isHeld)
  }

  abort () {
    this.#abort(this)
  }

  // When the last of those who share it has closed it.
  close () {
    if (--this.#users > 0) return
    processState.exporterTraceparents.delete(this.#traceparent)
    this.#connection?.destroy()
  }

  // Another path of the same server: an object with these four methods, over the same connection.
  share ({ url, headers, timeoutMs }) {
    const head = this.#headFor(new URL(url), headers)
    this.#users++
    const shared = {
      post: (parts, isGzip, done) => this.#enqueue(shared, head, timeoutMs, parts, isGzip, done),
      hold: (isHeld) => this.#hold(shared, isHeld),
      abort: () => this.#abort(shared),
      close: () => this.close()
    }
    return shared
  }

  #enqueue (owner, head, timeoutMs, parts, isGzip, done) {
    const request = { owner, head, timeoutMs, parts, isGzip, done }
    if (this.#current === null) this.#send(request)
    else this.#queue.push(request)
  }

  #send ({ owner, head, timeoutMs, parts, isGzip, done }) {
    let byteLength = 0
    for (const bytes of parts) byteLength += bytes.length
    const fields = `${head}${isGzip ? 'content-encoding: gzip\r\n' : ''}content-length: ${byteLength}\r\n\r\n`
    const attempt = new Attempt([fields, ...parts], timeoutMs, (outcome) => {
      this.#current = this.#waiting = null
      // Not the collector's: a tunnel that the proxy does not open for the same reason is no answer of it either.
      if (outcome.status === 407 && this.#proxy !== null) outcome.disposition = 'retry'
      // Before `done`, which may post the next one of its own: whoever waits comes first.
      if (this.#queue.length > 0) this.#send(this.#queue.shift())
      done(outcome)
    })
    this.#current = { attempt, owner }
    attempt.hold(this.#holders.size > 0)
    this.#suppress(() => attempt.start((use) => this.#withConnection(use)))
  }

  #hold (owner, isHeld) {
    if (isHeld) this.#holders.add(owner)
    else this.#holders.delete(owner)
    this.#current?.attempt.hold(this.#holders.size > 0)
  }

  #abort (owner) {
    const aborted = this.#queue.filter((request) => request.owner === owner)
    this.#queue = this.#queue.filter((request) => request.owner !== owner)
    for (const { done } of aborted) process.nextTick(done, new Outcome())
    if (this.#current?.owner === owner) this.#current.attempt.abort('ABORTED')
  }

  // use(connection): in this turn, or when the last one is gone. There is one at a time.
  #withConnection (use) {
    this.#connection ??= new Connection(this.#address, this.#session, (session) => { this.#session = session }, () => this.#onGone())
    if (this.#connection.isFree) use(this.#connection)
    else this.#waiting = use
  }

  #onGone () {
    this.#connection = null
    const use = this.#waiting
    this.#waiting = null
    if (use !== null) this.#withConnection(use)
  }
}

function headOf (path, host, headers) {
  let head = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\n`
  for (const [name, value] of Object.entries(headers)) head += `${name}: ${value}\r\n`
  return head
}

function forwardedHeaders ({ authorization }) {
  return { 'proxy-connection': 'keep-alive', ...(authorization !== '' && { 'proxy-authorization': authorization }) }
}

// A proxy is verified with the authorities that Node trusts: `ca` is the collector's.
function addressOf ({ host, port, isSecure, authorization }) {
  return { host, port, authorization, secureContext: isSecure ? secureContextOf({}) : undefined }
}

// Once, at start: Node would parse the certificates again for each connection, in the loop's time and also where the
// connection is then refused. For a bundle of all public authorities that is 8 to 26 ms.
function secureContextOf (options) {
  return require('node:tls').createSecureContext(options)
}

module.exports = { OtlpHttp }
