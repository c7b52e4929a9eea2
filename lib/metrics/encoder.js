'use strict'

// Metrics as opentelemetry/proto/metrics/v1/metrics.proto has them. A collection is written in steps, so that
// two thousand series do not hold the event loop, and comes out in batches that are one request each.
//
//   ScopeMetrics  12 <len, 4 bytes> scope
//     Metric        12 <len, 4 bytes> 0A name 12 description 1A unit
//       Histogram     4A <len, 4 bytes> 10 temporality
//         point         0A <len, 4 bytes> attributes, start | time, numbers     the first two are encoded once
//
// Lengths are known only behind their content: they take four bytes, which are filled in when it is over. The heads are
// the same at each collection, so they are copied. A collection is cold code: it runs once a minute, and V8 interprets it.

const { Buffer } = require('node:buffer')
const { ProtoWriter, writeLength4 } = require('../otlp/proto-writer')
const { encodeAttributes, text } = require('../otlp/attribute-encoder')
const { encodeScope } = require('../otlp/request')
const { writeNanos, toHrTime } = require('../span/clock')
const { takeDelta } = require('./series')

const TEMPORALITY_DELTA = 1
const TEMPORALITY_CUMULATIVE = 2

// Some 0.3 ms of the event loop.
const POINTS_PER_STEP = 256
// A request: collectors commonly take up to 4 MiB over gRPC and 20 MiB over HTTP.
const BATCH_BYTES = 2 * 1024 * 1024
const CHUNK_BYTES = 64 * 1024

const EXEMPLAR_BYTES = 46
// Everything of a point that is neither attributes, buckets nor exemplars.
const POINT_BOUND = 128
const VARINT_BOUND = 10

// data: the tag in Metric; attributes, exemplars: the tags in the point
const KINDS = {
  gauge: { data: 0x2a, attributes: 0x3a, exemplars: 0x2a, write: writeNumber },
  sum: { data: 0x3a, attributes: 0x3a, exemplars: 0x2a, write: writeNumber },
  histogram: { data: 0x4a, attributes: 0x4a, exemplars: 0x42, write: writeHistogram },
  exponentialHistogram: { data: 0x52, attributes: 0x0a, exemplars: 0x5a, write: writeExponential }
}

/** One request's worth: the parts of its scope_metrics, and what is to be said when its fate is known. */
class MetricBatch {
  constructor () {
    this.parts = []
    this.byteLength = 0
    this.points = 0
    this.deltas = []
  }

  add (part) {
    this.parts.push(part)
    this.byteLength += part.length
  }

  delivered () {
    for (const delta of this.deltas) delta.delivered()
  }

  failed () {
    for (const delta of this.deltas) delta.failed()
  }
}

/** A length that is not known yet: where it is to be written, and how much of the batch was written before its content. */
class OpenLength {
  constructor (view, position, writtenBefore) {
    this.view = view
    this.position = position
    this.writtenBefore = writtenBefore
  }
}

class MetricEncoder {
  /** A batch is sealed when it has as many bytes. */
  batchBytes = BATCH_BYTES

  #writer = new ProtoWriter()
  #chunk = null
  #from = 0 // where in the chunk begins what is in no part yet
  #batch = null
  #scope = null // the length of the open one; null: none has begun
  #metric = null // the same
  #metricData = null // of its Gauge, Sum or Histogram
  #wallMs = 0 // the time of the collection, since the epoch

