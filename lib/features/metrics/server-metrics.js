'use strict'

// Records http.server.request.duration for every request, sampled or not. At the end of a request, `close` reads its record: a
// ServerSpan, or a RequestRecord with the same fields. https://opentelemetry.io/docs/specs/semconv/http/http-metrics/

const { HTTP_DURATION, keepExemplar, BODY_SIZE } = require('./histograms.js')
const { attributeList, SeriesIndex } = require('./series.js')
const { hasKey } = require('../../span/attributes.js')
const { NOT_FAILED, CAUGHT, isBroken, errorTypeOf } = require('../../span/outcome.js')
const { INVALID_SPAN } = require('../../span/child-span.js')
const { OPEN } = require('../../context/trace-context.js')
const { now } = require('../../runtime/timers.js')
const { atOnce } = require('../../runtime/report.js')

/** The record of a request without a ServerSpan: it is not sampled, is suppressed, or is traced by an SDK. */
class RequestRecord {
  /**
   * @param {import('../../span/child-span').NonRecordingSpan | ServerSpan} span the request's: it records nothing, belongs to an
   *   SDK, or has ended
   * @param {number} start monotonic milliseconds @param {RouteInfo} route @param {PeerInfo} peer
   */
  // HOT, once per unsampled request where metrics are on. Budget: 1 object.
  constructor (span, start, route, peer) {
    this.span = span
    this.exemplarFlags = span.flags
    this.start = start
    this.endedAt = OPEN
    this.route = route
    this.peer = peer
    this.httpStatus = 0
    this.errorType = ''
    this.error = undefined // what was thrown; the end decides whether it counts
    this.failed = NOT_FAILED
    this.reply = null // Fastify's; null again at the end
  }

  get apiSpan () { return this.span.apiSpan }
  get isTraced () { return this.span.isRecording() }
  /** The ids for an exemplar. */
  get traceContext () { return this.span }

  fail (error) {
    this.error = error
    this.failed = CAUGHT
    this.span.fail(error)
  }

  recordFailure (error) { this.fail(error) }
  keepFor (_reason) {}

  /** Does what ServerSpan.close does. HOT, once per unsampled request where metrics are on. */
  close (httpStatus, unfinished) {
    this.httpStatus = httpStatus
    if (isBroken(httpStatus, unfinished)) this.errorType = errorTypeOf(httpStatus, unfinished, this)
    this.error = undefined
    this.endedAt = now()
  }
}

// Finds the series of an ended request without creating a string. Each route and method has a linked list of entries, one for each
// combination of scheme, protocol version, status and error: usually one or two.

const SWITCHING_PROTOCOLS = 101 // the hours that a WebSocket is open are not a latency

// The most entries that a route keeps. Beyond that, a request with a new combination gets a temporary entry.
const ENTRIES_PER_ROUTE_MAX = 64

class Entry {
  constructor ({ httpStatus, errorType, peer }) {
    this.httpStatus = httpStatus
    this.errorType = errorType
    this.scheme = peer.scheme
    this.protocolVersion = peer.protocolVersion
    this.series = null
    this.byAttributes = null // a SeriesIndex of the series with the user's attributes
    this.requestSize = null // the series of the body sizes
    this.responseSize = null
    this.next = null
    this.others = 0 // on the first entry: how many others were created
  }
}

/** The entry of an ended request. */
// HOT, once per request. Budget: 0 objects, 0 strings.
function entryOf (span) {
  const { httpStatus, errorType, peer, route } = span
  let entry = route.series
  while (entry !== null && (entry.httpStatus !== httpStatus || entry.errorType !== errorType ||
    entry.scheme !== peer.scheme || entry.protocolVersion !== peer.protocolVersion)) entry = entry.next
  return entry === null ? addEntry(span) : entry
}

// Inserts after the first entry, which most requests match.
function addEntry (span) {
  const entry = new Entry(span)
  const { route } = span
  const first = route.series
  if (first === null) return (route.series = entry)
  if (++first.others >= ENTRIES_PER_ROUTE_MAX) return entry
  entry.next = first.next
  return (first.next = entry)
}

