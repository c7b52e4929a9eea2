'use strict'

// Records http.client.request.duration and db.client.operation.duration from the spans of calls. Many calls share one object
// (`info`) with the attributes of their server and response, so the series is cached on it.
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
  #http // finds the series of a call's attributes
  #db
  #exemplarFlags

  /** @param {MetricRegistry | ForeignRegistry} registry @param {Scope} scope */
  constructor (registry, scope) {
    this.#http = seriesFinder(registry.metric(scope, 'histogram', HTTP), HTTP_KEYS)
    this.#db = seriesFinder(registry.metric(scope, 'histogram', DB), DB_KEYS)
    this.#exemplarFlags = registry.exemplarFlags
  }

  /**
   * @param {ChildSpan | MeasuredCall | FoldedCall} span of a call that has ended
   * @param {ChildSpan | MeasuredCall | FoldedCall} [exported] the span whose ids an exemplar gets
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

  /** Wraps `span` in one that measures the call when it ends. */
  measured (span, start, attributeList) {
    return new MeasuredCall(span, start, attributeList, this)
  }

  /** The series, cached on `info`. Applications in one process share `info`, so the cache has an owner. */
  #ofInfo (info) {
    if (info.seriesOwner !== this || (info.series !== null && info.series.isForgotten)) {
      info.series = this.#ofList(wholeOf(info))
      info.seriesOwner = this
    }
    return info.series
  }

  /** Returns null for calls without a metric. */
  #ofList (list) {
    if (hasKey(list, 'http.request.method')) return this.#http(list)
    return hasKey(list, 'db.system.name') ? this.#db(list) : null
  }
}

/** All attributes of `info`, including omitted ones that are not exported: they select the metric. */
function wholeOf (info) { return (info.whole ?? info).attributeList }

function listOf ({ info, attributeList }) { return info === null ? attributeList ?? [] : [...wholeOf(info), ...attributeList] }

const ATTRIBUTES_MAX = 128
const VALUE_LENGTH_MAX = 1024

/** Wraps the span of a call if an SDK created it or a sampler decided about it. It keeps a copy of the attributes for the metric. */
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

/** Returns a function that finds the series of a list of attributes; only the keys in `keys` count. */
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
