'use strict'

// A current Prometheus accepts the metrics as OTLP, and answers common queries.

const { test } = require('tap')
const { setTimeout: pause } = require('node:timers/promises')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { startPrometheus } = require('../support/prometheus-server')

const { METRICS_PROMETHEUS_OTLP } = process.env
const FLAGS = ['--web.enable-otlp-receiver', '--enable-feature=exemplar-storage']

async function pushingApp (t, origin, metrics) {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { serviceName: 'shop', exporter: 'none', metrics: { exporter: { url: `${origin}/api/v1/otlp/v1/metrics` }, ...metrics } })
  app.get('/users/:id', async (request) => ({ traceId: request.trace.traceId }))
  app.get('/boom', async () => { throw new TypeError('boom') })
  const orders = app.lightTrace.meterProvider.getMeter('shop').createCounter('orders')
  app.get('/order', async () => { orders.add(1, { plan: 'pro "x"\\\n' }); return 'x' })
  return app
}

for (const [histograms, temporality] of [['explicit', 'cumulative'], ['exponential', 'cumulative'], ['explicit', 'delta']]) {
  test(`Prometheus accepts OTLP: ${histograms} buckets, ${temporality}`, async (t) => {
    const flags = temporality === 'delta' ? [...FLAGS, '--enable-feature=otlp-deltatocumulative'] : FLAGS
    const prometheus = await startPrometheus(t, METRICS_PROMETHEUS_OTLP, { config: '{}', flags })
    await prometheus.ready()
    const app = await pushingApp(t, prometheus.origin, { histograms, temporality })
    const traceIds = []
    const send = async (requests) => {
      for (let i = 0; i < requests; i++) traceIds.push((await app.inject(`/users/${i}`)).json().traceId)
      await app.lightTrace.flush()
    }
    const duration = 'http_server_request_duration_seconds'
    const isNative = histograms === 'exponential'
    const count = (label) => isNative ? `histogram_count(${duration}{${label}})` : `${duration}_count{${label}}`

    await app.inject('/boom')
    await app.inject('/order')
    await send(5)
    const [users] = await prometheus.query(count('http_route="/users/:id"'), ([{ value }]) => value[1] === '5')
    t.match(users.metric, { http_request_method: 'GET', http_response_status_code: '200', url_scheme: 'http', network_protocol_version: '1.1', job: 'shop' })
    const [errors] = await prometheus.query(count('error_type!=""'))
    t.match(errors, { metric: { http_route: '/boom', error_type: 'TypeError', http_response_status_code: '500' }, value: [Number, '1'] })

    await pause(10) // so that this is a separate sample; Prometheus counts time in milliseconds
    await send(5)
    await prometheus.query(count('http_route="/users/:id"'), ([{ value }]) => value[1] === '10')
    const perRoute = isNative ? `histogram_count(sum by (http_route) (rate(${duration}[1m])))` : `sum by (http_route) (rate(${duration}_count[1m]))`
    const rates = await prometheus.query(`${perRoute} > 0`)
    t.strictSame(rates.map(({ metric }) => metric), [{ http_route: '/users/:id' }], 'only this route had requests between the two exports')
    const buckets = isNative ? `sum by (http_route) (${duration}{http_route="/users/:id"})` : `sum by (le, http_route) (${duration}_bucket{http_route="/users/:id"})`
    const [quantile] = await prometheus.query(`histogram_quantile(0.99, ${buckets})`)
    t.ok(Number(quantile.value[1]) > 0 && Number(quantile.value[1]) < 1, quantile.value[1])
    if (!isNative) {
      const bounds = await prometheus.query(`${duration}_bucket{http_route="/users/:id"}`)
      t.strictSame(bounds.map(({ metric }) => metric.le).sort(), ['0.005', '0.01', '0.025', '0.05', '0.075', '0.1', '0.25', '0.5', '0.75', '1', '2.5', '5', '7.5', '10', '+Inf'].sort())
      t.equal(bounds.find(({ metric }) => metric.le === '+Inf').value[1], '10')
    }

    const [orders] = await prometheus.query('orders_total')
    t.match(orders, { metric: { plan: 'pro "x"\\\n', job: 'shop' }, value: [Number, '1'] })
    const [info] = await prometheus.query('target_info')
    t.match(info.metric, { job: 'shop', telemetry_sdk_language: 'nodejs' })
    const exemplars = (await prometheus.exemplars(`{__name__=~"${duration}.*",http_route="/users/:id"}`)).flatMap(({ exemplars }) => exemplars)
    t.ok(exemplars.length > 0 && exemplars.every(({ labels }) => traceIds.includes(labels.trace_id)))
    t.match(app.lightTrace.stats().metrics, { exports: { ok: 2, failed: 0 }, points: { rejected: 0, dropped: 0 } })
  })
}
