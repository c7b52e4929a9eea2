'use strict'

// A collector that misbehaves according to a script. It reads requests with an independent decoder and remembers every span id, so
// that lost and duplicate spans are detected.
//
//   const collector = await startFakeCollector(t, { tls, keepSpans })
//   collector.script = [{ status: 503 }, { hang: true }, { status: 200 }]   one per request, the last one repeats
//   collector.script = (request, number) => ({ … })
//   await collector.down(); await collector.up()                            on the same port
//
// Members of a behaviour: status, headers, body, delayMs (before the headers), partialSuccess: { rejectedSpans, errorMessage },
//   after: a promise (the answer waits for it),
//   trickle: { bytes, everyMs } (an endless body), raw: text instead of an HTTP answer, hang: true,
//   resetAt: number of body bytes after which the connection is reset, resetAfterUpload, closeAfterAnswer,
//   early: true (answers before it reads the body, and closes unless keepOpen), readEveryMs (reads the body slowly).

module.exports = { startFakeCollector }

const http = require('node:http')
const https = require('node:https')
const { once } = require('node:events')
const { listenAnew } = require('./new-port')
const { decodeSpans } = require('./otlp-decode')
const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root')

const Response = opentelemetry.proto.collector.trace.v1.ExportTraceServiceResponse

async function startFakeCollector (t, options = {}) {
  const collector = new FakeCollector(options)
  await collector.up()
  t.teardown(() => collector.down())
  return collector
}

class FakeCollector {
  script = [{ status: 200 }]
  requests = [] // { number, headers, at, isComplete, bytes, spans, status, remotePort }
  spans = [] // decoded, only with `keepSpans`
  connections = 0 // in total
  sockets = new Set() // open now
  #options
  #port = 0
  #server = null
  #changed = new Set()

  constructor (options) {
    this.#options = options
  }

  get url () {
    const { tls, host = '127.0.0.1', hostInUrl = host } = this.#options
    return `http${tls ? 's' : ''}://${hostInUrl}:${this.#port}/v1/traces`
  }

  // Span ids of requests that were answered with 2xx → how often each came.
  get delivered () {
    return countIds(this.requests.filter(({ status }) => status >= 200 && status < 300))
  }

  // Span ids that the collector has read completely more than once, whatever it answered.
  get duplicates () {
    return [...countIds(this.requests)].filter(([, times]) => times > 1).map(([id]) => id)
  }

  async up () {
    const onRequest = (req, res) => this.#onRequest(req, res)
    this.#server = this.#options.tls ? https.createServer(this.#options.tls, onRequest) : http.createServer(onRequest)
    this.#server.keepAliveTimeout = this.#options.keepAliveTimeout ?? 60_000
    this.#server.on('connection', (socket) => {
      this.connections++
      this.sockets.add(socket)
      socket.on('close', () => {
        this.sockets.delete(socket)
        this.#notify()
      })
      socket.on('error', () => {})
    })
    this.#server.on('tlsClientError', () => {})
    this.#port = await listenAnew(this.#server, { port: this.#port, host: this.#options.host })
  }

  async down () {
    if (!this.#server?.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.sockets) socket.destroy()
    await closed
  }

  renew (tls) {
    this.#options = { ...this.#options, tls }
  }

  // Resolves when the condition holds. It is checked after each event here and every few milliseconds.
  until (condition, timeoutMs = 20_000) {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (!condition(this)) return
        clearTimeout(timer)
        clearInterval(often)
        this.#changed.delete(look)
        resolve()
      }
      const often = setInterval(look, 10)
      const timer = setTimeout(() => {
        clearInterval(often)
        this.#changed.delete(look)
        reject(new Error(`${timeoutMs} ms went by, ${this.requests.length} requests came; waited for ${condition}`))
      }, timeoutMs)
      this.#changed.add(look)
      look()
    })
  }

  untilRequests (count) {
    return this.until(({ requests }) => requests.length >= count)
  }

  #notify () {
    for (const look of [...this.#changed]) look()
  }

  async #onRequest (req, res) {
    const number = this.requests.length
    const request = { number, headers: req.headers, at: performance.now(), isComplete: false, bytes: 0, spans: [], status: 0, remotePort: req.socket.remotePort }
    this.requests.push(request)
    const how = (typeof this.script === 'function' ? this.script(request, number) : this.script[Math.min(number, this.script.length - 1)]) ?? {}
    req.on('error', () => {})
    res.on('error', () => {})
    if (how.early) this.#answer(request, res, how)
    await this.#read(request, req, how)
    if (request.isComplete && !how.early && !req.socket.destroyed) await this.#afterUpload(request, req, res, how)
    this.#notify()
  }

  async #read (request, req, how) {
    const parts = []
    try {
      for await (const part of req) {
        request.bytes += part.length
        parts.push(part)
        if (request.bytes >= how.resetAt) return req.socket.resetAndDestroy()
        if (how.readEveryMs) await sleep(how.readEveryMs)
      }
    } catch { // the exporter gave up
      return
    }
    request.isComplete = req.complete
    if (!req.complete) return
    const spans = decodeSpans(Buffer.concat(parts), { gzip: req.headers['content-encoding'] === 'gzip' })
    request.spans = spans.map(({ spanId }) => spanId)
    if (this.#options.keepSpans) this.spans.push(...spans)
  }

  async #afterUpload (request, req, res, how) {
    if (how.hang) return
    if (how.resetAfterUpload) return req.socket.resetAndDestroy()
    if (how.delayMs) await sleep(how.delayMs)
    await how.after
    if (how.raw !== undefined) return how.closeAfterAnswer ? req.socket.end(how.raw) : req.socket.write(how.raw)
    this.#answer(request, res, how)
  }

  #answer (request, res, how) {
    const body = how.partialSuccess ? Response.encode({ partialSuccess: how.partialSuccess }).finish() : how.body
    request.status = how.status ?? 200
    res.writeHead(request.status, { 'content-type': 'application/x-protobuf', ...how.headers })
    if (how.trickle) return trickle(res, how.trickle)
    res.end(body, () => {
      if (how.closeAfterAnswer || (how.early && !how.keepOpen)) res.socket?.destroy()
      this.#notify()
    })
  }
}

function trickle (res, { bytes, everyMs }) {
  res.flushHeaders()
  const timer = setInterval(() => res.write(Buffer.alloc(bytes)), everyMs)
  res.on('close', () => clearInterval(timer))
}

function countIds (requests) {
  const counts = new Map()
  for (const { spans } of requests) {
    for (const id of spans) counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  return counts
}

function sleep (ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
