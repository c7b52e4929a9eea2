'use strict'

// Metrics on standard output. They are read back with protobufjs' JSON reader and OpenTelemetry's .proto files, and compared with the
// binary export. Ids are converted before that, because OTLP writes them in hex and protobuf's JSON mapping in base64.

const { test } = require('tap')
const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root')
const { TraceContext, SAMPLED } = require('../../lib/context/trace-context')
const { keepExemplar } = require('../../lib/features/metrics/histograms')
const { MetricJson } = require('../../lib/features/metrics/encoder')
const clock = require('../../lib/runtime/timers')
const { decodeMetrics } = require('../support/metric-decode')
const { without } = require('../support/features')
const { runInChild } = require('../support/child')
const { startMetricSink } = require('../support/metric-sink')
const { newRegistry, newMeter, encodeAll } = require('./support')

const Request = opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest

for (const histograms of ['explicit', 'exponential']) {
  for (const temporality of ['cumulative', 'delta']) {
    test(`JSON lines have the same content as the binary export: ${histograms}, ${temporality}`, async (t) => {
      const registries = [newRegistry({ histograms, temporality }), newRegistry({ histograms, temporality })]
      for (const registry of registries) await record(registry)
      const nowMs = clock.now()
      const json = new MetricJson({ attributes: { 'service.name': 'test' } }, true)
      const { batches, metrics } = encodeAll(registries[0], { nowMs })
      const lines = linesOf(json, registries[1], nowMs)
      t.equal(lines.length, 1)
      t.same(comparable(lines.flatMap(read)), comparable(metrics))
      t.equal(lines[0].points, batches[0].points)
      for (const part of [...batches, ...lines]) part.delivered()
      for (const registry of registries) newMeter(registry).createHistogram('took').record(3)
      const laterMs = clock.now()
      t.same(comparable(linesOf(json, registries[1], laterMs, nowMs).flatMap(read)),
        comparable(encodeAll(registries[0], { nowMs: laterMs, sinceMs: nowMs }).metrics))
    })
  }
}

test('the start of a cumulative series is constant', async (t) => {
  const registry = newRegistry()
  const counter = newMeter(registry).createCounter('orders')
  counter.add(1)
  const json = new MetricJson({ attributes: {} }, true)
  const starts = [1, 2].map((later) => read(linesOf(json, registry, clock.now() + later)[0])[0].points[0].start)
  t.equal(starts[0], starts[1])
})

test('many series are written in steps, in lines that are complete messages', async (t) => {
  const registry = newRegistry()
  const histogram = newMeter(registry).createHistogram('took')
  for (let i = 0; i < 1999; i++) histogram.record(i, { route: `/a/${i}` })
  clock.anchor()
  const steps = [...new MetricJson({ attributes: {} }, true).encode(registry.scopes(), clock.now(), -1)]
  const lines = steps.filter((step) => step !== null)
  t.ok(steps.length - lines.length >= 30, 'with pauses')
  t.ok(lines.length > 1)
  t.ok(lines.every((line) => line.body.length < 256 * 1024))
  t.equal(new Set(lines.flatMap(read).flatMap(({ points }) => points.map(({ attributes }) => attributes.route))).size, 1999)
})

const work = async ({ Fastify, lightTrace, say }, options = {}) => {
  const app = Fastify()
  await app.register(lightTrace, { serviceName: 'shop', ...options })
  app.get('/orders/:id', async () => 'x')
  await app.inject('/orders/1')
  await app.lightTrace.flush()
  await app.inject('/orders/2')
  await app.close()
  say({ stats: app.lightTrace.stats() })
}

