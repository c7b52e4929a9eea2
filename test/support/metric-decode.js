'use strict'

// Reads an OTLP ExportMetricsServiceRequest with the decoder that protobufjs generated from OpenTelemetry's .proto files, as strictly as
// otlp-decode.js reads spans.

module.exports = { decodeMetrics }

const { gunzipSync } = require('node:zlib')
const proto = require('@opentelemetry/otlp-transformer/build/src/generated/root').opentelemetry.proto
const { strictReader, boundMessages, attributesOf, bigint, id, GZIP_MAGIC } = require('./otlp-decode')

const Request = proto.collector.metrics.v1.ExportMetricsServiceRequest
const metrics = proto.metrics.v1
const TEMPORALITIES = ['unspecified', 'delta', 'cumulative']

boundMessages([
  Request, metrics.ResourceMetrics, metrics.ScopeMetrics, metrics.Metric, metrics.Gauge, metrics.Sum, metrics.Histogram,
  metrics.ExponentialHistogram, metrics.NumberDataPoint, metrics.HistogramDataPoint, metrics.ExponentialHistogramDataPoint,
  metrics.ExponentialHistogramDataPoint.Buckets, metrics.Exemplar
])

/**
 * @param {Buffer} body one request body
 * @returns {object[]} its metrics in order, each with its points. Times are BigInt nanoseconds, counts are numbers
 * @throws {Error} if the body violates the OTLP specification
 */
function decodeMetrics (body, { gzip = body[0] === GZIP_MAGIC } = {}) {
  const request = Request.decode(strictReader(gzip ? gunzipSync(body) : body))
  return request.resourceMetrics.flatMap(({ resource, scopeMetrics }) =>
    scopeMetrics.flatMap(({ scope, metrics, schemaUrl }) => {
      if (metrics.length === 0) throw new Error('OTLP: scope_metrics without metrics')
      return metrics.map((metric) => readable(metric, {
        resource: attributesOf(resource?.attributes),
        scope: { name: scope?.name ?? '', version: scope?.version ?? '' },
        schemaUrl: schemaUrl ?? ''
      }))
    }))
}

function readable ({ name, description, unit, gauge, sum, histogram, exponentialHistogram }, origin) {
  const data = gauge ?? sum ?? histogram ?? exponentialHistogram
  if (!name || !data || data.dataPoints.length === 0) throw new Error(`OTLP: metric '${name}' has no points`)
  const kind = gauge ? 'gauge' : sum ? 'sum' : histogram ? 'histogram' : 'exponentialHistogram'
  const read = { ...origin, name, description: description ?? '', unit: unit ?? '', kind }
  if (kind !== 'gauge') read.temporality = TEMPORALITIES[data.aggregationTemporality ?? 0]
  if (kind === 'sum') read.isMonotonic = data.isMonotonic ?? false
  read.points = data.dataPoints.map((point) => POINTS[kind](point))
  const seen = new Set(read.points.map(({ attributes }) => JSON.stringify(Object.entries(attributes).sort())))
  if (seen.size !== read.points.length) throw new Error(`OTLP: metric '${name}' has two points with the same attributes`)
  return read
}

const POINTS = {
  gauge: numberPoint,
  sum: numberPoint,
  histogram (point) {
    const counts = point.bucketCounts.map(Number)
    const count = Number(point.count)
    if (counts.length !== point.explicitBounds.length + 1) throw new Error('OTLP: bucket_counts must be one more than explicit_bounds')
    if (counts.reduce((sum, value) => sum + value, 0) !== count) throw new Error('OTLP: count is not the sum of bucket_counts')
    return { ...common(point), count, sum: point.sum, min: point.min, max: point.max, counts, bounds: point.explicitBounds }
  },
  exponentialHistogram (point) {
    const positive = buckets(point.positive)
    const zeroCount = Number(point.zeroCount)
    const count = Number(point.count)
    const sum = positive.counts.reduce((sum, value) => sum + value, 0) + zeroCount
    if (sum !== count) throw new Error('OTLP: count is not the sum of the buckets')
    return { ...common(point), count, sum: point.sum, min: point.min, max: point.max, scale: point.scale ?? 0, zeroCount, positive }
  }
}

function numberPoint (point) {
  return { ...common(point), value: point.value === 'asInt' ? point.asInt.toNumber() : point.asDouble, type: point.value }
}

function common ({ attributes, startTimeUnixNano, timeUnixNano, exemplars }) {
  const start = startTimeUnixNano === null ? 0n : bigint(startTimeUnixNano)
  const time = bigint(timeUnixNano)
  if (start > time) throw new Error('OTLP: a point that starts after its time')
  return {
    attributes: attributesOf(attributes),
    start,
    time,
    exemplars: exemplars.map((exemplar) => ({
      value: exemplar.value === 'asInt' ? exemplar.asInt.toNumber() : exemplar.asDouble,
      time: bigint(exemplar.timeUnixNano),
      traceId: id(exemplar.traceId, 16, 'exemplar trace_id'),
      spanId: id(exemplar.spanId, 8, 'exemplar span_id')
    }))
  }
}

function buckets (read) {
  return { offset: read?.offset ?? 0, counts: (read?.bucketCounts ?? []).map(Number) }
}