  /** The bytes of the current batch. */
  get #written () {
    return this.#batch.byteLength + this.#writer.position - this.#from
  }

  /**
   * Writes the metrics of all scopes. Yields null where the caller should let others run, and batches.
   * @param {Iterable<{ scope: Scope, metrics: Metric[] }>} scopes
   * @param {number} nowMs monotonic, the time of all points
   * @param {number} sinceMs exemplars that are not newer are left out: they were delivered
   */
  * encode (scopes, nowMs, sinceMs) {
    this.#wallMs = wallMs(nowMs)
    this.#batch = new MetricBatch()
    this.#scope = this.#metric = null
    this.#from = this.#writer.position // an earlier collection may have failed half-way
    let untilPause = POINTS_PER_STEP
    for (const { scope, metrics } of scopes) {
      for (const metric of metrics) {
        for (const series of metric.list.slice()) {
          this.#writePoint(scope, metric, series, nowMs, sinceMs)
          if (--untilPause === 0) {
            untilPause = POINTS_PER_STEP
            yield null
          }
          if (this.#written >= this.batchBytes) yield this.#endBatch()
        }
        this.#endMetric()
      }
      this.#endScope()
    }
    const last = this.#endBatch()
    if (last.points > 0) yield last
    // The batches are the caller's from here on.
    this.#chunk = this.#batch = null
    this.#writer = new ProtoWriter()
  }

  #writePoint (scope, metric, series, nowMs, sinceMs) {
    let point = series
    let startMs = series.startMs
    if (metric.isDelta) {
      const delta = takeDelta(metric.kind, series, nowMs)
      if (delta === null) return
      startMs = metric.intervalStart(series)
      point = delta.point
      this.#batch.deltas.push(delta)
    } else if (metric.kind.endsWith('istogram') && series.count === 0) return
    if (this.#metric === null) this.#startMetric(scope, metric)
    const kind = KINDS[metric.kind]
    if (series.encoded === null || series.encodedStartMs > this.#wallMs) encodeOnce(metric, series, kind)
    const writer = this.#open(series.encoded.length + boundOf(metric, series))
    writer.byte(0x0a)
    const at = writer.reserve4()
    writer.copy(series.encoded)
    if (metric.isDelta) writeTime(writer, 0x11, startMs)
    writeTime(writer, 0x19, nowMs)
    kind.write(writer, point, metric)
    if (point.exemplars !== null) writeExemplars(writer, kind.exemplars, point.exemplars, sinceMs, metric.isInteger)
    writer.length4(at)
    this.#batch.points++
  }

  /** With its first point, and its scope with it: what has no points is not there. */
  #startMetric (scope, metric) {
    if (this.#scope === null) this.#scope = this.#startWith(0x12, encodeScope(scope))
    if (metric.encodedHead === null) metric.encodedHead = encodeHead(metric)
    const { names, tag, options } = metric.encodedHead
    this.#metric = this.#startWith(0x12, names)
    this.#metricData = this.#startWith(tag, options)
  }

  /** Begins a message, with its first fields. */
  #startWith (tag, fields) {
    const writer = this.#open(5 + fields.length)
    writer.byte(tag)
    const at = writer.reserve4()
    const open = new OpenLength(writer.view, at, this.#written)
    writer.copy(fields)
    return open
  }

  #endMetric () {
    if (this.#metric === null) return
    this.#end(this.#metricData)
    this.#end(this.#metric)
    this.#metric = this.#metricData = null
  }

  #endScope () {
    if (this.#scope === null) return
    this.#end(this.#scope)
    this.#scope = null
  }

  #end ({ view, position, writtenBefore }) {
    writeLength4(view, position, this.#written - writtenBefore)
  }

  /** What goes on in the next batch begins there anew. */
  #endBatch () {
    this.#endMetric()
    this.#endScope()
    this.#seal()
    const batch = this.#batch
    this.#batch = new MetricBatch()
    return batch
  }

  /** The writer, with room for `bound` bytes. */
  #open (bound) {
    const writer = this.#writer
    if (this.#chunk !== null && writer.position + bound <= this.#chunk.length) return writer
    this.#seal()
    const chunk = this.#chunk = Buffer.allocUnsafeSlow(Math.max(CHUNK_BYTES, bound))
    writer.open(chunk, new DataView(chunk.buffer), 0)
    this.#from = 0
    return writer
  }

  #seal () {
    const { position } = this.#writer
    if (this.#chunk === null || position === this.#from) return
    this.#batch.add(this.#chunk.subarray(this.#from, position))
    this.#from = position
  }
}

/** Name, description, unit; the tag of the data, and its temporality. */
function encodeHead ({ name, description, unit, kind, isDelta, isMonotonic }) {
  const names = [text(0x0a, name)]
  if (description !== '') names.push(text(0x12, description))
  if (unit !== '') names.push(text(0x1a, unit))
  const options = kind === 'gauge' ? [] : [0x10, isDelta ? TEMPORALITY_DELTA : TEMPORALITY_CUMULATIVE]
  if (kind === 'sum' && isMonotonic) options.push(0x18, 1)
  return { names: new Uint8Array(Buffer.concat(names)), tag: KINDS[kind].data, options: Uint8Array.from(options) }
}

/**
 * What never changes about a point: its attributes, and the start of a cumulative one. It is wall time, made
 * once: a step of the wall clock must not look like a restart. One that puts the start into the future does.
 */
