'use strict'

// One POST at a time to an OTLP/HTTP collector, over one keep-alive connection of our own.

const crypto = require('node:crypto')
const http = require('node:http')
const https = require('node:https')

const { version } = require('../../package.json')
const { processWide } = require('../context/process-wide')
const { Attempt } = require('./attempt')

// Marks our requests for instrumentation that sees them only after they were made. Symbol.for, so that
// another copy of this package in the process knows them too. A request is seen by `http.client.request.created`
// inside its constructor, before it can be marked: there, what counts is that `suppress` is around it.
const kOwnTraffic = Symbol.for('light-trace.ownTraffic')

class OtlpHttp {
  #agent
  #request
  #options
  #timeoutMs
  #suppress
  #current = null
  #isHeld = false

  // `suppress(fn)` calls fn outside of any request's context, with tracing off.
  constructor ({ url, headers, timeoutMs, ca, cert, key }, suppress) {
    const target = new URL(url)
    const { Agent, request } = target.protocol === 'https:' ? https : http
    this.#request = request
    this.#timeoutMs = timeoutMs
    this.#suppress = suppress
    // Not the global agent: its sockets are the app's, and so is what others hang on it.
    this.#agent = new Agent({ keepAlive: true, maxSockets: 1, maxFreeSockets: 1, secureContext: secureContextOf(target, { ca, cert, key }) })
    // Not sampled: a collector that is itself traced makes no span of our spans. Where its app does not go by that (it
    // trusts no caller, or keeps failed requests), it knows what comes from its own process: nobody can guess these ids.
    const traceparent = `00-${crypto.randomBytes(16).toString('hex')}-${crypto.randomBytes(8).toString('hex')}-00`
    processWide.ownTraffic.add(traceparent)
    this.#options = {
      method: 'POST',
      protocol: target.protocol,
      hostname: target.hostname.startsWith('[') ? target.hostname.slice(1, -1) : target.hostname,
      port: target.port,
      path: target.pathname + target.search,
      agent: this.#agent,
      insecureHTTPParser: false,
      headers: {
        ...headers,
        'content-type': 'application/x-protobuf',
        // We would not inflate an answer: a small one may unpack to gigabytes.
        'accept-encoding': 'identity',
        'user-agent': `light-trace/${version}`,
        traceparent
      }
    }
  }

  // Sends `parts` as one body. done(outcome) is called once, never in this turn.
  post (parts, isGzip, done) {
    let byteLength = 0
    for (const bytes of parts) byteLength += bytes.length
    const headers = { ...this.#options.headers, 'content-length': byteLength }
    if (isGzip) headers['content-encoding'] = 'gzip'
    const options = { ...this.#options, headers }
    const create = () => {
      const request = this.#request(options)
      request[kOwnTraffic] = true
      for (const bytes of parts) request.write(bytes)
      request.end()
      return request
    }
    const attempt = this.#current = new Attempt(this.#timeoutMs, (outcome) => {
      this.#current = null
      done(outcome)
    })
    attempt.hold(this.#isHeld)
    this.#suppress(() => attempt.start(create))
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
    processWide.ownTraffic.delete(this.#options.headers.traceparent)
    this.#agent.destroy()
  }
}

// Once, at start: Node would parse the certificates again for each connection, in the loop's time and also where the
// connection is then refused. For a bundle of all public authorities that is 8 to 26 ms.
function secureContextOf ({ protocol }, options) {
  return protocol === 'https:' ? require('node:tls').createSecureContext(options) : undefined
}

module.exports = { OtlpHttp, kOwnTraffic }