function isCounted ({ httpStatus, route }) {
  return httpStatus !== SWITCHING_PROTOCOLS && route.isMeasured
}

/** The attributes that the conventions require, as a flat list, with the values that the span has. */
function attributesOf ({ route, peer, httpStatus, errorType }) {
  const list = ['http.request.method', route.method, 'url.scheme', peer.scheme]
  if (httpStatus !== 0) list.push('http.response.status_code', httpStatus)
  if (route.route !== '') list.push('http.route', route.route)
  if (peer.protocolVersion !== '') list.push('network.protocol.version', peer.protocolVersion)
  if (errorType !== '') list.push('error.type', errorType)
  return list
}

const DURATION = { name: 'http.server.request.duration', unit: 's', description: 'Duration of HTTP server requests.' }
const ACTIVE = { name: 'http.server.active_requests', unit: '{request}', description: 'Number of active HTTP server requests.', isInteger: true, bounds: undefined }
const REQUEST_SIZE = { name: 'http.server.request.body.size', unit: 'By', description: 'Size of HTTP server request bodies.', isInteger: true, bounds: BODY_SIZE }
const RESPONSE_SIZE = { name: 'http.server.response.body.size', unit: 'By', description: 'Size of HTTP server response bodies.', isInteger: true, bounds: BODY_SIZE }

const ATTRIBUTES_MAX = 32

// On the raw response: its series of active requests, which is decremented at the end.
const kActive = Symbol('light-trace.active')

class ServerMetrics {
  #options
  /** @type {Report} */ #report
  #active
  #activeSeries = new Map() // method -> scheme -> series
  #requestSize
  #responseSize

  /**
   * @param {MetricRegistry | ForeignRegistry} registry @param {Scope} scope
   * @param {{ buckets?: number[], attributes?: Function | null, activeRequests?: boolean, bodySizes?: boolean }} options
   */
  constructor (registry, scope, options, report) {
    this.#options = options
    this.#report = report
    this.duration = registry.metric(scope, 'histogram', { ...DURATION, bounds: options.buckets ?? HTTP_DURATION })
    this.#active = options.activeRequests ? registry.metric(scope, 'upDownCounter', ACTIVE) : null
    this.#requestSize = options.bodySizes ? registry.metric(scope, 'histogram', REQUEST_SIZE) : null
    this.#responseSize = options.bodySizes ? registry.metric(scope, 'histogram', RESPONSE_SIZE) : null
    this.exemplarMask = registry.exemplarFlags.mask
    this.exemplarSet = registry.exemplarFlags.set
    // Keeps one object of this shape alive for V8: see lib/span/span-starter.js.
    this.retained = new RequestRecord(INVALID_SPAN, 0.5, null, null)
    this.retained.endedAt = 0.5
  }

