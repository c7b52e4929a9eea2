'use strict'

// The collector at the exporter's URL during a soak. It decodes each body with a third-party decoder, counts every span id, fails as the
// schedule says, and otherwise forwards bodies to real collectors.

const http = require('node:http')
const zlib = require('node:zlib')
const { once } = require('node:events')
const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root')
const { decodeSpans } = require('../../test/support/otlp-decode')

const MetricsRequest = opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest
const Response = opentelemetry.proto.collector.trace.v1.ExportTraceServiceResponse

class SoakCollector {
  how = {} // see schedule.js
  requests = 0
  rejected = 0
  connections = 0
  connectionsMost = 0
  measured = 0 // the request count in the last metrics received
  #read = new Map() // id → how many times its body was read completely
  #acknowledged = new Map() // id → how many times it was read and answered with 2xx
  #sockets = new Set()
  #server = null
  #port = 0

  get url () {
    return `http://127.0.0.1:${this.#port}/v1/traces`
  }

  get counts () {
    let duplicates = 0
    for (const times of this.#read.values()) duplicates += times - 1
    return { acknowledged: this.#acknowledged.size, rejected: this.rejected, read: this.#read.size, duplicates }
  }

  async up () {
    if (this.#server !== null) return
    this.#server = http.createServer((req, res) => this.#onRequest(req, res))
    this.#server.on('connection', (socket) => {
      this.connections++
      this.#sockets.add(socket)
      this.connectionsMost = Math.max(this.connectionsMost, this.#sockets.size)
      socket.on('error', () => {})
      socket.on('close', () => this.#sockets.delete(socket))
    })
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = this.#server.address().port
  }

  async down () {
    if (this.#server === null) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server = null
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async #onRequest (req, res) {
    const { how } = this
    this.requests++
    req.on('error', () => {})
    res.on('error', () => {})
    if (how.early) return this.#answer(res, how, [])
    const body = await readBody(req, how)
    if (body === null) return
    if (req.url === '/v1/metrics') return this.#onMetrics(req, res, body, how)
    const ids = decodeSpans(body, { gzip: req.headers['content-encoding'] === 'gzip' }).map(({ spanId, traceId }) => traceId + spanId)
    for (const id of ids) this.#read.set(id, (this.#read.get(id) ?? 0) + 1)
    if (how.hang) return
    if (how.resetAfterUpload) return req.socket.resetAndDestroy()
    if (how.forward !== undefined) return this.#forward(req, res, body, ids, how.forward)
    this.#answer(res, how, ids)
  }

  // Metrics are cumulative, so later values replace earlier ones.
  #onMetrics (req, res, body, { hang, resetAfterUpload, status = 200, headers = {} }) {
    if (hang) return
    if (resetAfterUpload) return req.socket.resetAndDestroy()
    if (status === 200) this.measured = requestsIn(req.headers['content-encoding'] === 'gzip' ? zlib.gunzipSync(body) : body)
    res.writeHead(status, headers).end()
  }

  #answer (res, { status = 200, headers = {}, trickle = false, early = false, reject = 0 }, ids) {
    const rejectedSpans = Math.min(reject, ids.length)
    this.rejected += rejectedSpans
    res.writeHead(status, { 'content-type': 'application/x-protobuf', ...headers })
    this.#acknowledge(status, ids)
    if (trickle) {
      const timer = setInterval(() => res.write(Buffer.alloc(1)), 50)
      res.on('close', () => clearInterval(timer))
    } else res.end(reject === 0 ? undefined : Response.encode({ partialSuccess: { rejectedSpans, errorMessage: 'as asked for' } }).finish(), () => early && res.socket?.destroy())
  }

  #forward (req, res, body, ids, url) {
    const forwarded = http.request(url, { method: 'POST', headers: { ...req.headers, host: new URL(url).host } }, (answer) => {
      this.#acknowledge(answer.statusCode, ids)
      res.writeHead(answer.statusCode, answer.headers)
      answer.pipe(res)
    })
    forwarded.on('error', () => res.destroy())
    forwarded.end(body)
  }

  #acknowledge (status, ids) {
    if (status < 200 || status > 299) return
    for (const id of ids) this.#acknowledged.set(id, (this.#acknowledged.get(id) ?? 0) + 1)
  }
}

function requestsIn (body) {
  const metrics = MetricsRequest.decode(body).resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics).flatMap(({ metrics }) => metrics)
  const duration = metrics.find(({ name }) => name === 'http.server.request.duration') // undefined before the first request
  return (duration?.histogram.dataPoints ?? []).reduce((sum, { count }) => sum + Number(count), 0)
}

async function readBody (req, { resetAt = Infinity, slowly = false }) {
  const parts = []
  let bytes = 0
  try {
    for await (const part of req) {
      bytes += part.length
      parts.push(part)
      if (bytes >= resetAt) {
        req.socket.resetAndDestroy()
        return null
      }
      if (slowly) await new Promise((resolve) => setTimeout(resolve, 30))
    }
  } catch {
    return null
  }
  return req.complete ? Buffer.concat(parts) : null
}

module.exports = { SoakCollector }
