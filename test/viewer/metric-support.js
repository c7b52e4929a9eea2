'use strict'

// Makes metrics to send to a viewer, encoded by OpenTelemetry's own code, and asks a store about them with a clock of the test's.

const { opentelemetry: { proto } } = require('@opentelemetry/otlp-transformer/build/src/generated/root')
const { TraceStore } = require('../../viewer/store/trace-store')
const { MetricStatistics } = require('../../viewer/statistics/metrics')

const { ExportMetricsServiceRequest } = proto.collector.metrics.v1
const NOW_MS = 1_763_753_000_000 // on the border of two slots
const DELTA = 1
const CUMULATIVE = 2

/** @returns {Buffer} @param {object[]} metrics as in OTLP; `start`, `time` of points are milliseconds, `attributes` an object */
function bodyOf (metrics, { service = 'shop', scope = 'test', resource = {} } = {}) {
  return Buffer.from(ExportMetricsServiceRequest.encode({
    resourceMetrics: [{ resource: { attributes: attributesOf({ 'service.name': service, ...resource }) }, scopeMetrics: [{ scope: { name: scope }, metrics: metrics.map(metricOf) }] }]
  }).finish())
}

function metricOf (metric) {
  const kind = ['gauge', 'sum', 'histogram', 'exponentialHistogram', 'summary'].find((each) => metric[each] !== undefined)
  return { ...metric, [kind]: { ...metric[kind], dataPoints: metric[kind].dataPoints.map(pointOf) } }
}

function pointOf ({ start = 0, time = NOW_MS, attributes = {}, exemplars = [], ...values }) {
  return {
    startTimeUnixNano: nano(start),
    timeUnixNano: nano(time),
    attributes: attributesOf(attributes),
    exemplars: exemplars.map(({ time: at = time, value, trace }) => ({ timeUnixNano: nano(at), asDouble: value, traceId: Buffer.from(trace, 'hex'), spanId: Buffer.alloc(8, 1) })),
    ...values
  }
}

function attributesOf (attributes) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: typeof value === 'number' ? { intValue: value } : { stringValue: value } }))
}

function nano (ms) {
  const nanos = BigInt(Math.round(ms)) * 1_000_000n
  return { low: Number(nanos & 0xffff_ffffn) | 0, high: Number(nanos >> 32n), unsigned: true }
}

const counter = (dataPoints, { temporality = CUMULATIVE, monotonic = true, name = 'count' } = {}) =>
  ({ name, sum: { aggregationTemporality: temporality, isMonotonic: monotonic, dataPoints } })

const gauge = (dataPoints, name = 'level') => ({ name, gauge: { dataPoints } })

const histogram = (dataPoints, { temporality = CUMULATIVE, name = 'time', unit = 's' } = {}) => ({ name, unit, histogram: { aggregationTemporality: temporality, dataPoints } })

const exponential = (dataPoints, { temporality = CUMULATIVE, name = 'time', unit = 's' } = {}) =>
  ({ name, unit, exponentialHistogram: { aggregationTemporality: temporality, dataPoints } })

/** A store at a time that the test sets. */
function storeAt (options = {}) {
  const clock = { ms: NOW_MS }
  const now = () => clock.ms
  const store = new TraceStore({ now, ...options })
  const statistics = new MetricStatistics(store, { now })
  return {
    clock,
    store,
    /** Sends at a time, by default that of the clock. @returns {number} how many points were dropped */
    send: (metrics, { atMs = clock.ms, ...from } = {}) => {
      clock.ms = atMs
      return store.receiveMetrics(bodyOf(metrics, from))
    },
    list: () => statistics.list(),
    data: (query) => statistics.data(new URLSearchParams(query)),
    overview: (query) => statistics.overview(new URLSearchParams(query)),
    /** The answer's only series, without slots in which nothing was measured, as [seconds after NOW_MS, value]. */
    async course (query, member) {
      const { atMs, series } = await statistics.data(new URLSearchParams(query))
      return series[0][member].map((value, i) => [(atMs[i] - NOW_MS) / 1000, value]).filter(([, value]) => value !== null)
    }
  }
}

module.exports = { bodyOf, storeAt, counter, gauge, histogram, exponential, NOW_MS, DELTA, CUMULATIVE }
