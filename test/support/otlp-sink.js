'use strict'

// A collector in the test's own process: a real HTTP server on a free loopback port. It decodes requests with an independent decoder and
// keeps them.

module.exports = { startSink }

const http = require('node:http')
const zlib = require('node:zlib')
const { listenAnew } = require('./new-port')
const { decodeSpans } = require('./otlp-decode')

/**
 * @param {object} [t] a tap test: the sink is closed at its end
 * @returns {Promise<Sink>}
 *
 * sink.url       the full URL to post to, http://127.0.0.1:<port>/v1/traces
 * sink.spans     every span of every request that was answered with 2xx, in order of arrival
 * sink.requests  [{ method, url, headers, bytes, spans, status }], including refused requests
 * sink.waitFor   (n or (sink) => boolean, timeoutMs = 10 000) → the spans, when n of them have arrived (or the condition holds)
 * sink.respond   assign (req, body) => ({ status, headers, body }), sync or async, to script the answers
 */
async function startSink (t) {
  const sink = new Sink()
  await sink.listen()
  t?.teardown(() => sink.close())
  return sink
}

class Sink {
  url = ''
  spans = []
  requests = []
  respond = () => ({ status: 200 })
  #waiting = new Set()
  #broken = null // the first body that was not valid OTLP; every wait fails with it
  #server = http.createServer((req, res) => {
    this.#answer(req, res).catch((error) => { // the client disconnected, or the script threw
      res.destroy()
      if (req.complete) this.#fail(error)
    })
  })

  async listen () {
    this.url = `http://127.0.0.1:${await listenAnew(this.#server)}/v1/traces`
  }

  unref () { this.#server.unref() }

  close () {
    if (!this.#server.listening) return Promise.resolve()
    for (const wait of this.#waiting) wait.reject(new Error('the sink was closed'))
    return new Promise((resolve) => {
      this.#server.close(resolve)
      this.#server.closeAllConnections()
    })
  }

  waitFor (condition, timeoutMs = 10_000) {
    const holds = typeof condition === 'function' ? () => condition(this) : () => this.spans.length >= condition
    return new Promise((resolve, reject) => {
      const wait = { holds, resolve: () => settle(resolve, this.spans), reject: (error) => settle(reject, error) }
      const timer = setTimeout(() => wait.reject(new Error(
        `${timeoutMs} ms went by: ${this.spans.length} spans in ${this.requests.length} requests came, waited for ${condition}`)), timeoutMs)
      const settle = (how, value) => {
        clearTimeout(timer)
        this.#waiting.delete(wait)
        how(value)
      }
      this.#waiting.add(wait)
      this.#look()
    })
  }

  async #answer (req, res) {
    const chunks = []
    for await (const chunk of req) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const request = { method: req.method, url: req.url, headers: req.headers, bytes: body.length, spans: [], status: 0 }
    const answer = this.#read(request, body) ?? await this.respond(req, body) ?? {}
    request.status = answer.status ?? 200
    this.requests.push(request)
    if (request.status >= 200 && request.status < 300) this.spans.push(...request.spans)
    res.writeHead(request.status, { 'content-type': 'application/x-protobuf', ...answer.headers })
    res.end(answer.body) // an empty body is a valid ExportTraceServiceResponse
    this.#look()
  }

  #read (request, body) {
    if (request.method !== 'POST' || request.url.split('?')[0] !== '/v1/traces') return { status: 404 }
    if (request.headers['content-type'] !== 'application/x-protobuf') return { status: 415 }
    const encoding = request.headers['content-encoding'] ?? 'identity'
    if (!['identity', 'gzip', 'zstd'].includes(encoding)) return { status: 415 }
    try {
      request.spans = decodeSpans(encoding === 'zstd' ? zlib.zstdDecompressSync(body) : body, { gzip: encoding === 'gzip' })
    } catch (error) {
      this.#fail(error)
      return { status: 400, headers: { 'content-type': 'text/plain' }, body: error.message }
    }
  }

  #fail (error) {
    this.#broken ??= error
    this.#look()
  }

  #look () {
    for (const wait of [...this.#waiting]) {
      if (this.#broken !== null) wait.reject(this.#broken)
      else if (wait.holds()) wait.resolve()
    }
  }
}