function encodeOnce (metric, series, kind) {
  const attributes = encodeAttributes(kind.attributes, series.attributes)
  series.encoded = new Uint8Array(attributes) // a copy of its own: a slice would keep Node's pool
  if (metric.isDelta || metric.kind === 'gauge') return
  const start = Buffer.alloc(9)
  start[0] = 0x11
  writeNanos(new DataView(start.buffer, start.byteOffset), 1, series.startMs)
  series.encodedStartMs = wallMs(series.startMs)
  series.encoded = new Uint8Array(Buffer.concat([attributes, start]))
}

function wallMs (ms) {
  const [seconds, nanos] = toHrTime(ms)
  return seconds * 1000 + nanos / 1e6
}

function boundOf ({ kind, bounds }, series) {
  const exemplars = series.exemplars === null ? 0 : series.exemplars.length * (2 + EXEMPLAR_BYTES)
  const buckets = kind === 'histogram' ? bounds.length * 16 : kind === 'exponentialHistogram' ? series.bucketsMax * VARINT_BOUND : 0
  return POINT_BOUND + buckets + exemplars
}

function writeNumber (writer, { value }, { isInteger }, doubleTag = 0x21) {
  if (isInteger) {
    writer.byte(0x31)
    writeFixed64(writer, value)
  } else {
    writer.byte(doubleTag)
    writer.double(value)
  }
}

function writeHistogram (writer, point, { bounds }) {
  const { cells, base } = point
  const size = bounds.length
  let count = 0
  for (let i = 0; i < size; i++) count += cells[base + i]
  writer.byte(0x21)
  writeFixed64(writer, count)
  writer.byte(0x29)
  writer.double(point.sum)
  writer.byte(0x32)
  writer.varint(size * 8)
  for (let i = 0; i < size; i++) writeFixed64(writer, cells[base + i])
  writer.byte(0x3a)
  writer.varint((size - 1) * 8)
  for (let i = 0; i < size - 1; i++) writer.double(bounds[i])
  writeExtremes(writer, 0x59, 0x61, point)
}

function writeExponential (writer, point) {
  const { offset, counts } = point.buckets()
  writer.byte(0x21)
  writeFixed64(writer, point.count)
  writer.byte(0x29)
  writer.double(point.sum)
  writer.byte(0x30)
  writer.varint(zigzag(point.scale))
  writer.byte(0x39)
  writeFixed64(writer, point.zeroCount)
  if (counts.length > 0) {
    writer.byte(0x42)
    const at = writer.reserve4()
    writer.byte(0x08)
    writer.varint(zigzag(offset))
    writer.byte(0x12)
    const countsAt = writer.reserve4()
    for (const count of counts) writer.varint(count)
    writer.length4(countsAt)
    writer.length4(at)
  }
  writeExtremes(writer, 0x61, 0x69, point)
}

/** A false zero would be believed. */
function writeExtremes (writer, minTag, maxTag, { min, max }) {
  if (!(min <= max)) return
  writer.byte(minTag)
  writer.double(min)
  writer.byte(maxTag)
  writer.double(max)
}

function writeExemplars (writer, tag, exemplars, sinceMs, isInteger) {
  for (const exemplar of exemplars) {
    if (exemplar === null || exemplar.timeMs <= sinceMs) continue
    writer.byte(tag)
    writer.byte(EXEMPLAR_BYTES)
    writeTime(writer, 0x11, exemplar.timeMs)
    writeNumber(writer, exemplar, { isInteger }, 0x19)
    writer.byte(0x22)
    writer.byte(8)
    writeWords(writer, exemplar.s0, exemplar.s1)
    writer.byte(0x2a)
    writer.byte(16)
    writeWords(writer, exemplar.t0, exemplar.t1)
    writeWords(writer, exemplar.t2, exemplar.t3)
  }
}

function writeWords (writer, high, low) {
  writer.view.setInt32(writer.position, high)
  writer.view.setInt32(writer.position + 4, low)
  writer.position += 8
}

function writeTime (writer, tag, ms) {
  writer.byte(tag)
  writeNanos(writer.view, writer.position, ms)
  writer.position += 8
}

/** A whole number of at most 2^53, also below zero, as eight bytes. */
function writeFixed64 (writer, value) {
  const high = Math.floor(value / 4294967296)
  writer.view.setInt32(writer.position, value - high * 4294967296, true)
  writer.view.setInt32(writer.position + 4, high, true)
  writer.position += 8
}

function zigzag (value) {
  return value < 0 ? -2 * value - 1 : 2 * value
}

module.exports = { MetricEncoder, wallMs, TEMPORALITY_DELTA, TEMPORALITY_CUMULATIVE }
