'use strict'

// Reads a Metric, point by point. https://opentelemetry.io/docs/specs/otel/metrics/data-model/
//
// Metric { name = 1; description = 2; unit = 3; Gauge = 5; Sum = 7; Histogram = 9; ExponentialHistogram = 10; Summary = 11 }
// Sum { data_points = 1; aggregation_temporality = 2; is_monotonic = 3 }, and the others without what they do not have

const { ProtoReader, Malformed, VARINT, BYTES } = require('./proto-reader')
const { readKeyValue } = require('./attributes')
const { idOf, millisecondsOf } = require('./span-facts')
const { Buckets, sideOf, EMPTY } = require('../store/buckets')

const KINDS = { 5: 'gauge', 7: 'sum', 9: 'histogram', 10: 'exponential_histogram', 11: 'summary' }
const TEMPORALITIES = [null, 'delta', 'cumulative']

// Larger points are dropped, before they are read.
const ATTRIBUTES_MAX = 128
const ATTRIBUTE_BYTES_MAX = 16_384
const BOUNDS_MAX = 500
const EXPONENTIAL_READ_MAX = 10_000
const QUANTILES_MAX = 32
const EXEMPLARS_MAX = 32

// The SDKs' range. Beyond it, the bounds of buckets are not numbers.
const SCALE_MIN = -10
const SCALE_MAX = 20

const NO_RECORDED_VALUE = 1
const FLOAT_BYTES = 8

/**
 * @param {(metric: Metric) => (point: Point | null) => void} onMetric is called once, and what it returns for each point; null: the point
 *   breaks the rules of its kind or is too large
 * @throws Malformed, possibly after some calls
 * @typedef {{ name: string, description: string, unit: string, kind: string, monotonic: boolean, temporality: 'delta' | 'cumulative' | null }} Metric
 * @typedef {{ attributes: object[], startMs: number, timeMs: number, isAbsent: boolean, value: number, buckets: Buckets | null, exemplars: object[] }} Point
 */
function readMetric (bytes, from, to, onMetric) {
  const metric = { name: '', description: '', unit: '', kind: '', monotonic: false, temporality: null }
  const reader = new ProtoReader(bytes, from, to)
  let data = null
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) metric.name = cut(reader, 300)
    else if (field === 2) metric.description = cut(reader, 500)
    else if (field === 3) metric.unit = cut(reader, 100)
    else if (KINDS[field] !== undefined) {
      metric.kind = KINDS[field]
      data = reader.message()
    }
  }
  if (data === null) return
  const { at, end } = data
  for (let field = data.next(); field !== 0; field = data.next()) {
    if (field === 2) metric.temporality = TEMPORALITIES[data.number()] ?? null
    else if (field === 3) metric.monotonic = data.number() !== 0
  }
  const onPoint = onMetric(metric)
  const read = READERS[metric.kind]
  data.over(at, end)
  for (let field = data.next(); field !== 0; field = data.next()) if (field === 1) onPoint(read(data.message()))
}

// Bytes are cut before they become a string, as in span-facts.js.
function cut (reader, max) {
  reader.expect(BYTES)
  return reader.bytes.utf8Slice(reader.from, Math.min(reader.to, reader.from + max))
}

// Which fields of its kind of point are which.
const NUMBER = { attributes: 7, exemplars: 5, flags: 8 }
const HISTOGRAM = { attributes: 9, exemplars: 8, flags: 10 }
const EXPONENTIAL = { attributes: 1, exemplars: 11, flags: 10 }
const SUMMARY = { attributes: 7, exemplars: -1, flags: 8 }

const READERS = { gauge: readNumber, sum: readNumber, histogram: readHistogram, exponential_histogram: readExponential, summary: readSummary }

