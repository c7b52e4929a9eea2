'use strict'

// npx light-trace app.js: the app's metrics and those of its runtime are switched on.

const { join } = require('node:path')
const { test } = require('tap')
const { runApp, runCommand, eventually, APP } = require('./command')
const { resolveOptions } = require('../../lib/config/options')

const ROOT = join(__dirname, '../..')
const env = { OTEL_METRIC_EXPORT_INTERVAL: '200', OTEL_SERVICE_NAME: 'shop' }

const named = (json, name) => async () => (await json('/api/metrics')).instruments.find((each) => each.name === name)

test('the requests of an app, and its runtime, are measured without a line in its code', async (t) => {
  const { json, app, viewer, cwd } = await runApp(t, { env })
  for (let i = 0; i < 5; i++) await fetch(`${app}/users/7`)
  await fetch(`${app}/boom`)
  const requests = await eventually(named(json, 'http.server.request.duration'), (found) => found?.series === 2)
  t.match(requests, { kind: 'exponential_histogram', unit: 's', services: ['shop'], attributes: { 'http.route': ['/boom', '/users/:id'] } }, 'its buckets tell 1 ms from 2')
  const { routes, runtime } = await eventually(() => json('/api/metrics/overview?last=5m'), (answer) => answer.routes.some(({ exemplars }) => exemplars.some(({ held }) => held)))
  t.match(routes.sort((a, b) => a.route < b.route ? -1 : 1), [{ service: 'shop', route: 'GET /boom', errorShare: 1 }, { route: 'GET /users/:id', errorShare: 0 }])
  t.ok(routes.every(({ rate, p50Ms, p99Ms }) => rate > 0 && p50Ms > 0 && p99Ms >= p50Ms))
  t.same(runtime.map(({ title }) => title).filter((title) => /loop|Heap|CPU|Memory/.test(title)), ['Event loop delay', 'Event loop utilization', 'Heap', 'CPU', 'Memory'])
  const { stdout } = await runCommand(t, ['metrics', '--url', viewer], { cwd }).exit
  t.match(stdout, /^process\.memory\.usage +sum +By {2}1 series {2}shop$/m)
})

test('an app that registers light-trace itself is measured too, with instruments of its own', async (t) => {
  const own = `app.register(require(${JSON.stringify(ROOT)}), { serviceName: 'own' })
    app.get('/bake', async () => { app.lightTrace.meterProvider.getMeter('shop').createCounter('loaves').add(3, { kind: 'rye' }); return {} })\n`
  const { json, app } = await runApp(t, { env, files: { 'app.js': APP.replace(/^(const app = .*\n)/m, `$1${own}`) } })
  await fetch(`${app}/bake`)
  t.match(await eventually(named(json, 'loaves'), (found) => found !== undefined), { monotonic: true, services: ['own'], attributes: { kind: ['rye'] } })
  t.ok(await eventually(named(json, 'v8js.memory.heap.used'), (found) => found !== undefined))
})

test('metrics that the user turned off or sends elsewhere stay as they were', (t) => {
  const command = { LIGHT_TRACE_VIEWER: 'http://127.0.0.1:4318', OTEL_METRICS_EXPORTER: 'otlp' }
  const facts = (given, environment) => {
    const { metrics } = resolveOptions(given === undefined ? {} : { metrics: given }, environment)
    return metrics && [metrics.runtime, metrics.histograms]
  }
  t.same(facts(undefined, command), [true, 'exponential'])
  t.same(facts({ runtime: false }, command), [false, 'exponential'])
  t.same(facts({ histograms: 'explicit' }, command), [true, 'explicit'])
  t.same(facts({ buckets: [1, 2] }, command), [true, 'explicit'])
  t.same(facts(undefined, { ...command, OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION: 'explicit_bucket_histogram' }), [true, 'explicit'])
  t.same(facts({ path: '/metrics' }, command), [false, 'explicit'])
  t.same(facts({ exporter: { url: 'http://127.0.0.1:1/v1/metrics' } }, command), [false, 'explicit'])
  t.same(facts(undefined, { ...command, OTEL_METRICS_EXPORTER: 'otlp,prometheus' }), [false, 'explicit'])
  t.same(facts(true, {}), [false, 'explicit'])
  t.notOk(facts(undefined, { ...command, OTEL_METRICS_EXPORTER: 'none' }))
  t.end()
})
