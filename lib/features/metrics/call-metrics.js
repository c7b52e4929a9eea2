'use strict'

// http.client.request.duration and db.client.operation.duration, from the spans of calls. What a span says of its server and its
// answer is shared by many calls: there the series hangs.
// https://opentelemetry.io/docs/specs/semconv/http/http-metrics/#http-client
// https://opentelemetry.io/docs/specs/semconv/db/database-metrics/

const { OPEN, copyIds, readSpanContext } = require('../../context/trace-context.js')
const { NonRecordingSpan } = require('../../span/child-span.js')
const { hasKey, setAttributes } = require('../../span/attributes.js')
const { now, fromTimeInput } = require('../../runtime/timers.js')
const { HTTP_DURATION, DB_DURATION, keepExemplar } = require('./histograms.js')
const { SeriesIndex } = require('./series.js')

const HTTP = { name: 'http.client.request.duration', unit: 's', description: 'Duration of HTTP client requests.', bounds: HTTP_DURATION }
const DB = { name: 'db.client.operation.duration', unit: 's', description: 'Duration of database client operations.', bounds: DB_DURATION }

const HTTP_KEYS = new Set([
  'http.request.method', 'server.address', 'server.port', 'http.response.status_code', 'error.type', 'network.protocol.version'
])
const DB_KEYS = new Set([
  'db.system.name', 'db.namespace', 'db.operation.name', 'db.collection.name', 'db.query.summary', 'db.response.status_code',
  'error.type', 'server.address', 'server.port'
])

class CallMetrics {
  #http // finds a series by a call's attributes
  #db
  #exemplarFlags

  /** @param {MetricRegistry | ForeignRegistry} registry @param {Scope} scope */
  constructor (registry, scope) {
    this.#http = seriesFinder(registry.metric(scope, 'histogram', HTTP), HTTP_KEYS)
    this.#db = seriesFinder(registry.metric(scope, 'histogram', DB), DB_KEYS)
    this.#exemplarFlags = registry.exemplarFlags
  }

  /**
   * @param {ChildSpan | MeasuredCall | FoldedCall} span of a call, that has ended
   * @param {ChildSpan | MeasuredCall | FoldedCall} [exported] the one that an exemplar names
   */
  // HOT, once per call where metrics are on.
  ended (span, exported = span) {
    const series = span.info !== null && span.attributeList === null ? this.#ofInfo(span.info) : this.#ofList(listOf(span))
    if (series === null) return
    const seconds = (span.endedAt - span.start) / 1000
    const slot = series.record(seconds)
    const { mask, set } = this.#exemplarFlags
    if (((exported.flags | set) & mask) !== 0) keepExemplar(series, slot, seconds, span.endedAt, exported)
  }

  /** A span to use in place of `span`, which measures the call when it ends. */
  measured (span, start, attributeList) {
    return new MeasuredCall(span, start, attributeList, this)
  }

  /** Kept with what calls to one server with one answer have in common. Applications in one process share that. */
  #ofInfo (info) {
    if (info.seriesOwner !== this || (info.series !== null && info.series.isForgotten)) {
      info.series = this.#ofList(wholeOf(info))
      info.seriesOwner = this
    }
    return info.series
  }

  /** Null for calls that have no metric. */
  #ofList (list) {
    if (hasKey(list, 'http.request.method')) return this.#http(list)
    return hasKey(list, 'db.system.name') ? this.#db(list) : null
  }
}

/** What there is to measure, also of what does not leave the process: the metric is chosen by it. */
function wholeOf (info) { return (info.whole ?? info).attributeList }

function listOf ({ info, attributeList }) { return info === null ? attributeList ?? [] : [...wholeOf(info), ...attributeList] }

const ATTRIBUTES_MAX = 128
const VALUE_LENGTH_MAX = 1024

/** A call's span that an SDK makes, or that a sampler was asked for. What is set on it is kept in two places. */
class MeasuredCall extends NonRecordingSpan {
  #inner
  #metrics

  /** @param {number} start monotonic milliseconds */
  constructor (inner, start, attributeList, metrics) {
    super()
    this.#inner = inner
    this.#metrics = metrics
    this.start = start
    this.endedAt = OPEN
    this.info = null
    this.attributeList = attributeList
    const trace = readSpanContext(inner)
    if (trace !== undefined) copyIds(trace, this)
  }

  isRecording () { return this.endedAt === OPEN }
  spanContext () { return this.#inner.spanContext() }
  allAttributes () { return this.attributeList }

  setAttribute (key, value) { return this.setAttributes({ [key]: value }) }

  setAttributes (attributes) {
    setAttributes(this.attributeList, attributes, ATTRIBUTES_MAX, VALUE_LENGTH_MAX)
    this.#inner.setAttributes(attributes)
    return this
  }

  setStatus (status) {
    this.#inner.setStatus(status)
    return this
  }

  addLink (link) {
    this.#inner.addLink(link)
    return this
  }

  end (endTime) {
    if (this.endedAt !== OPEN) return
    this.endedAt = Math.max(this.start, fromTimeInput(endTime, now()))
    this.#inner.end(endTime)
    this.#metrics.ended(this)
  }
}

/** Finds the series of a metric by values: databases' calls differ in what they do. */
function seriesFinder (metric, keys) {
  const index = new SeriesIndex(metric)
  return (list) => {
    const found = index.findList(list, keys)
    if (found !== null) return found
    const kept = []
    for (let i = 0; i < list.length; i += 2) if (keys.has(list[i])) kept.push(list[i], list[i + 1])
    const series = metric.of(kept)
    index.addList(kept, series)
    return series
  }
}

module.exports = { CallMetrics, MeasuredCall }
