'use strict'

// Converts metrics in OTLP JSON to protobuf, as json-request.js does with the other signals.

const { Message } = require('./proto-writer')
const { Malformed } = require('./proto-reader')
const { BOUNDS_MAX, EXPONENTIAL_READ_MAX } = require('./metric')
const { requestOf, text, attributes, id, time, integer, natural, enumeration, listOf, object, present, INT64, UINT64 } = require('./json-request')

/** @returns {Buffer} an ExportMetricsServiceRequest. @throws Malformed */
function metricsFromJson (json) {
  return requestOf(json, json?.resourceMetrics, 'resourceMetrics', (from) => [from.scopeMetrics, 'scopeMetrics', (scoped) => [scoped.metrics, 'metrics', metric]])
}

// name in Metric → its field, and how a point is written
/** @type {Record<string, [number, (from: any) => Message]>} */
const KINDS = {
  gauge: [5, numberPoint],
  sum: [7, numberPoint],
  histogram: [9, histogramPoint],
  exponentialHistogram: [10, exponentialPoint],
  summary: [11, summaryPoint]
}

function metric (from) {
  const message = new Message()
  text(message, 1, from.name, 'name')
  text(message, 2, from.description, 'description')
  text(message, 3, from.unit, 'unit')
  for (const [name, [field, point]] of Object.entries(KINDS)) {
    if (!present(from[name])) continue
    const { dataPoints, aggregationTemporality, isMonotonic } = object(from[name], name)
    const data = new Message()
    for (const item of listOf(dataPoints, 'dataPoints')) data.message(1, point(item))
    enumeration(data, 2, aggregationTemporality, 'aggregationTemporality', 'AGGREGATION_TEMPORALITY_', ['UNSPECIFIED', 'DELTA', 'CUMULATIVE'])
    if (isMonotonic === true) data.varint(3, 1)
    message.message(field, data)
  }
  return message
}

function pointOf (from, fields) {
  const message = new Message()
  time(message, 2, from.startTimeUnixNano, 'startTimeUnixNano')
  time(message, 3, from.timeUnixNano, 'timeUnixNano')
  attributes(message, fields.attributes, from.attributes)
  if (fields.exemplars !== undefined) for (const item of listOf(from.exemplars, 'exemplars')) message.message(fields.exemplars, exemplar(item))
  if (present(from.flags)) message.varint(fields.flags, natural(from.flags, 'flags'))
  return message
}

function numberPoint (from) {
  const message = pointOf(from, { attributes: 7, exemplars: 5, flags: 8 })
  double(message, 4, from.asDouble, 'asDouble')
  if (present(from.asInt)) message.fixed64(6, integer(from.asInt, INT64, 'asInt'))
  return message
}

function histogramPoint (from) {
  const message = pointOf(from, { attributes: 9, exemplars: 8, flags: 10 })
  time(message, 4, from.count, 'count')
  double(message, 5, from.sum, 'sum')
  packed(message, 6, from.bucketCounts, 'bucketCounts', (bytes, at, value) => bytes.writeBigUInt64LE(BigInt.asUintN(64, integer(value, UINT64, 'bucketCounts')), at))
  packed(message, 7, from.explicitBounds, 'explicitBounds', (bytes, at, value) => bytes.writeDoubleLE(number(value, 'explicitBounds'), at))
  double(message, 11, from.min, 'min')
  double(message, 12, from.max, 'max')
  return message
}

function exponentialPoint (from) {
  const message = pointOf(from, { attributes: 1, exemplars: 11, flags: 10 })
  time(message, 4, from.count, 'count')
  double(message, 5, from.sum, 'sum')
  zigzag(message, 6, from.scale, 'scale')
  time(message, 7, from.zeroCount, 'zeroCount')
  for (const [field, name] of [[8, 'positive'], [9, 'negative']]) if (present(from[name])) message.message(field, side(object(from[name], name)))
  double(message, 12, from.min, 'min')
  double(message, 13, from.max, 'max')
  double(message, 14, from.zeroThreshold, 'zeroThreshold')
  return message
}

function side (from) {
  const message = new Message()
  zigzag(message, 1, from.offset, 'offset')
  const counts = new Message()
  for (const count of valuesOf(from.bucketCounts, 'bucketCounts', EXPONENTIAL_READ_MAX)) counts.packedVarint(integer(count, UINT64, 'bucketCounts'))
  if (counts.length > 0) message.bytes(2, counts.finish())
  return message
}

function summaryPoint (from) {
  const message = pointOf(from, { attributes: 7, flags: 8 })
  time(message, 4, from.count, 'count')
  double(message, 5, from.sum, 'sum')
  for (const item of listOf(from.quantileValues, 'quantileValues')) {
    const inner = new Message()
    double(inner, 1, item.quantile, 'quantile')
    double(inner, 2, item.value, 'value')
    message.message(6, inner)
  }
  return message
}

function exemplar (from) {
  const message = new Message()
  time(message, 2, from.timeUnixNano, 'timeUnixNano')
  double(message, 3, from.asDouble, 'asDouble')
  id(message, 4, from.spanId, 'spanId')
  id(message, 5, from.traceId, 'traceId')
  if (present(from.asInt)) message.fixed64(6, integer(from.asInt, INT64, 'asInt'))
  return message
}

function packed (message, field, values, name, write) {
  const list = valuesOf(values, name, BOUNDS_MAX + 1)
  const bytes = Buffer.allocUnsafe(list.length * 8)
  for (const [i, value] of list.entries()) write(bytes, i * 8, value)
  if (list.length > 0) message.bytes(field, bytes)
}

// One more than `max` is enough for readMetric to drop the point.
function valuesOf (values, name, max) {
  if (!present(values)) return []
  if (!Array.isArray(values)) throw new Malformed(`${name} is not a list`)
  return values.length > max ? values.slice(0, max + 1) : values
}

function double (message, field, value, name) {
  if (present(value)) message.double(field, number(value, name))
}

// "NaN" and "Infinity" are text.
function number (value, name) {
  if (typeof value !== 'number' && typeof value !== 'string') throw new Malformed(`${name} is not a number`)
  return Number(value)
}

function zigzag (message, field, value, name) {
  if (!present(value)) return
  const whole = Number(value)
  if (!Number.isInteger(whole) || whole < -(2 ** 31) || whole >= 2 ** 31) throw new Malformed(`${name} is not a 32-bit integer`)
  message.varint(field, whole < 0 ? -2 * whole - 1 : 2 * whole)
}

module.exports = { metricsFromJson }