test('it can be set with the exporter of spans, alone, or by a variable', async (t) => {
  for (const [options, env] of [
    ...(without('console') ? [] : [[{ exporter: 'otlp/stdout', metrics: true }, {}]]),
    [{ exporter: 'none', metrics: { exporter: 'otlp/stdout' } }, {}],
    [{ exporter: 'none' }, { OTEL_METRICS_EXPORTER: 'otlp/stdout' }]
  ]) {
    const { said, stderr } = await runInChild(t, work, { args: [options], env }).exit
    t.equal(stderr, '')
    const { stats } = said.pop()
    const collections = said.filter(({ resourceMetrics }) => resourceMetrics !== undefined)
    t.equal(collections.length, 2, 'one line for each collection')
    const durations = collections.map((line) => read(line).find(({ name }) => name === 'http.server.request.duration'))
    t.match(durations.map(({ points: [point] }) => point.count), [1, 2])
    t.match(durations[0], { unit: 's', kind: 'histogram', temporality: 'cumulative', resource: { 'service.name': 'shop' } })
    t.match(durations[0].points[0].attributes, { 'http.route': '/orders/:id', 'http.response.status_code': 200 })
    t.match(stats.metrics, { exports: { ok: 2, failed: 0 }, points: { dropped: 0 } })
    t.ok(stats.metrics.points.delivered >= 2)
  }
})

test('deltas on standard output add up, and lines are cumulative if another exporter takes the deltas', async (t) => {
  const alone = await runInChild(t, work, { args: [{ exporter: 'otlp/stdout', metrics: { temporality: 'delta' } }] }).exit
  t.same(counts(alone.said), [['delta', 1], ['delta', 1]])
  const sink = await startMetricSink(t)
  const env = { OTEL_METRICS_EXPORTER: 'otlp,otlp/stdout', OTEL_EXPORTER_OTLP_ENDPOINT: sink.origin, OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'delta' }
  const both = await runInChild(t, work, { args: [{ exporter: 'none' }], env }).exit
  t.same(counts(both.said), [['cumulative', 1], ['cumulative', 2]])
  const sent = sink.exports.flatMap(({ metrics }) => metrics).filter(({ name }) => name === 'http.server.request.duration')
  t.same(sent.map(({ temporality, points: [{ count }] }) => [temporality, count]), [['delta', 1], ['delta', 1]])
})

function counts (said) {
  return said.filter(({ resourceMetrics }) => resourceMetrics !== undefined).flatMap(read)
    .filter(({ name }) => name === 'http.server.request.duration')
    .map(({ temporality, points: [{ count }] }) => [temporality, count])
}

async function record (registry) {
  const meter = newMeter(registry)
  for (const [name, options] of [['ints', { valueType: 0 }], ['doubles', {}]]) {
    meter.createCounter(`counter.${name}`, { unit: '{order}', description: 'Orders "taken".', ...options }).add(2 ** 40 + 7, { a: 1, b: 'ä\ud800"', c: [true], d: 0.5 })
    meter.createUpDownCounter(`level.${name}`, options).add(-3)
    meter.createGauge(`gauge.${name}`, options).record(-1.5)
  }
  meter.createObservableGauge('heat').addCallback((result) => result.observe(21.5, { room: 1 }))
  await registry.observe()
  const histogram = registry.metric({ name: 'other', key: 'other', version: '1', schemaUrl: 'https://x/1' }, 'histogram', { name: 'took', unit: 's' })
  for (const value of [0, 0.003, 7, 7, 1e6]) histogram.of(['k', 'v']).record(value)
  keepExemplar(histogram.of(['k', 'v']), 2, 7, clock.now(), Object.assign(new TraceContext(), { t0: -1, t1: 2, t2: 3, t3: 4, s0: 5, s1: -6, flags: SAMPLED }))
  histogram.of(['empty', true])
}

function linesOf (json, registry, nowMs, sinceMs = -1) {
  clock.anchor()
  return [...json.encode(registry.scopes(), nowMs, sinceMs)].filter((line) => line !== null)
}

function read (line) {
  const message = typeof line.resourceMetrics === 'object' ? line : JSON.parse(line.body ?? line)
  return decodeMetrics(Buffer.from(Request.encode(Request.fromObject(withBytes(message))).finish()))
}

function withBytes (value) {
  if (Array.isArray(value)) return value.map(withBytes)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) =>
    [key, /^(?:trace|span)Id$/.test(key) ? Buffer.from(member, 'hex').toString('base64') : withBytes(member)]))
}

// Ignores the start times, because the two registries start at different times.
function comparable (metrics) {
  return metrics.map((metric) => ({
    ...metric,
    points: metric.points.map((point) => ({ ...point, start: point.start > 0n, exemplars: point.exemplars.map((exemplar) => ({ ...exemplar, time: exemplar.time > 0n })) }))
  }))
}
