'use strict'

// Metrics as lines of OTLP JSON. A collection is written in steps, so that two thousand series do not hold the event loop.
// It is one line, unless that would be longer than collectors of logs take.

const { hex } = require('../context/ids')
const clock = require('../span/clock')
const { SCHEMA_URL } = require('../span/recording-span')
const { resourceOf, scopeOf, attributesOf, double, clean, nanos } = require('../otlp/json')
const { setImmediate } = require('../runtime/timers')
const { wallMs, TEMPORALITY_DELTA, TEMPORALITY_CUMULATIVE } = require('./encoder')
const { takeDelta } = require('./series')

// Some 0.5 ms of the event loop.
const POINTS_PER_STEP = 64
// Cloud Logging takes 256 KiB.
const LINE_LENGTH_MAX = 200_000

const POINTS = { gauge: numberPoint, sum: numberPoint, histogram: histogramPoint, exponentialHistogram: exponentialPoint }

class MetricJson {
  #resource
  #takesDeltas
  #starts = new WeakMap() // series → when it began, as text and in milliseconds of the wall clock

  /**
   * @param {{ attributes: object }} resource
   * @param {boolean} takesDeltas false where another exporter takes what came since the last delivery
   */
  constructor (resource, takesDeltas) {
    this.#resource = JSON.stringify(resourceOf(resource))
    this.#takesDeltas = takesDeltas
  }

  /**
   * The metrics of all scopes. Yields null where the caller should let others run, and lines without their end, each with
   * the number of its points and the deltas that are delivered with it.
   * @param {Iterable<{ scope: Scope, metrics: Metric[] }>} scopes
   * @param {number} nowMs monotonic, the time of all points
   * @param {number} sinceMs exemplars that are not newer are left out: they were delivered
   */
  * encode (scopes, nowMs, sinceMs) {
    const time = nanos(nowMs)
    let line = new Line(this.#resource)
    let untilPause = POINTS_PER_STEP
    for (const { scope, metrics } of scopes) {
      for (const metric of metrics) {
        const isDelta = metric.isDelta && this.#takesDeltas
        for (const series of metric.list.slice()) {
          const delta = isDelta ? takeDelta(metric.kind, series, nowMs) : null
          if (isDelta ? delta === null : series.count === 0) continue
          const text = JSON.stringify({
            attributes: attributesOf(series.attributes),
            startTimeUnixNano: metric.kind === 'gauge' ? undefined : delta === null ? this.#startOf(series, nowMs) : nanos(metric.intervalStart(series)),
            timeUnixNano: time,
            ...POINTS[metric.kind](delta === null ? series : delta.point, metric),
            exemplars: exemplarsOf(series, sinceMs, metric)
          })
          if (line.length + text.length > LINE_LENGTH_MAX && line.points > 0) {
            yield line
            line = new Line(this.#resource)
          }
          line.add(scope, metric, isDelta, text, delta)
          if (--untilPause > 0) continue
          untilPause = POINTS_PER_STEP
          yield null
        }
      }
    }
    if (line.points > 0) yield line
  }

  /** Made once: a step of the wall clock must not look like a restart. One that puts the start into the future does. */
  #startOf (series, nowMs) {
    const kept = this.#starts.get(series)
    if (kept !== undefined && kept.wallMs <= wallMs(nowMs)) return kept.text
    const start = { text: nanos(series.startMs), wallMs: wallMs(series.startMs) }
    this.#starts.set(series, start)
    return start.text
  }
}

/** One MetricsData message. */
class Line {
  #resource
  #scopes = []
  #scope = null
  #metric = null

  constructor (resource) {
    this.#resource = resource
    this.length = resource.length
    this.points = 0
    this.deltas = []
  }

  add (scope, metric, isDelta, text, delta) {
    if (this.#scope?.scope !== scope) this.#scopes.push(this.#scope = { scope, metrics: [] })
    if (this.#metric?.metric !== metric) this.#scope.metrics.push(this.#metric = { metric, isDelta, points: [] })
    this.#metric.points.push(text)
    this.length += text.length
    this.points++
    if (delta !== null) this.deltas.push(delta)
  }

  toString () {
    const scopes = this.#scopes.map(({ scope, metrics }) =>
      `{"scope":${JSON.stringify(scopeOf(scope))}${scope.schemaUrl === undefined ? '' : `,"schemaUrl":${JSON.stringify(clean(scope.schemaUrl))}`},"metrics":[${metrics.map(metricText)}]}`)
    return `{"resourceMetrics":[{"resource":${this.#resource},"schemaUrl":${JSON.stringify(SCHEMA_URL)},"scopeMetrics":[${scopes}]}]}`
  }
}

function metricText ({ metric: { name, description, unit, kind, isMonotonic }, isDelta, points }) {
  const head = { name: clean(name), description: clean(description) || undefined, unit: clean(unit) || undefined }
  const temporality = kind === 'gauge' ? '' : `"aggregationTemporality":${isDelta ? TEMPORALITY_DELTA : TEMPORALITY_CUMULATIVE},`
  const monotonic = kind === 'sum' ? `"isMonotonic":${isMonotonic},` : ''
  return `${JSON.stringify(head).slice(0, -1)},"${kind}":{${temporality}${monotonic}"dataPoints":[${points}]}}`
}

function numberPoint ({ value }, { isInteger }) {
  return isInteger ? { asInt: String(value) } : { asDouble: double(value) }
}

function histogramPoint ({ cells, base, sum, min, max }, { bounds }) {
  const size = bounds.length
  const counts = Array.from(cells.subarray(base, base + size))
  return {
    count: String(counts.reduce((all, count) => all + count, 0)),
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
    timeUnixNano: nanos(exemplar.timeMs),
    ...numberPoint(exemplar, metric),
    spanId: hex(exemplar.s0) + hex(exemplar.s1),
    traceId: hex(exemplar.t0) + hex(exemplar.t1) + hex(exemplar.t2) + hex(exemplar.t3)
  }))
}

// `metrics: { exporter: 'otlp/stdout' }`: each collection as a line of OTLP JSON on standard output, for platforms that
// collect nothing else. What is written counts as delivered.
// https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/

const NO_RETRY = Object.freeze({ retryMs: -1, isAsked: false })

class MetricLines {
  #registry
  #json
  #takesDeltas
  #write
  #stats
  #writtenMs = -Infinity

  /** @param {{ registry: MetricRegistry, resource: object, takesDeltas: boolean, write (line: string): void, stats: object }} options */
  constructor ({ registry, resource, takesDeltas, write, stats }) {
    this.#registry = registry
    this.#json = new MetricJson(resource, takesDeltas)
    this.#takesDeltas = takesDeltas
    this.#write = write
    this.#stats = stats
  }

  hold () {}
  abort () {}
  close () {}

  /** Collects and writes. See MetricReader. */
  async send () {
    const nowMs = clock.now()
    for (const line of this.#json.encode(this.#registry.scopes(), nowMs, this.#writtenMs)) {
      if (line !== null) this.#writeLine(line)
      else await new Promise((resolve) => setImmediate(resolve))
    }
    this.#writtenMs = nowMs
    if (this.#takesDeltas) this.#registry.startInterval(nowMs)
    return NO_RETRY
  }

  #writeLine (line) {
    this.#write(String(line))
    for (const delta of line.deltas) delta.delivered()
    this.#stats.exportsOk++
    this.#stats.delivered += line.points
  }
}

module.exports = { MetricJson, MetricLines }
