'use strict'

// Metrics as lines of OTLP JSON. A collection is one line, unless that would be longer than collectors of logs take.

const clock = require('../runtime/timers')
const { SCHEMA_URL } = require('../span/recording-span')
const { resourceOf, scopeOf, attributesOf, double, clean } = require('../otlp/json')
const { setImmediate } = require('../runtime/timers')
const { collect, nanosOf, NO_RETRY, TEMPORALITY_DELTA, TEMPORALITY_CUMULATIVE } = require('./collection')

// Some 0.5 ms of the event loop.
const POINTS_PER_STEP = 64
// Cloud Logging takes 256 KiB.
const LINE_LENGTH_MAX = 200_000

const POINTS = { gauge: numberPoint, sum: numberPoint, histogram: histogramPoint, exponentialHistogram: exponentialPoint }

class MetricJson {
  #resource
  #takesDeltas

  /**
   * @param {{ attributes: object }} resource
   * @param {boolean} takesDeltas false where another exporter takes what came since the last delivery
   */
  constructor (resource, takesDeltas) {
    this.#resource = JSON.stringify(resourceOf(resource))
    this.#takesDeltas = takesDeltas
  }

  /** The batches of one collection, see `collect`: the body of each is a line without its end. */
  encode (scopes, nowMs, sinceMs) {
    const lengthMax = LINE_LENGTH_MAX - this.#resource.length
    const settings = { nowMs, sinceMs, takesDeltas: this.#takesDeltas, pointsPerStep: POINTS_PER_STEP, lengthMax }
    const begin = `{"resourceMetrics":[{"resource":${this.#resource},"schemaUrl":${JSON.stringify(SCHEMA_URL)},"scopeMetrics":[`
    const body = (parts) => `${begin}${parts.map(scopeText)}]}]}`
    return collect(scopes, settings, { head: headText, point: pointText, body })
  }
}

function scopeText ({ scope, metrics }) {
  const schemaUrl = scope.schemaUrl === undefined ? '' : `,"schemaUrl":${JSON.stringify(clean(scope.schemaUrl))}`
  return `{"scope":${JSON.stringify(scopeOf(scope))}${schemaUrl},"metrics":[${metrics.map(metricText)}]}`
}

function metricText ({ metric: { kind, isMonotonic }, isDelta, head, points }) {
  const temporality = kind === 'gauge' ? '' : `"aggregationTemporality":${isDelta ? TEMPORALITY_DELTA : TEMPORALITY_CUMULATIVE},`
  const monotonic = kind === 'sum' ? `"isMonotonic":${isMonotonic},` : ''
  return `${head},"${kind}":{${temporality}${monotonic}"dataPoints":[${points}]}}`
}

function headText ({ name, description, unit }) {
  const head = { name: clean(name), description: clean(description) || undefined, unit: clean(unit) || undefined }
  return JSON.stringify(head).slice(0, -1)
}

function pointText (metric, series, point, { start, now, sinceMs }) {
  return JSON.stringify({
    attributes: attributesOf(series.attributes),
    startTimeUnixNano: metric.kind === 'gauge' ? undefined : String(start),
    timeUnixNano: String(now),
    ...POINTS[metric.kind](point, metric),
    exemplars: exemplarsOf(series, sinceMs, metric)
  })
}

function numberPoint ({ value }, { isInteger }) {
  return isInteger ? { asInt: String(value) } : { asDouble: double(value) }
}

function histogramPoint ({ counts, count, sum, min, max }, { bounds }) {
  return {
    count: String(count),
    sum: double(sum),
    bucketCounts: counts.map(String),
    explicitBounds: Array.from(bounds.subarray(0, -1)),
    ...extremes(min, max)
  }
}

function exponentialPoint (point) {
  const { offset, counts } = point.buckets()
  return {
    count: String(point.count),
    sum: double(point.sum),
    scale: point.scale,
    zeroCount: String(point.zeroCount),
    positive: counts.length === 0 ? undefined : { offset, bucketCounts: counts.map(String) },
    ...extremes(point.min, point.max)
  }
}

/** A false zero would be believed. */
function extremes (min, max) {
  return min <= max ? { min: double(min), max: double(max) } : {}
}

function exemplarsOf ({ exemplars }, sinceMs, metric) {
  const fresh = exemplars?.filter((exemplar) => exemplar !== null && exemplar.timeMs > sinceMs) ?? []
  if (fresh.length === 0) return undefined
  return fresh.map((exemplar) => ({
    timeUnixNano: String(nanosOf(exemplar.timeMs)),
    ...numberPoint(exemplar, metric),
    spanId: exemplar.spanId,
    traceId: exemplar.traceId
  }))
}

// `metrics: { exporter: 'otlp/stdout' }`: each collection as a line of OTLP JSON on standard output, for platforms that
// collect nothing else. What is written counts as delivered.
// https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/

class MetricLines {
  #options
  #json
  #writtenMs = -Infinity

  /** @param {{ registry: MetricRegistry, resource: object, takesDeltas: boolean, write (line: string): void, stats: object }} options */
  constructor (options) {
    this.#options = options
    this.#json = new MetricJson(options.resource, options.takesDeltas)
  }

  hold () {}
  abort () {}
  close () {}

  /** Collects and writes. See MetricReader. */
  async send () {
    const { registry, takesDeltas, write, stats } = this.#options
    const nowMs = clock.now()
    for (const line of this.#json.encode(registry.scopes(), nowMs, this.#writtenMs)) {
      if (line === null) {
        await new Promise((resolve) => setImmediate(resolve))
        continue
      }
      write(line.body)
      line.delivered()
      stats.exportsOk++
      stats.delivered += line.points
    }
    this.#writtenMs = nowMs
    if (takesDeltas) registry.startInterval(nowMs)
    return NO_RETRY
  }
}

module.exports = { MetricJson, MetricLines }
