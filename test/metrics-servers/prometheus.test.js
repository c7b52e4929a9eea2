'use strict'

// A real Prometheus server scrapes an application's metrics path, and answers common queries.

const { spawnSync } = require('node:child_process')
const { test } = require('tap')
const Fastify = require('fastify')
const api = require('@opentelemetry/api')
const lightTrace = require('../..')
const { createCollector } = require('../../lib/features/testing/testing')
const { recordHostile } = require('../support/hostile-instruments')
const { faultsIn } = require('../support/prometheus-text')
const { startPrometheus } = require('../support/prometheus-server')

const { METRICS_PROMETHEUS, METRICS_PROMTOOL } = process.env

async function scrapedApp (t, metrics) {
  const collector = createCollector()
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { serviceName: 'shop', spanProcessors: [collector], metrics: { path: '/metrics', ...metrics } })
  app.get('/users/:id', async () => ({ ok: true }))
  app.get('/boom', async () => { throw new TypeError('boom') })
  const orders = api.metrics.getMeter('shop').createCounter('orders', { description: 'Orders placed.' })
  app.get('/order', async () => { orders.add(1, { plan: 'pro "x"\\\n' }); return 'x' })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { app, collector, get: async (path) => (await fetch(`${app.listeningOrigin}${path}`)).text() }
}

function startScraping (t, target) {
  const config = `
global: { scrape_interval: 1s }
scrape_configs: [{ job_name: shop, static_configs: [{ targets: ['${new URL(target).host}'] }] }]
`
  return startPrometheus(t, METRICS_PROMETHEUS, { config, flags: ['--enable-feature=exemplar-storage'] })
}

for (const histograms of ['explicit', 'exponential']) {
  test(`rate, quantile, errors and exemplars can be queried, ${histograms} buckets`, async (t) => {
    const { app, collector, get } = await scrapedApp(t, { runtime: true, activeRequests: true, histograms })
    const prometheus = await startScraping(t, app.listeningOrigin)
    for (let i = 0; i < 5; i++) await get(`/users/${i}`)
    await get('/boom')
    await get('/order')
    const count = (label) => `http_server_request_duration_seconds_count{${label}}`
    const [users] = await prometheus.query(count('http_route="/users/:id"'), ([{ value }]) => value[1] === '5')
    t.match(users.metric, { http_request_method: 'GET', http_response_status_code: '200', url_scheme: 'http', network_protocol_version: '1.1', job: 'shop' })
    for (let i = 0; i < 5; i++) await get(`/users/${i}`)
    const [rate] = await prometheus.query(`rate(${count('http_route="/users/:id"')}[30s])`, ([{ value }]) => Number(value[1]) > 0)
    t.ok(Number(rate.value[1]) > 0)
    const [quantile] = await prometheus.query('histogram_quantile(0.99, sum by (le, http_route) (http_server_request_duration_seconds_bucket{http_route="/users/:id"}))')
    t.ok(Number(quantile.value[1]) > 0 && Number(quantile.value[1]) < 1, quantile.value[1])
    const [errors] = await prometheus.query(count('error_type!=""'))
    t.match(errors, { metric: { error_type: 'TypeError', http_response_status_code: '500' }, value: [Number, '1'] })
    const [orders] = await prometheus.query('orders_total')
    t.match(orders, { metric: { otel_scope_name: 'shop', plan: 'pro "x"\\\n' }, value: [Number, '1'] })
    const [info] = await prometheus.query('target_info')
    t.match(info.metric, { service_name: 'shop', telemetry_sdk_language: 'nodejs' })
    t.ok(Number((await prometheus.query('process_memory_usage_bytes'))[0].value[1]) > 1e6)

    const spans = await collector.spans()
    const exemplars = (await prometheus.exemplars('http_server_request_duration_seconds_bucket{http_route="/users/:id"}')).flatMap(({ exemplars }) => exemplars)
    for (const { labels, value } of exemplars) {
      const span = spans.find(({ spanId }) => spanId === labels.span_id)
      t.equal(labels.trace_id, span.traceId)
      t.ok(Math.abs(Number(value) - span.duration / 1000) < 1e-6)
    }
    const { activeTargets: [target] } = await prometheus.targets()
    t.equal(target.lastError, '')
    t.notOk(spans.some(({ name }) => name.includes('/metrics')), 'scrapes are not traced')
  })

  test(`promtool finds no problem, ${histograms} buckets`, async (t) => {
    const { app, get } = await scrapedApp(t, { runtime: true, activeRequests: true, bodySizes: true, histograms })
    for (const path of ['/users/1', '/boom', '/order', '/nowhere']) await get(path)
    const { status, stdout, stderr } = spawnSync(METRICS_PROMTOOL, ['check', 'metrics'], { input: await get('/metrics'), encoding: 'utf8' })
    t.equal(status, 0, stdout + stderr)
    t.equal(stdout + stderr, '')
    t.ok(app)
  })

  test(`one library cannot break the scrape, ${histograms} buckets`, async (t) => {
    const { app, get } = await scrapedApp(t, { histograms })
    recordHostile(app.lightTrace.meterProvider)
    await get('/users/1')
    for (const openMetrics of [false, true]) t.same(faultsIn(await app.lightTrace.metrics({ openMetrics }), openMetrics), [])
    const { stderr } = spawnSync(METRICS_PROMTOOL, ['check', 'metrics'], { input: await get('/metrics'), encoding: 'utf8' })
    t.notMatch(stderr, /error while linting/, 'names may be unusual, but all of it is read')
    const prometheus = await startScraping(t, app.listeningOrigin)
    await prometheus.query('http_server_request_duration_seconds_count{http_route="/users/:id"}')
    const { activeTargets: [target] } = await prometheus.targets()
    t.equal(target.lastError, '')
    t.ok(app.lightTrace.stats().metrics.scrapeDropped > 5)
  })
}
