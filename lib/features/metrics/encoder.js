'use strict'

// Encodes metrics as OTLP: the bytes of opentelemetry/proto/metrics/v1/metrics.proto, or a line of JSON. One table describes the
// fields of both. A collection is encoded in steps, so that two thousand series do not block the event loop, and in batches, each
// of which is one message. This is cold code: it runs once a minute.
//
//   ScopeMetrics  12 <len> scope
//     Metric        12 <len> 0A name 12 description 1A unit
//       Histogram     4A <len> 10 temporality
//         point         0A <len, 4 bytes> attributes (encoded once per series), other fields

const { Buffer } = require('node:buffer')
const { resourceOf, scopeOf, attributesOf, double, clean } = require('../../otlp/json.js')
const { ProtoWriter, encodeAttributes, text } = require('../../otlp/proto-writer.js')
const { encodeScope } = require('../../otlp/request.js')
const { nanosOf } = require('../../runtime/timers.js')
const { SCHEMA_URL } = require('../../span/recording-span.js')
const { takeDelta } = require('./series.js')

const DELTA = 1
const CUMULATIVE = 2

// The size of one request. Collectors commonly accept up to 4 MiB over gRPC and 20 MiB over HTTP.
const BATCH_BYTES = 2 * 1024 * 1024
// Cloud Logging accepts 256 KiB.
const LINE_LENGTH_MAX = 200_000

// A point without its attributes, buckets and exemplars.
const POINT_BOUND = 256
const EXEMPLAR_BOUND = 64
const METRIC_BOUND = 128 // a metric without its points and texts
const VARINT_BOUND = 10

// How a value is written. `isLong` values are preceded by their length.

const WHOLE = { json: String, write: (writer, value) => { writer.view.setBigInt64((writer.position += 8) - 8, BigInt(value), true) } }
const DOUBLE = { json: double, write: (writer, value) => writer.double(value) }
const VARINT = { json: String, write: (writer, value) => writer.varint(value) }
const ZIGZAG = { json: Number, write: (writer, value) => writer.varint(value < 0 ? -2 * value - 1 : 2 * value) }
const ID = { isLong: true, json: String, write: (writer, id) => writer.copy(Buffer.from(id, 'hex')) }

function list ({ json, write }) {
  return {
    isLong: true,
    json: (values) => Array.from(values, (value) => json(value)),
    write: (writer, values) => { for (const value of values) write(writer, value) }
  }
}

function message (fields) {
  return { isLong: true, json: (values) => jsonOf(fields, values), write: (writer, values) => writeFields(writer, fields, values) }
}

// Each field: its name in JSON, its tag in protobuf, and how its value is written.

const EXEMPLAR = message([['timeUnixNano', 0x11, WHOLE], ['asDouble', 0x19, DOUBLE], ['asInt', 0x31, WHOLE], ['spanId', 0x22, ID], ['traceId', 0x2a, ID]])
const TIMES = [['startTimeUnixNano', 0x11, WHOLE], ['timeUnixNano', 0x19, WHOLE]]
const NUMBER = [...TIMES, ['asDouble', 0x21, DOUBLE], ['asInt', 0x31, WHOLE]]
const HISTOGRAM = [
  ...TIMES, ['count', 0x21, WHOLE], ['sum', 0x29, DOUBLE], ['bucketCounts', 0x32, list(WHOLE)], ['explicitBounds', 0x3a, list(DOUBLE)],
  ['min', 0x59, DOUBLE], ['max', 0x61, DOUBLE]
]
const EXPONENTIAL = [
  ...TIMES, ['count', 0x21, WHOLE], ['sum', 0x29, DOUBLE], ['scale', 0x30, ZIGZAG], ['zeroCount', 0x39, WHOLE],
  ['positive', 0x42, message([['offset', 0x08, ZIGZAG], ['bucketCounts', 0x12, list(VARINT)]])], ['min', 0x61, DOUBLE], ['max', 0x69, DOUBLE]
]

// data: the tag in Metric; attributes and exemplars: their tags in the point
const POINT_KINDS = {
  gauge: { data: 0x2a, attributes: 0x3a, exemplars: 0x2a, fields: NUMBER, values: numberOf },
  sum: { data: 0x3a, attributes: 0x3a, exemplars: 0x2a, fields: NUMBER, values: numberOf },
  histogram: { data: 0x4a, attributes: 0x4a, exemplars: 0x42, fields: HISTOGRAM, values: histogramOf },
  exponentialHistogram: { data: 0x52, attributes: 0x0a, exemplars: 0x5a, fields: EXPONENTIAL, values: histogramOf }
}

