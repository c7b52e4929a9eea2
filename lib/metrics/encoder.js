'use strict'

// Metrics as opentelemetry/proto/metrics/v1/metrics.proto has them.
//
//   ScopeMetrics  12 <len> scope
//     Metric        12 <len> 0A name 12 description 1A unit
//       Histogram     4A <len> 10 temporality
//         point         0A <len, 4 bytes> attributes, which are encoded once, start, time, numbers

const { Buffer } = require('node:buffer')
const { ProtoWriter, encodeAttributes, text } = require('../otlp/proto-writer')
const { encodeScope } = require('../otlp/request')
const { collect, nanosOf, TEMPORALITY_DELTA, TEMPORALITY_CUMULATIVE } = require('./collection')

// Some 0.3 ms of the event loop.
const POINTS_PER_STEP = 256
// A request: collectors commonly take up to 4 MiB over gRPC and 20 MiB over HTTP.
const BATCH_BYTES = 2 * 1024 * 1024

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

class MetricEncoder {
  batchBytes = BATCH_BYTES

  /** The batches of one collection, see `collect`: the body of each is the scope_metrics of one request. */
  encode (scopes, nowMs, sinceMs) {
    const settings = { nowMs, sinceMs, pointsPerStep: POINTS_PER_STEP, lengthMax: this.batchBytes }
    return collect(scopes, settings, { head: encodeHead, point: encodePoint, body: encodeBody })
  }
}

/** Name, description and unit. */
function encodeHead ({ name, description, unit }) {
  const fields = [text(0x0a, name)]
  if (description !== '') fields.push(text(0x12, description))
  if (unit !== '') fields.push(text(0x1a, unit))
  return Buffer.concat(fields)
}

function encodeBody (scopes) {
  return Buffer.concat(scopes.flatMap(encodeScopeMetrics))
}

function encodeScopeMetrics ({ scope, metrics }) {
  return message(0x12, [encodeScope(scope), ...metrics.flatMap(encodeMetric)])
}

function encodeMetric ({ metric: { kind, isMonotonic }, isDelta, head, points }) {
  const options = kind === 'gauge' ? [] : [0x10, isDelta ? TEMPORALITY_DELTA : TEMPORALITY_CUMULATIVE]
  if (kind === 'sum' && isMonotonic) options.push(0x18, 1)
  return message(0x12, [head, ...message(KINDS[kind].data, [Uint8Array.from(options), ...points])])
}

/** A length-delimited field in parts, so that points are copied once. */
function message (tag, parts) {
  const writer = ProtoWriter.alone(1 + VARINT_BOUND)
  writer.byte(tag)
  writer.varint(parts.reduce((sum, { length }) => sum + length, 0))
  return [writer.written, ...parts]
}

// Where one point is written, before it is copied to memory of its length.
let scratch = ProtoWriter.alone(4096)

function encodePoint (metric, series, point, { start, now, sinceMs }) {
  const { attributes, exemplars, write } = KINDS[metric.kind]
  // A copy: a slice would keep Node's pool.
  series.encoded ??= new Uint8Array(encodeAttributes(attributes, series.attributes))
  const bound = series.encoded.length + boundOf(metric, series)
  if (bound > scratch.bytes.length) scratch = ProtoWriter.alone(bound)
  const writer = scratch
  writer.position = 0
  writer.byte(0x0a)
  const at = writer.reserve4()
  writer.copy(series.encoded)
  if (metric.kind !== 'gauge') writeTime(writer, 0x11, start)
  writeTime(writer, 0x19, now)
  write(writer, point, metric)
  if (point.exemplars !== null) writeExemplars(writer, exemplars, point.exemplars, sinceMs, metric.isInteger)
  writer.length4(at)
  return Buffer.from(writer.written)
}

function boundOf ({ kind, bounds }, series) {
  const exemplars = series.exemplars === null ? 0 : series.exemplars.length * (2 + EXEMPLAR_BYTES)
  if (kind === 'histogram') return POINT_BOUND + exemplars + bounds.length * 16
  return POINT_BOUND + exemplars + (kind === 'exponentialHistogram' ? series.bucketsMax * VARINT_BOUND : 0)
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

function writeHistogram (writer, { counts, count, sum, min, max }, { bounds }) {
  writer.byte(0x21)
  writeFixed64(writer, count)
  writer.byte(0x29)
  writer.double(sum)
  writer.byte(0x32)
  writer.varint(counts.length * 8)
  for (const bucket of counts) writeFixed64(writer, bucket)
  writer.byte(0x3a)
  writer.varint((bounds.length - 1) * 8)
  for (let i = 0; i < bounds.length - 1; i++) writer.double(bounds[i])
  writeExtremes(writer, 0x59, 0x61, min, max)
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
  writeExtremes(writer, 0x61, 0x69, point.min, point.max)
}

/** A false zero would be believed. */
function writeExtremes (writer, minTag, maxTag, min, max) {
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
    writeTime(writer, 0x11, nanosOf(exemplar.timeMs))
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

function writeTime (writer, tag, nanos) {
  writer.byte(tag)
  writer.view.setBigUint64(writer.position, nanos, true)
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

module.exports = { MetricEncoder }