/** Reads what points of all kinds have. @param {(field: number) => void} other is called for the other fields */
function readPoint (reader, { attributes, exemplars, flags }, other) {
  const point = { attributes: [], startMs: 0, timeMs: 0, isAbsent: false, value: NaN, buckets: null, exemplars: [] }
  let attributeBytes = 0
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === attributes) {
      reader.expect(BYTES)
      attributeBytes += reader.to - reader.from
      if (attributeBytes <= ATTRIBUTE_BYTES_MAX && point.attributes.length <= ATTRIBUTES_MAX) point.attributes.push(readKeyValue(reader.message()))
    } else if (field === exemplars) {
      const exemplar = readExemplar(reader.message())
      if (exemplar !== null && point.exemplars.length < EXEMPLARS_MAX) point.exemplars.push(exemplar)
    } else if (field === flags) point.isAbsent = (reader.number() & NO_RECORDED_VALUE) !== 0
    else if (field === 2) point.startMs = millisecondsOf(reader.hi, reader.lo)
    else if (field === 3) point.timeMs = millisecondsOf(reader.hi, reader.lo)
    else other(field)
  }
  return attributeBytes > ATTRIBUTE_BYTES_MAX || point.attributes.length > ATTRIBUTES_MAX ? null : point
}

// NumberDataPoint { start = 2; time = 3; as_double = 4; exemplars = 5; as_int = 6; attributes = 7; flags = 8 }
function readNumber (reader) {
  let value = NaN
  const point = readPoint(reader, NUMBER, (field) => {
    if (field === 4) value = reader.double()
    else if (field === 6) value = signed(reader)
  })
  if (point !== null) point.value = value
  return point
}

// HistogramDataPoint { start = 2; time = 3; count = 4; sum = 5; bucket_counts = 6; explicit_bounds = 7; exemplars = 8; attributes = 9; flags = 10;
//                      min = 11; max = 12 }
function readHistogram (reader) {
  const counts = []
  const bounds = []
  const figures = { count: 0, sum: NaN, min: NaN, max: NaN }
  const point = readPoint(reader, HISTOGRAM, (field) => {
    switch (field) {
      case 4: figures.count = reader.number(); break
      case 5: figures.sum = reader.double(); break
      case 6: takeFixed(reader, counts, (from) => reader.bytes.readUInt32LE(from + 4) * 2 ** 32 + reader.bytes.readUInt32LE(from)); break
      case 7: takeFixed(reader, bounds, (from) => reader.bytes.readDoubleLE(from)); break
      case 11: figures.min = reader.double(); break
      case 12: figures.max = reader.double(); break
    }
  })
  if (counts.length === 0 && bounds.length === 0) counts.push(figures.count) // the only bucket
  if (point === null || counts.length !== bounds.length + 1 || !isAscending(bounds)) return null
  return withBuckets(point, new Buckets(sharedBounds(bounds), 0, sideOf(0, counts), null, 0), figures)
}

// ExponentialHistogramDataPoint { attributes = 1; start = 2; time = 3; count = 4; sum = 5; scale = 6; zero_count = 7; positive = 8; negative = 9;
//                                 flags = 10; exemplars = 11; min = 12; max = 13; zero_threshold = 14 }
function readExponential (reader) {
  const figures = { count: 0, sum: NaN, min: NaN, max: NaN }
  let [scale, zero, zeroThreshold, positive, negative] = [0, 0, 0, EMPTY, EMPTY]
  const point = readPoint(reader, EXPONENTIAL, (field) => {
    switch (field) {
      case 4: figures.count = reader.number(); break
      case 5: figures.sum = reader.double(); break
      case 6: scale = zigzag(reader); break
      case 7: zero = reader.number(); break
      case 8: positive = readSide(reader.message()); break
      case 9: negative = readSide(reader.message()); break
      case 12: figures.min = reader.double(); break
      case 13: figures.max = reader.double(); break
      case 14: zeroThreshold = reader.double(); break
    }
  })
  if (point === null || positive === null || negative === null || scale < SCALE_MIN || scale > SCALE_MAX) return null
  const buckets = new Buckets(null, scale, positive, negative === EMPTY ? null : negative, zero)
  if (zeroThreshold > 0 && zeroThreshold < Infinity) buckets.zeroThreshold = zeroThreshold
  return withBuckets(point, buckets, figures)
}