/** The values of a point's fields by name; undefined for fields that the point lacks. */
function valuesOf (metric, point, { start, now }) {
  return { startTimeUnixNano: metric.kind === 'gauge' ? undefined : start, timeUnixNano: now, ...POINT_KINDS[metric.kind].values(point, metric) }
}

function numberOf ({ value }, { isInteger }) {
  return isInteger ? { asInt: value } : { asDouble: value }
}

function histogramOf ({ count, sum, min, max, counts, scale, zeroCount, buckets }, { bounds }) {
  const extremes = min <= max ? { min, max } : {} // omitted when unknown: a backend would take 0 for a measurement
  if (bounds !== null) return { count, sum, bucketCounts: counts, explicitBounds: bounds.subarray(0, -1), ...extremes }
  const positive = buckets.counts.length > 0 ? { offset: buckets.offset, bucketCounts: buckets.counts } : undefined
  return { count, sum, scale, zeroCount, positive, ...extremes }
}

function exemplarsOf ({ exemplars }, sinceMs, metric) {
  const fresh = exemplars?.filter((exemplar) => exemplar !== null && exemplar.timeMs > sinceMs) ?? []
  return fresh.map((exemplar) => {
    const { timeMs, spanId, traceId } = exemplar
    return { timeUnixNano: nanosOf(timeMs), ...numberOf(exemplar, metric), spanId, traceId }
  })
}

const POINTS_PER_STEP = 64 // about 0.5 ms of the event loop

/** The points of one message, by scope and metric, and the deltas among them. */
class Batch {
  scopes = [] // { scope, metrics: [{ metric, isDelta, points }] }; empty once the batch is complete
  length = 0
  points = 0
  deltas = []
  body = null // the message, once the batch is complete

  add (scope, metric, isDelta, point, delta) {
    if (this.scopes.at(-1)?.scope !== scope) this.scopes.push({ scope, metrics: [] })
    const { metrics } = this.scopes.at(-1)
    if (metrics.at(-1)?.metric !== metric) {
      metrics.push({ metric, isDelta, points: [] })
      this.length += METRIC_BOUND + metric.name.length + metric.description.length + metric.unit.length
    }
    metrics.at(-1).points.push(point)
    this.length += point.length
    this.points++
    if (delta !== null) this.deltas.push(delta)
  }

  complete (encoder) {
    this.body = encoder.body(this.scopes)
    this.scopes = []
    return this
  }

  delivered () { for (const { series, state } of this.deltas) series.delivered = state }

  /** Merges minimum and maximum back into the series, because their intervals continue. */
  failed () {
    for (const { series, point } of this.deltas) {
      series.min = Math.min(series.min, point.min)
      series.max = Math.max(series.max, point.max)
    }
  }
}

/** Encodes protobuf: the body of each batch is the scope_metrics of one request. */
class MetricEncoder {
  batchBytes = BATCH_BYTES // the most that a batch of several points may have
  takesDeltas = true

  /** @returns {{ length: number }} the encoded point, in the form that `body` takes */
  point (metric, series, point, times) {
    const { attributes, exemplars, fields } = POINT_KINDS[metric.kind]
    series.encoded ??= new Uint8Array(encodeAttributes(attributes, series.attributes)) // copied: a slice would keep Node's pool in memory
    const buckets = metric.bounds === null ? series.bucketsMax ?? 0 : 2 * metric.bounds.length
    const bound = POINT_BOUND + series.encoded.length + buckets * VARINT_BOUND + (point.exemplars?.length ?? 0) * EXEMPLAR_BOUND
    const writer = new ProtoWriter(bound)
    writer.byte(0x0a)
    const at = writer.reserve4()
    writer.copy(series.encoded)
    writeFields(writer, fields, valuesOf(metric, point, times))
    for (const exemplar of exemplarsOf(point, times.sinceMs, metric)) writeField(writer, exemplars, EXEMPLAR, exemplar)
    writer.length4(at)
    return Buffer.from(writer.written) // copied, to free the rest of the writer's buffer
  }

  /** @returns {Buffer | string} */
  body (scopes) {
    return Buffer.concat(scopes.flatMap(({ scope, metrics }) => inParts(0x12, [encodeScope(scope), ...metrics.flatMap(encodeMetric)])))
  }

