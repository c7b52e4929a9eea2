'use strict'

// One POST at a time to an OTLP/HTTP collector, over one kept connection of our own.

const crypto = require('node:crypto')

const { version } = require('../../../package.json')
const { processState } = require('../../runtime/process-state')
const { Attempt } = require('./attempt')
const { Connection } = require('./connection')

const PORTS = { 'http:': 80, 'https:': 443 }

class OtlpHttp {
  #address
  #head
  #traceparent
  #timeoutMs
  #suppress
  #connection = null
  #session = null // of TLS
  #waiting = null // who is given the next connection
  #current = null
  #isHeld = false

  // `suppress(fn)` calls fn outside of any request's context, with tracing off. What `exporter` holds was checked: its
  // headers are tokens and text without control characters, under no name that is set here.
  constructor ({ url, headers, timeoutMs, ca, cert, key }, suppress) {
    const target = new URL(url)
    const { protocol, hostname, port, host, pathname, search } = target
    this.#timeoutMs = timeoutMs
    this.#suppress = suppress
    this.#address = {
      host: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname,
      port: port === '' ? PORTS[protocol] : Number(port),
      secureContext: protocol === 'https:' ? secureContextOf({ ca, cert, key }) : undefined
    }
    // Not sampled: a collector that is itself traced makes no span of our spans. Where its app does not go by that (it
    // trusts no caller, or keeps failed requests), it knows what comes from its own process: nobody can guess these ids.
    this.#traceparent = `00-${crypto.randomBytes(16).toString('hex')}-${crypto.randomBytes(8).toString('hex')}-00`
    processState.exporterTraceparents.add(this.#traceparent)
    this.#head = headOf(`${pathname}${search}`, host, {
      ...headers,
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
    let byteLength = 0
    for (const bytes of parts) byteLength += bytes.length
    const head = `${this.#head}${isGzip ? 'content-encoding: gzip\r\n' : ''}content-length: ${byteLength}\r\n\r\n`
    const attempt = this.#current = new Attempt([head, ...parts], this.#timeoutMs, (outcome) => {
      this.#current = this.#waiting = null
      done(outcome)
    })
    attempt.hold(this.#isHeld)
    this.#suppress(() => attempt.start((use) => this.#withConnection(use)))
  }

  // While held, what is in flight keeps the process alive: only during flush and close, which have a deadline.
  hold (isHeld) {
    this.#isHeld = isHeld
    this.#current?.hold(isHeld)
  }

  abort () {
    this.#current?.abort('ABORTED')
  }

  close () {
    processState.exporterTraceparents.delete(this.#traceparent)
    this.#connection?.destroy()
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

// Once, at start: Node would parse the certificates again for each connection, in the loop's time and also where the
// connection is then refused. For a bundle of all public authorities that is 8 to 26 ms.
function secureContextOf (options) {
  return require('node:tls').createSecureContext(options)
}

module.exports = { OtlpHttp }
