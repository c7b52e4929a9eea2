'use strict'

// POST /v1/traces, /v1/metrics, /v1/logs: OTLP over HTTP. https://opentelemetry.io/docs/specs/otlp/#otlphttp

const { Malformed } = require('../otlp/proto-reader')
const { bodyText } = require('../otlp/json-body')
const { Message } = require('../otlp/proto-writer')
const { Refused } = require('./body')
const { sendingOrigin } = require('./security')

const PROTOBUF = 'application/x-protobuf'
const JSON_TYPE = 'application/json'
const RETRY_AFTER_SECONDS = '1'

const REJECTED = { traces: 'rejectedSpans', logs: 'rejectedLogRecords', metrics: 'rejectedDataPoints' }
const TOO_LARGE = 'what comes with a resource and scope of more than 64 KiB'
const OF_A_TRACE = `the viewer drops spans without valid ids, spans of a trace that is larger than half of --max-bytes, and ${TOO_LARGE}`
const PARTIAL_MESSAGES = {
  traces: OF_A_TRACE,
  logs: OF_A_TRACE,
  metrics: `the viewer drops points that break the rules of their kind, values that are not finite, series beyond 2,000 or its memory, and ${TOO_LARGE}`
}

class Receiver {
  #store
  #bodies
  received = { requests: 0, spans: 0, bytes: 0, metrics: 0, logs: 0, imported: 0 }
  refused = { requests: 0, reasons: {} }

  /** Called with what was kept of each request, of many spans or log lines in portions: (spans: StoredSpan[], lines: StoredLine[]) => void. */
  save = null

  constructor (store, bodies) {
    this.#store = store
    this.#bodies = bodies
  }

  /** @param {'traces' | 'metrics' | 'logs'} signal */
  async handle (request, response, signal) {
    const type = (request.headers['content-type'] ?? '').split(';')[0].trim().toLowerCase()
    const origin = sendingOrigin(request)
    if (origin) allow(response, origin)
    try {
      if (origin === null) throw new Refused(403, 'origin', 'only pages on localhost may send')
      if (request.method === 'OPTIONS' && origin !== undefined) return response.writeHead(204).end()
      if (request.method !== 'POST') throw new Refused(405, 'method', 'use POST')
      if (type !== PROTOBUF && type !== JSON_TYPE) throw new Refused(415, 'media_type', `content-type must be ${PROTOBUF} or ${JSON_TYPE}`)
      const dropped = this.take(signal, await this.#bodies.read(request), type === JSON_TYPE)
      answer(response, type, signal, dropped)
    } catch (error) {
      this.#refuse(request, response, type, error)
    }
  }

  /**
   * Stores the body of a request, however it came.
   * @param {'traces' | 'metrics' | 'logs'} signal
   * @param {Buffer} body
   * @param {boolean} isJson OTLP JSON; otherwise protobuf
   * @returns {number} how many spans, log records or points were dropped @throws Malformed
   */
  take (signal, body, isJson) {
    const dropped = this.#take(signal, body, isJson)
    this.received.bytes += body.length
    return dropped
  }

  #take (signal, body, isJson) {
    const otlp = isJson ? fromJson(body, signal) : body
    switch (signal) {
      case 'logs': return this.#takeLines(otlp)
      case 'metrics': return this.#takeMetrics(otlp)
      default: return this.#takeSpans(otlp)
    }
  }

  #takeMetrics (otlp) {
    const dropped = this.#store.receiveMetrics(otlp)
    this.received.metrics++
    return dropped
  }

  #takeSpans (otlp) {
    const before = this.#store.receivedSpans
    try {
      const { dropped } = this.#store.receive(otlp, (touched) => this.save?.([...touched.values()].flat(), []))
      this.received.requests++
      return dropped
    } finally {
      this.received.spans += this.#store.receivedSpans - before // also those before a malformed part
    }
  }

  #takeLines (otlp) {
    const { dropped } = this.#store.receiveLines(otlp, (lines) => this.save?.([], lines))
    this.received.logs++
    return dropped
  }

  /** Counts a refusal, however the request came. @returns {number} the status of HTTP. @throws what is not a refusal */
  refusal (error) {
    const { status, reason } = error instanceof Malformed ? { status: 400, reason: 'malformed' } : error
    if (status === undefined) throw error
    this.refused.requests++
    this.refused.reasons[reason] = (this.refused.reasons[reason] ?? 0) + 1
    return status
  }

  #refuse (request, response, type, error) {
    const status = this.refusal(error)
    if (response.destroyed) return
    if (status === 503) response.setHeader('retry-after', RETRY_AFTER_SECONDS)
    if (status === 405) response.setHeader('allow', 'POST')
    // Otherwise the rest of the body would be read for nothing.
    if (!request.complete) response.setHeader('connection', 'close')
    const text = error.message
    if (type === PROTOBUF) {
      const rpcStatus = new Message()
      rpcStatus.text(2, text)
      send(response, status, PROTOBUF, rpcStatus.finish())
    } else send(response, status, JSON_TYPE, JSON.stringify({ message: text }))
  }
}

function fromJson (body, signal) {
  const text = bodyText(body)
  let json
  try {
    json = JSON.parse(text)
  } catch (error) {
    throw new Malformed(`the body is not JSON: ${error.message.slice(0, 200)}`)
  }
  if (signal === 'metrics') return require('../otlp/json-metrics').metricsFromJson(json)
  const { requestFromJson, logsFromJson } = require('../otlp/json-request')
  return signal === 'logs' ? logsFromJson(json) : requestFromJson(json)
}

function answer (response, type, signal, dropped) {
  if (type === PROTOBUF) return send(response, 200, type, responseOf(dropped, signal))
  send(response, 200, type, JSON.stringify(dropped === 0 ? {} : { partialSuccess: { [REJECTED[signal]]: String(dropped), errorMessage: PARTIAL_MESSAGES[signal] } }))
}

// ExportTraceServiceResponse { partial_success = 1 { rejected_spans = 1; error_message = 2 } }, and the same for the other signals
function responseOf (dropped, signal = 'traces') {
  const message = new Message()
  if (dropped !== 0) {
    const inner = new Message()
    inner.varint(1, dropped)
    inner.text(2, PARTIAL_MESSAGES[signal])
    message.message(1, inner)
  }
  return message.finish()
}

function send (response, status, type, body) {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body)
}

// Pages on localhost may send telemetry. They learn only whether it was accepted.
function allow (response, origin) {
  response.setHeader('access-control-allow-origin', origin)
  response.setHeader('access-control-allow-headers', 'content-type, content-encoding, authorization')
  response.setHeader('access-control-allow-methods', 'POST')
  response.setHeader('access-control-max-age', '3600')
  response.setHeader('vary', 'origin')
}

module.exports = { Receiver, responseOf }