  /**
   * Encodes all metrics that have points. Yields complete batches, and null where the caller should let other code run.
   * @param {Iterable<{ scope: Scope, metrics: Metric[] }>} scopes
   * @param {number} nowMs monotonic, the time of all points
   * @param {number} sinceMs only newer exemplars are written; older ones were delivered already
   */
  * encode (scopes, nowMs, sinceMs) {
    const now = nanosOf(nowMs)
    let batch = new Batch()
    let untilPause = POINTS_PER_STEP
    for (const { scope, metrics } of scopes) {
      for (const metric of metrics) {
        const isDelta = metric.isDelta && this.takesDeltas
        for (const series of metric.list.slice()) {
          const delta = isDelta ? takeDelta(series, nowMs) : null
          if (isDelta ? delta === null : series.count === 0) continue
          const start = isDelta ? nanosOf(metric.intervalStart(series)) : startOf(series, now)
          const point = this.point(metric, series, isDelta ? delta.point : series.state(), { start, now, sinceMs })
          if (batch.points > 0 && batch.length + point.length > this.batchBytes) {
            yield batch.complete(this)
            batch = new Batch()
          }
          batch.add(scope, metric, isDelta, point, delta)
          if (--untilPause > 0) continue
          untilPause = POINTS_PER_STEP
          yield null
        }
      }
    }
    if (batch.points > 0) yield batch.complete(this)
  }
}

function encodeMetric ({ metric: { name, description, unit, kind, isMonotonic }, isDelta, points }) {
  const options = kind === 'gauge' ? [] : [0x10, isDelta ? DELTA : CUMULATIVE]
  if (kind === 'sum' && isMonotonic) options.push(0x18, 1)
  const data = inParts(POINT_KINDS[kind].data, [Uint8Array.from(options), ...points])
  return inParts(0x12, [text(0x0a, name), text(0x12, description), text(0x1a, unit), ...data])
}

/** A length-delimited field as a list of parts, so that points are copied only once. */
function inParts (tag, parts) {
  const writer = new ProtoWriter(1 + VARINT_BOUND)
  writer.byte(tag)
  writer.varint(parts.reduce((sum, { length }) => sum + length, 0))
  return [writer.written, ...parts]
}

function writeFields (writer, fields, values) {
  for (const [name, tag, type] of fields) if (values[name] !== undefined) writeField(writer, tag, type, values[name])
}

function writeField (writer, tag, { isLong = false, write }, value) {
  writer.byte(tag)
  const at = isLong ? writer.reserve4() : 0
  write(writer, value)
  if (isLong) writer.length4(at)
}

/** Encodes JSON: each body is one line without its newline. A collection is one line unless that exceeds what log collectors accept. */
class MetricJson extends MetricEncoder {
  #resource

  /**
   * @param {{ attributes: object }} resource
   * @param {boolean} takesDeltas false if another exporter takes the deltas
   */
  constructor (resource, takesDeltas) {
    super()
    this.takesDeltas = takesDeltas
    this.#resource = resourceOf(resource)
    this.batchBytes = LINE_LENGTH_MAX - JSON.stringify(this.#resource).length
  }

  point (metric, series, point, times) {
    const exemplars = exemplarsOf(point, times.sinceMs, metric).map(EXEMPLAR.json)
    const json = {
      attributes: attributesOf(series.attributes),
      ...jsonOf(POINT_KINDS[metric.kind].fields, valuesOf(metric, point, times)),
      exemplars: exemplars.length > 0 ? exemplars : undefined
    }
    return { json, length: JSON.stringify(json).length }
  }

  body (scopes) {
    const scopeMetrics = scopes.map(({ scope, metrics }) => ({ scope: scopeOf(scope), schemaUrl: clean(scope.schemaUrl), metrics: metrics.map(metricOf) }))
    return JSON.stringify({ resourceMetrics: [{ resource: this.#resource, schemaUrl: SCHEMA_URL, scopeMetrics }] })
  }
}

function metricOf ({ metric: { name, description, unit, kind, isMonotonic }, isDelta, points }) {
  const data = {
    aggregationTemporality: kind === 'gauge' ? undefined : isDelta ? DELTA : CUMULATIVE,
    isMonotonic: kind === 'sum' ? isMonotonic : undefined,
    dataPoints: points.map(({ json }) => json)
  }
  return { name: clean(name), description: clean(description) || undefined, unit: clean(unit) || undefined, [kind]: data }
}

function jsonOf (fields, values) {
  return Object.fromEntries(fields.filter(([name]) => values[name] !== undefined).map(([name, , type]) => [name, type.json(values[name])]))
}

/**
 * The start time of a series. It is computed once, so that a step of the wall clock does not look like a restart. It is computed
 * again only if it would lie in the future.
 */
function startOf (series, now) {
  if (series.startNanos === null || series.startNanos > now) series.startNanos = nanosOf(series.startMs)
  return series.startNanos
}

module.exports = { MetricEncoder, MetricJson, startOf }