  /** Called when a request begins. */
  started ({ route, peer }, response) {
    if (this.#active === null || !route.isMeasured) return
    const series = this.#activeOf(route.method, peer.scheme)
    series.record(1)
    response[kActive] = series
  }

  /** Called when the response is over, however it ended. */
  left (response) {
    if (this.#active !== null && response[kActive] !== undefined) response[kActive].record(-1)
  }

  #activeOf (method, scheme) {
    let bySchemes = this.#activeSeries.get(method)
    if (bySchemes === undefined) this.#activeSeries.set(method, bySchemes = new Map())
    let series = bySchemes.get(scheme)
    if (series === undefined) bySchemes.set(scheme, series = this.#active.of(['http.request.method', method, 'url.scheme', scheme]))
    return series
  }

  /** Ends and measures a request. One without Fastify's reply had no route. HOT, once per request where metrics are on. */
  close (record, status, unfinished, reply) {
    if (record.endedAt === OPEN) {
      record.close(status, unfinished)
      this.ended(record, reply)
      return
    }
    // The application ended the span before the request ended: the whole request is measured.
    const whole = new RequestRecord(record, record.start, record.route, record.peer)
    if (record.failed !== NOT_FAILED) whole.fail(record.error)
    record.close(status, unfinished)
    whole.close(status, unfinished)
    whole.exemplarFlags = record.exemplarFlags
    this.ended(whole, reply)
  }

  // HOT, once per request where metrics are on. Budget: 0 objects, 0 strings. Proof: bench/micro/metrics.bench.js
  ended (span, reply) {
    const { attributes } = this.#options
    const entry = entryOf(span)
    const series = attributes === null || reply === null ? this.seriesOf(entry, span) : this.#seriesAsked(entry, span, reply)
    if (series === null) return
    this.record(series, span)
    if (this.#requestSize !== null && reply !== null) this.#recordSizes(entry, span, reply)
  }

  /** The series of an entry, without the user's attributes; null for requests that are not counted. HOT, once per request. */
  seriesOf (entry, span) {
    const { series } = entry
    if (series !== null && !series.isForgotten) return series
    return isCounted(span) ? (entry.series = this.duration.of(attributesOf(span))) : null
  }

  // HOT, once per request where metrics are on.
  record (series, span) {
    const { endedAt } = span
    const seconds = (endedAt - span.start) / 1000
    const slot = series.record(seconds)
    if (((span.exemplarFlags | this.exemplarSet) & this.exemplarMask) !== 0) keepExemplar(series, slot, seconds, endedAt, span.traceContext)
  }

  /** The same with the attributes of the user's function. */
  #seriesAsked (entry, span, reply) {
    if (!isCounted(span)) return this.seriesOf(entry, span)
    try {
      const extra = atOnce(this.#options.attributes(reply.request, reply))
      if (typeof extra !== 'object' || extra === null) return this.seriesOf(entry, span)
      entry.byAttributes ??= new SeriesIndex(this.duration)
      const found = entry.byAttributes.find(extra)
      if (found !== null) return found
      const series = this.duration.of(this.#listOf(span, extra))
      entry.byAttributes.add(extra, series)
      return series
    } catch (error) { // thrown by the function, or by a getter of what it returned
      this.#report.failed('LT_WARN_CALLBACK', 'the function `metrics.attributes` failed', error)
      return this.seriesOf(entry, span)
    }
  }

  /** The conventions' attributes, which the user's cannot replace because dashboards rely on them, and then the user's. */
  #listOf (span, extra) {
    const own = attributesOf(span)
    const list = attributeList(extra, ATTRIBUTES_MAX, this.duration.attributeLengthMax)
    for (let i = 0; i < list.length; i += 2) if (!hasKey(own, list[i])) own.push(list[i], list[i + 1])
    return own
  }

  /** Records the body sizes with the conventions' attributes only. */
  #recordSizes (entry, span, reply) {
    const received = receivedBytes(reply.request.raw)
    if (received >= 0) (entry.requestSize = current(entry.requestSize, this.#requestSize, span)).record(received)
    const sent = span.httpStatus === 0 ? -1 : sentBytes(span, reply)
    if (sent >= 0) (entry.responseSize = current(entry.responseSize, this.#responseSize, span)).record(sent)
  }
}

function current (series, metric, span) {
  return series === null || series.isForgotten ? metric.of(attributesOf(span)) : series
}

/** The size of the request body on the wire; -1 if the headers do not give it. */
function receivedBytes ({ headers }) {
  if (headers['content-length'] !== undefined) return lengthOf(headers['content-length'])
  return headers['transfer-encoding'] === undefined ? 0 : -1
}

function sentBytes ({ httpStatus }, reply) {
  // These responses have no body: a content-length is that of the body which GET would return.
  if (httpStatus === 204 || httpStatus === 304 || reply.request.raw.method === 'HEAD') return 0
  const length = reply.getHeader('content-length')
  return length === undefined ? -1 : lengthOf(length)
}

function lengthOf (header) {
  const length = Number(header)
  return Number.isSafeInteger(length) && length >= 0 ? length : -1
}

module.exports = { RequestRecord, ServerMetrics }
