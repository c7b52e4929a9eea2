'use strict'

// The same with what an application asks for beyond the duration: attributes of its own, requests under way,
// body sizes, and streams left out.

const { attributeList } = require('./attribute-list')
const { ServerMetrics } = require('./server-metrics')
const { attributesOf, isCounted } = require('./route-series')
const { SeriesIndex } = require('./series-index')
const { BODY_SIZE } = require('./buckets')

const ACTIVE = { name: 'http.server.active_requests', unit: '{request}', description: 'Number of active HTTP server requests.', isInteger: true }
const REQUEST_SIZE = { name: 'http.server.request.body.size', unit: 'By', description: 'Size of HTTP server request bodies.', isInteger: true, bounds: BODY_SIZE }
const RESPONSE_SIZE = { name: 'http.server.response.body.size', unit: 'By', description: 'Size of HTTP server response bodies.', isInteger: true, bounds: BODY_SIZE }

const ATTRIBUTES_MAX = 32

class DetailedServerMetrics extends ServerMetrics {
  #attributes
  #streams
  #report
  #active
  #activeSeries = new Map() // method → scheme → series
  #requestSize
  #responseSize

  /**
   * @param {{ buckets?, attributes: Function | null, streams: boolean, activeRequests: boolean, bodySizes: boolean }} options
   */
  constructor (registry, scope, options, report) {
    super(registry, scope, options)
    this.#attributes = options.attributes
    this.#streams = options.streams
    this.#report = report
    this.#active = options.activeRequests ? registry.metric(scope, 'upDownCounter', ACTIVE) : null
    this.#requestSize = options.bodySizes ? registry.metric(scope, 'histogram', REQUEST_SIZE) : null
    this.#responseSize = options.bodySizes ? registry.metric(scope, 'histogram', RESPONSE_SIZE) : null
  }

  /** Counts a request up, where `activeRequests` is asked for; answers the series to count it down in. */
  started (method, scheme) {
    const series = this.#activeOf(method, scheme)
    series.add(1)
    return series
  }

  #activeOf (method, scheme) {
    let bySchemes = this.#activeSeries.get(method)
    if (bySchemes === undefined) this.#activeSeries.set(method, bySchemes = new Map())
    let series = bySchemes.get(scheme)
    if (series === undefined) bySchemes.set(scheme, series = this.#active.of(['http.request.method', method, 'url.scheme', scheme]))
    return series
  }

  ended (span, request, reply, response) {
    if (!isCounted(span)) return
    if (!this.#streams && isStream(reply, response)) return
    const entry = this.routes.find(span)
    const extra = this.#attributes === null || request === null ? null : this.#asked(request, reply)
    this.record(extra === null ? this.routes.seriesOf(entry, span) : this.#seriesWith(entry, span, extra), span)
    if (this.#requestSize !== null && request !== null) this.#recordSizes(entry, span, reply, response)
  }

  #asked (request, reply) {
    try {
      const answer = this.#attributes(request, reply)
      return typeof answer === 'object' && answer !== null && typeof answer.then !== 'function' ? answer : null
    } catch (error) {
      this.#report.once('LT_WARN_CALLBACK', `the function \`metrics.attributes\` failed: ${error?.message}`)
      return null
    }
  }

  #seriesWith (entry, span, extra) {
    entry.byAttributes ??= new SeriesIndex(this.duration.seriesMax)
    try {
      const found = entry.byAttributes.find(extra)
      if (found !== null && !found.isForgotten) return found
      const series = this.duration.of(this.#listOf(span, extra))
      if (!this.duration.isOverflow(series)) entry.byAttributes.add(extra, series)
      return series
    } catch { // a getter that throws
      return this.routes.seriesOf(entry, span)
    }
  }

  /** The conventions' attributes cannot be replaced: a dashboard relies on them. */
  #listOf (span, extra) {
    const own = attributesOf(span)
    const list = attributeList(extra, ATTRIBUTES_MAX, this.duration.attributeLengthMax)
    for (let i = 0; i < list.length; i += 2) if (!own.includes(list[i])) own.push(list[i], list[i + 1])
    return own
  }

  /** By the conventions' attributes alone. */
  #recordSizes (entry, span, reply, response) {
    const received = receivedBytes(reply.request.raw)
    if (received >= 0) (entry.requestSize = current(entry.requestSize, this.#requestSize, span)).record(received)
    const sent = span.httpStatus === 0 ? -1 : sentBytes(reply, response)
    if (sent >= 0) (entry.responseSize = current(entry.responseSize, this.#responseSize, span)).record(sent)
  }
}

function current (series, metric, span) {
  return series === null || series.isForgotten ? metric.of(attributesOf(span)) : series
}

/** Of a body as it came over the wire; -1 where nobody said how long it is. */
function receivedBytes ({ headers }) {
  if (headers['content-length'] !== undefined) return lengthOf(headers['content-length'])
  return headers['transfer-encoding'] === undefined ? 0 : -1
}

function sentBytes (reply, response) {
  const length = headerOf('content-length', reply, response)
  if (length !== undefined) return lengthOf(length)
  return hasNoBody(response) ? 0 : -1
}

function lengthOf (header) {
  const length = Number(header)
  return Number.isSafeInteger(length) && length >= 0 ? length : -1
}

function hasNoBody (response) {
  const { statusCode, req } = response
  return statusCode === 204 || statusCode === 304 || req?.method === 'HEAD'
}

/** An answer whose length nobody knew when it began: server-sent events, other streams, what was hijacked. */
function isStream (reply, response) {
  if (!response.headersSent || hasNoBody(response)) return false
  const type = headerOf('content-type', reply, response)
  if (typeof type === 'string' && type.startsWith('text/event-stream')) return true
  return headerOf('content-length', reply, response) === undefined
}

/** Fastify hands its headers to Node when it sends them: the response does not know them. */
function headerOf (name, reply, response) {
  return reply?.getHeader(name) ?? response.getHeader(name)
}

module.exports = { DetailedServerMetrics }
