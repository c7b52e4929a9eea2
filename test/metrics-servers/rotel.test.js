'use strict'

// Metrics through rotel, a collector that shares no code with light-trace. It forwards what it decoded, which is compared with the recorded
// values.

const { test } = require('tap')
const { setTimeout: pause } = require('node:timers/promises')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { start } = require('../../scripts/run')
const { freePort } = require('../../scripts/free-port')
const { startMetricSink } = require('../support/metric-sink')

const { METRICS_ROTEL } = process.env
const ANY = '127.0.0.1:0'
const READY_MS = 60_000

async function startRotel (t, exportTo) {
  const port = await freePort()
  const rotel = start(METRICS_ROTEL, [
    'start', '--otlp-http-endpoint', `127.0.0.1:${port}`, '--otlp-grpc-endpoint', ANY,
    '--exporter', 'otlp', '--otlp-exporter-protocol', 'http', '--otlp-exporter-endpoint', exportTo,
    '--otlp-exporter-compression', 'none', '--batch-timeout', '20ms'
  ])
  t.teardown(() => rotel.stop())
  const url = `http://127.0.0.1:${port}`
  for (const deadline = Date.now() + READY_MS; Date.now() < deadline && rotel.alive(); await pause(50)) {
    const answer = await fetch(`${url}/v1/metrics`, { method: 'POST', headers: { 'content-type': 'application/x-protobuf' } }).catch(() => null)
    if (answer?.ok) return url
  }
  throw new Error(`rotel did not start\n${rotel.output()}`)
}

for (const [histograms, temporality] of [['explicit', 'cumulative'], ['exponential', 'delta']]) {
  test(`rotel forwards the recorded values, ${histograms}, ${temporality}`, async (t) => {
    const sink = await startMetricSink(t)
    const rotel = await startRotel(t, sink.origin)
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(lightTrace, { serviceName: 'shop', exporter: { url: rotel }, metrics: { runtime: true, activeRequests: true, histograms, temporality } })
    app.get('/users/:id', async () => ({ ok: true }))
    for (let i = 0; i < 4; i++) await app.inject(`/users/${i}`)
    const orders = app.lightTrace.meterProvider.getMeter('shop', '2').createCounter('orders', { valueType: 0 })
    orders.add(7, { plan: 'pro', tags: ['a', 'b'] })
    await app.lightTrace.flush()
    t.match(app.lightTrace.stats().metrics, { exports: { failed: 0 }, points: { rejected: 0, dropped: 0 } })
    const duration = await sink.metric('http.server.request.duration')
    t.match(duration, {
      kind: histograms === 'explicit' ? 'histogram' : 'exponentialHistogram', unit: 's', temporality, resource: { 'service.name': 'shop' }
    })
    const [point] = duration.points
    t.equal(point.count, 4)
    t.match(point.attributes, { 'http.route': '/users/:id', 'http.response.status_code': 200 })
    t.ok(point.min > 0 && point.max >= point.min && point.sum >= point.max)
    const traces = await sink.until(() => sink.requests.flatMap(({ spans = [] }) => spans).length >= 4 && sink.requests.flatMap(({ spans = [] }) => spans))
    for (const exemplar of point.exemplars) t.ok(traces.some(({ traceId, spanId }) => traceId === exemplar.traceId && spanId === exemplar.spanId))
    t.ok(point.exemplars.length > 0)
    t.match(await sink.metric('orders'), { kind: 'sum', isMonotonic: true, temporality, points: [{ value: 7, type: 'asInt', attributes: { plan: 'pro', tags: ['a', 'b'] } }], scope: { name: 'shop', version: '2' } })
    t.match(await sink.metric('http.server.active_requests'), { kind: 'sum', isMonotonic: false, temporality: 'cumulative' })
    t.match(await sink.metric('process.memory.usage'), { unit: 'By' })
  })
}

test('rotel forwards log records unchanged', async (t) => {
  const sink = await startMetricSink(t)
  const rotel = await startRotel(t, sink.origin)
  const direct = await startMetricSink(t)
  const apps = await Promise.all([rotel, direct.origin].map(async (url) => {
    const app = Fastify({ logger: { stream: { write () {} }, customLevels: { notice: 35 } } })
    t.teardown(() => app.close())
    await app.register(lightTrace, { serviceName: 'shop', registerGlobals: false, exporter: { url }, logs: { export: true } })
    app.get('/orders/:id', async ({ log }) => {
      log.notice({ n: 7, x: 1.5, big: 2n ** 60n, yes: true, none: null, list: [1, 'a', { b: [] }], text: 'umlaut \u00e4 \ud83d\ude00' }, 'placed')
      throw Object.assign(new Error('no stock'), { code: 'E_STOCK' })
    })
    await app.inject({ url: '/orders/7', headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' } })
    await app.lightTrace.flush()
    t.match(app.lightTrace.stats().logs, { exports: { failed: 0 }, records: { rejected: 0, dropped: {} } })
    return app
  }))
  t.equal(apps.length, 2)
  await sink.until(() => sink.records.length === direct.records.length)
  const same = ({ time, observedTime, spanId, attributes: { responseTime, 'exception.stacktrace': stack, ...attributes }, resource: { 'service.instance.id': _, ...resource }, ...record }) => ({ ...record, attributes, resource })
  t.same(sink.records.map(same), direct.records.map(same))
  t.ok(sink.records.every(({ time, observedTime }) => time > 0n && time === observedTime))
  t.match(sink.records.find(({ body }) => body === 'placed'), { severityNumber: 11, severityText: 'notice', traceId: '0af7651916cd43dd8448eb211c80319c', attributes: { big: '1152921504606846976' } })
})