// Buckets { offset = 1; bucket_counts = 2 }
function readSide (reader) {
  const counts = []
  let offset = 0
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) offset = zigzag(reader)
    else if (field === 2 && reader.wire === VARINT) counts.push(reader.number())
    else if (field === 2) {
      const packed = reader.message()
      while (counts.length <= EXPONENTIAL_READ_MAX && packed.nextPacked()) counts.push(packed.number())
    }
    if (counts.length > EXPONENTIAL_READ_MAX) return null
  }
  return sideOf(offset, counts)
}

// SummaryDataPoint { start = 2; time = 3; count = 4; sum = 5; ValueAtQuantile { quantile = 1; value = 2 } = 6; attributes = 7; flags = 8 }
function readSummary (reader) {
  const figures = { count: 0, sum: NaN, min: NaN, max: NaN }
  const quantiles = []
  const point = readPoint(reader, SUMMARY, (field) => {
    if (field === 4) figures.count = reader.number()
    else if (field === 5) figures.sum = reader.double()
    else if (field === 6 && quantiles.length < QUANTILES_MAX) quantiles.push(readQuantile(reader.message()))
  })
  if (point === null) return null
  const buckets = new Buckets(null, 0, EMPTY, null, 0)
  buckets.quantiles = quantiles.filter(([quantile, value]) => Number.isFinite(quantile) && Number.isFinite(value))
  return withBuckets(point, buckets, figures)
}

function readQuantile (reader) {
  const pair = [0, 0]
  for (let field = reader.next(); field !== 0; field = reader.next()) if (field <= 2) pair[field - 1] = reader.double()
  return pair
}

function withBuckets (point, buckets, { count, sum, min, max }) {
  if (buckets.count === 0) buckets.count = count
  buckets.sum = finite(sum)
  buckets.min = finite(min)
  buckets.max = finite(max)
  point.buckets = buckets
  return point
}

// Exemplar { time = 2; as_double = 3; span_id = 4; trace_id = 5; as_int = 6 }
function readExemplar (reader) {
  const exemplar = { atMs: 0, value: NaN, traceId: '', spanId: '' }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    switch (field) {
      case 2: exemplar.atMs = millisecondsOf(reader.hi, reader.lo); break
      case 3: exemplar.value = reader.double(); break
      case 4: exemplar.spanId = idOf(reader, 8); break
      case 5: exemplar.traceId = idOf(reader, 16); break
      case 6: exemplar.value = signed(reader); break
    }
  }
  return exemplar.traceId === '' || /^0+$/.test(exemplar.traceId) || !Number.isFinite(exemplar.value) ? null : exemplar
}

// A list of 64-bit values is packed, and may be not.
function takeFixed (reader, list, read) {
  if (reader.wire !== BYTES) {
    reader.expect(1)
    if (list.length <= BOUNDS_MAX + 1) list.push(read(reader.at - FLOAT_BYTES))
    return
  }
  if ((reader.to - reader.from) % FLOAT_BYTES !== 0) throw new Malformed('a packed list is cut')
  for (let at = reader.from; at < reader.to && list.length <= BOUNDS_MAX + 1; at += FLOAT_BYTES) list.push(read(at))
}

function isAscending (bounds) {
  return bounds.length <= BOUNDS_MAX && bounds.every((bound, i) => i === 0 ? !Number.isNaN(bound) : bound > bounds[i - 1])
}

// Almost all histograms of an app have one of a few lists of bounds.
const boundsKnown = new Map()
const BOUNDS_KNOWN_MAX = 64

function sharedBounds (bounds) {
  const key = bounds.join()
  const shared = boundsKnown.get(key)
  if (shared !== undefined) return shared
  if (boundsKnown.size >= BOUNDS_KNOWN_MAX) boundsKnown.clear()
  boundsKnown.set(key, bounds)
  return bounds
}

function signed ({ hi, lo }) {
  return (hi | 0) * 2 ** 32 + lo
}

function zigzag (reader) {
  const number = reader.number() % 2 ** 32
  return number % 2 === 0 ? number / 2 : -(number + 1) / 2
}

function finite (number) {
  return Number.isFinite(number) ? number : NaN
}

module.exports = { readMetric, BOUNDS_MAX, EXPONENTIAL_READ_MAX }
