'use strict'

// A collector on loopback that accepts spans, metrics and log records. `answer` decides how it responds.
//
//   const sink = await startMetricSink(t)
//   sink.answer = (path, number, byteCount) => ({ status: 503 })      called for each request; 200 by default
//   await sink.metric('http.server.request.duration')       the newest metric with this name, when one has arrived

module.exports = { startMetricSink }

const http = require('node:http')
const zlib = require('node:zlib')
const { listenAnew } = require('./new-port')
const { decodeMetrics } = require('./metric-decode')
const { decodeSpans } = require('./otlp-decode')
const { decodeLogs } = require('./log-decode')

async function startMetricSink (t) {
  const sink = new MetricSink()
  await sink.up()
  t.teardown(() => sink.down())
  return sink
}

class MetricSink {
  answer = () => ({ status: 200 })
  requests = [] // { path, headers, socket, metrics | spans | records, status }
  connections = 0
  #server = null
  #port = 0
  #waiting = new Set()

  get origin () { return `http://127.0.0.1:${this.#port}` }
  get url () { return `${this.origin}/v1/traces` }

  /** The log records that were accepted. */
  get records () { return this.requests.filter(({ status }) => status === 200).flatMap(({ records = [] }) => records) }

  get exports () { return this.requests.filter(({ path, status }) => path === '/v1/metrics' && status === 200) }

  async up () {
    this.#server = http.createServer((request, response) => this.#take(request, response))
    this.#server.on('connection', () => { this.connections++ })
    this.#port = await listenAnew(this.#server, { port: this.#port })
  }

  async down () {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** Resolves to the newest accepted metric with this name. */
  metric (name) {
    return this.until(() => this.exports.flatMap(({ metrics }) => metrics).findLast((metric) => metric.name === name))
  }

  /** Resolves to the result of `find` as soon as it is truthy. */
  until (find) {
    return new Promise((resolve) => {
      const look = () => {
        const found = find()
        if (!found) return
        this.#waiting.delete(look)
        resolve(found)
      }
      this.#waiting.add(look)
      look()
    })
  }

  async #take (request, response) {
    const chunks = []
    try {
      for await (const chunk of request) chunks.push(chunk)
    } catch {
      return // the exporter gave up
    }
    const isZstd = request.headers['content-encoding'] === 'zstd'
    const bytes = isZstd ? zlib.zstdDecompressSync(Buffer.concat(chunks)) : Buffer.concat(chunks)
    const { status, headers = {}, body = '', hang = false } = this.answer(request.url, this.requests.length, bytes.length)
    if (hang) return this.requests.push({ path: request.url, headers: request.headers, status: 0 })
    const decoded = request.url.endsWith('/v1/traces')
      ? { spans: decodeSpans(bytes) }
      : request.url.endsWith('/v1/logs') ? { records: decodeLogs(bytes) } : { metrics: decodeMetrics(bytes) }
    this.requests.push({ path: request.url, headers: request.headers, bytes: bytes.length, status, ...decoded })
    response.writeHead(status, headers).end(body)
    for (const look of this.#waiting) look()
  }
}
