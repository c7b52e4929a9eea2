'use strict'

const http = require('node:http')
const { once } = require('node:events')
const { test } = require('tap')
const Fastify = require('fastify')
const api = require('@opentelemetry/api')
const lightTrace = require('../..')
const { without } = require('../support/features')
const { createCollector } = require('../../lib/features/testing/testing')
const { startMetricSink } = require('../support/metric-sink')
const { freePort } = require('../../scripts/free-port')

const DURATION = 'http.server.request.duration'

async function measuredApp (t, options = {}, routes = () => {}) {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: 'none', metrics: true, ...options })
  app.get('/users/:id', async () => ({ ok: true }))
  routes(app)
  await app.ready()
  return app
}

test('the Prometheus path serves both formats, also concurrently, and is neither traced nor counted', async (t) => {
  const collector = createCollector()
  const app = await measuredApp(t, { spanProcessors: [collector], metrics: { path: '/metrics', runtime: true } })
  await app.inject('/users/1')
  const [text, open] = await Promise.all([
    app.inject('/metrics'), app.inject({ url: '/metrics', headers: { accept: 'application/openmetrics-text; version=1.0.0' } })
  ])
  t.equal(text.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  t.equal(open.headers['content-type'], 'application/openmetrics-text; version=1.0.0; charset=utf-8')
  t.match(text.body, /http_server_request_duration_seconds_count\{.*http_route="\/users\/:id".*\} 1\n/)
  t.match(open.body, / # \{trace_id="[0-9a-f]{32}",span_id="[0-9a-f]{16}"\} /)
  t.match(open.body, /\n# EOF\n$/)
  t.match(open.body, /nodejs_eventloop_utilization_ratio /)
  t.match(open.body, /process_cpu_time_seconds_total\{cpu_mode="user"\} /)
  t.notMatch(open.body, /http_route="\/metrics"/)
  t.equal(await collector.tree(), 'SERVER GET /users/:id')
  t.match(await app.lightTrace.metrics(), /http_server_request_duration_seconds_count/)
  t.match(await app.lightTrace.metrics({ openMetrics: true }), /# EOF\n$/)
})

test('an application that has used up all its metrics starts, and has ours', async (t) => {
  const all = { runtime: true, activeRequests: true, bodySizes: true, path: '/metrics' }
  const app = await measuredApp(t, { metrics: { exporter: 'none', ...all } }, ({ lightTrace }) => {
    const meter = lightTrace.meterProvider.getMeter('busy')
    for (let i = 0; i < 2000; i++) meter.createCounter(`c${i}`).add(1)
  })
  t.equal((await app.inject('/users/1')).statusCode, 200)
  const { body } = await app.inject('/metrics')
  for (const name of ['http_server_request_duration_seconds_count', 'http_server_active_requests', 'otel_sdk_span_started_total', 'process_cpu_time']) {
    t.match(body, new RegExp(`^${name}.* `, 'm'))
  }
  t.match(body, /^c999_total/m)
  t.notMatch(body, /^c1000_total/m)
})

test('without the option there are no metrics and no text, and instruments record nothing', async (t) => {
  const app = await measuredApp(t, { metrics: false })
  await app.inject('/users/1')
  t.equal(await app.lightTrace.metrics(), '')
  t.notOk('metrics' in app.lightTrace.stats())
  app.lightTrace.meterProvider.getMeter('x').createCounter('y').add(1)
  t.equal(await app.lightTrace.metrics(), '')
})

test('a scraper may leave, or come during a flush', async (t) => {
  const sink = await startMetricSink(t)
  const app = await measuredApp(t, { exporter: { url: sink.url }, metrics: { path: '/metrics', attributes: ({ query }) => ({ n: query.n }) } })
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  for (let i = 0; i < 1000; i++) await app.inject(`/users/1?n=${i}`)
  const request = http.get(`${origin}/metrics`)
  const [response] = await once(request, 'response')
  await once(response, 'data')
  response.destroy()
  const [body] = await Promise.all([fetch(`${origin}/metrics`).then((response) => response.text()), app.lightTrace.flush()])
  t.equal(body.match(/http_server_request_duration_seconds_count/g).length, 1000)
  t.equal((await sink.metric(DURATION)).points.length, 1000)
})

test('the collector of tests has the metrics, and nothing is sent', async (t) => {
  const collector = createCollector()
  const app = await measuredApp(t, { spanProcessors: [collector], sampler: 0, exporter: undefined })
  await app.inject('/users/1')
  const duration = (await collector.metrics()).find(({ name }) => name === DURATION)
  t.match(duration, { unit: 's', kind: 'histogram', scope: { name: 'light-trace' }, points: [{ count: 1, attributes: { 'http.route': '/users/:id' } }] })
  t.same(await createCollector().metrics(), [])
})

test('metrics.getMeter works once light-trace is registered, and the slot is free again after the close', async (t) => {
  const app = Fastify()
  await app.register(lightTrace, { exporter: 'none', metrics: true })
  const meter = api.metrics.getMeter('shop', '1')
  const orders = meter.createCounter('orders')
  meter.createObservableGauge('size').addCallback((result) => result.observe(3, { a: 'b' }))
  orders.add(2)
  const text = await app.lightTrace.metrics()
  t.match(text, /orders_total\{otel_scope_name="shop",otel_scope_version="1"\} 2\n/)
  t.match(text, /size\{a="b",otel_scope_name="shop",otel_scope_version="1"\} 3\n/)
  await app.close()
  t.equal(api.metrics.getMeterProvider().constructor.name, 'NoopMeterProvider')
  const next = await measuredApp(t)
  orders.add(5)
  t.match(await next.lightTrace.metrics(), /orders_total\{.*\} 5\n/, 'earlier instruments record to the next application')
})

test('the slot stays free without metrics, and without registerGlobals', async (t) => {
  await measuredApp(t, { metrics: false })
  t.equal(api.metrics.getMeterProvider().constructor.name, 'NoopMeterProvider')
  const app = await measuredApp(t, { registerGlobals: false })
  t.equal(api.metrics.getMeterProvider().constructor.name, 'NoopMeterProvider')
  app.lightTrace.meterProvider.getMeter('own').createUpDownCounter('x').add(-1)
  t.match(await app.lightTrace.metrics(), /x\{otel_scope_name="own"\} -1\n/)
})

test('metrics are recorded through an SDK\'s MeterProvider, and nothing is exported', async (t) => {
  const { MeterProvider, InMemoryMetricExporter, PeriodicExportingMetricReader, AggregationTemporality } = require('@opentelemetry/sdk-metrics')
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const provider = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1e9 })] })
  t.ok(api.metrics.setGlobalMeterProvider(provider))
  t.teardown(() => { api.metrics.disable() })
  const sink = await startMetricSink(t)
  const app = await measuredApp(t, { exporter: { url: sink.url }, sampler: 0, metrics: { activeRequests: true, runtime: true } })
  await app.inject('/users/1')
  await app.inject('/users/2')
  app.lightTrace.meterProvider.getMeter('shop').createCounter('orders').add(1)
  await app.close()
  await provider.forceFlush()
  const metrics = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics).flatMap(({ metrics }) => metrics)
  const named = (name) => metrics.find(({ descriptor }) => descriptor.name === name)
  const { dataPoints: [point], descriptor } = named(DURATION)
  t.equal(point.value.count, 2)
  t.equal(descriptor.unit, 's')
  t.equal(point.value.buckets.boundaries.length, 14)
  t.match(point.attributes, { 'http.request.method': 'GET', 'http.route': '/users/:id', 'http.response.status_code': 200, 'url.scheme': 'http', 'network.protocol.version': '1.1' })
  t.same(named('http.server.active_requests').dataPoints.map(({ value }) => value), [0])
  t.ok(named('nodejs.eventloop.utilization'))
  t.ok(named('orders'))
  t.same(sink.exports, [])
  await provider.shutdown()
})

test('a MeterProvider that throws affects neither the start nor a request', async (t) => {
  const broken = (fails) => ({ getMeter: () => new Proxy({}, { get: () => fails }) })
  for (const fails of [() => { throw new Error('broken') }, () => ({ add () { throw new Error('broken') }, record () { throw new Error('broken') } })]) {
    t.ok(api.metrics.setGlobalMeterProvider(broken(fails)))
    t.teardown(() => { api.metrics.disable() })
    const app = await measuredApp(t, { metrics: { activeRequests: true, bodySizes: true } })
    t.equal((await app.inject('/users/1')).statusCode, 200)
    await app.close()
    api.metrics.disable()
  }
})

test('calls of sampled and unsampled requests are measured', async (t) => {
  const upstream = http.createServer((request, response) => {
    response.statusCode = request.url === '/broken' ? 503 : 200
    response.end('x')
  }).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  t.teardown(() => upstream.close())
  const { port } = upstream.address()
  const closed = await freePort()
  for (const sampler of [1, 0]) {
    const collector = createCollector()
    const redacted = []
    const redactQuery = (query) => redacted.push(query) && ''
    const app = await measuredApp(t, { spanProcessors: [collector], sampler, redactQuery }, (app) => {
      app.get('/call', async () => {
        await (await fetch(`http://127.0.0.1:${port}/a?secret=1`)).text()
        await (await fetch(`http://127.0.0.1:${port}/broken`)).text()
        await fetch(`http://127.0.0.1:${closed}/`).catch(() => {})
        const [response] = await once(http.get(`http://127.0.0.1:${port}/b`), 'response')
        response.resume()
        await once(response, 'end')
        return 'done'
      })
    })
    await app.inject('/call')
    const calls = (await collector.metrics()).find(({ name }) => name === 'http.client.request.duration')
    const seen = Object.fromEntries(calls.points.map(({ attributes, count, exemplars }) =>
      [`${attributes['http.response.status_code']} ${attributes['error.type']}`, { attributes, count, hasExemplars: exemplars.length > 0 }]))
    const server = { 'http.request.method': 'GET', 'server.address': '127.0.0.1', 'server.port': port, 'network.protocol.version': '1.1' }
    t.same(seen['200 undefined'], { attributes: { ...server, 'http.response.status_code': 200 }, count: 2, hasExemplars: sampler === 1 }, `sampler ${sampler}`)
    t.same(seen['503 503'], { attributes: { ...server, 'http.response.status_code': 503, 'error.type': '503' }, count: 1, hasExemplars: sampler === 1 })
    t.match(Object.keys(seen).find((key) => key.startsWith('undefined')), /ECONNREFUSED/)
    const { spans } = app.lightTrace.stats()
    t.equal(spans.started, spans.ended)
    t.equal(spans.unsampled, sampler === 0 ? 5 : 0)
    t.equal((await collector.spans()).length, sampler === 0 ? 0 : 5)
    t.equal(redacted.length, sampler, 'query parameters are not redacted here, since no span shows them')
    await app.close()
  }
})

test('calls are measured with a Sampler, too', async (t) => {
  const upstream = http.createServer((request, response) => response.end('x')).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  t.teardown(() => upstream.close())
  const collector = createCollector()
  const sampler = { shouldSample: (context, traceId, name, kind) => ({ decision: kind === 2 ? 0 : 2 }) }
  const app = await measuredApp(t, { spanProcessors: [collector], sampler }, (app) => {
    app.get('/call', async () => (await fetch(`http://127.0.0.1:${upstream.address().port}/`)).text())
  })
  await app.inject('/call')
  const calls = (await collector.metrics()).find(({ name }) => name === 'http.client.request.duration')
  t.match(calls.points, [{ count: 1, attributes: { 'http.response.status_code': 200, 'server.address': '127.0.0.1' } }])
})

test('database calls are measured by system, operation and server, without values', { skip: without('libraries') }, async (t) => {
  const diagnostics = require('node:diagnostics_channel')
  const channel = diagnostics.tracingChannel('mysql2:query')
  for (const sampler of [1, 0]) {
    const collector = createCollector()
    const app = await measuredApp(t, { spanProcessors: [collector], sampler }, (app) => {
      app.get('/db', async () => {
        for (const id of [1, 2]) {
          await channel.tracePromise(async () => {}, { query: `SELECT * FROM users WHERE id = ${id}`, database: 'shop', serverAddress: 'db.local', serverPort: 3307 })
        }
        await channel.tracePromise(async () => { throw Object.assign(new Error('no'), { code: 'ER_DUP_ENTRY', errno: 1062 }) }, { query: 'INSERT INTO users VALUES (1)', database: 'shop', serverAddress: 'db.local', serverPort: 3307 }).catch(() => {})
        return 'x'
      })
    })
    await app.inject('/db')
    const calls = (await collector.metrics()).find(({ name }) => name === 'db.client.operation.duration')
    t.equal(calls.points.length, 2, `sampler ${sampler}`)
    const [select, insert] = calls.points
    t.equal(select.count, 2)
    t.same(select.bounds, [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10])
    t.match(select.attributes, { 'db.system.name': 'mysql', 'db.query.summary': 'SELECT users', 'db.namespace': 'shop', 'server.address': 'db.local', 'server.port': 3307 })
    t.match(insert.attributes, { 'db.query.summary': 'INSERT users', 'error.type': /./ })
    t.notMatch(JSON.stringify(calls), /WHERE|VALUES/)
    await app.close()
  }
})

test('light-trace counts its own spans', async (t) => {
  const collector = createCollector()
  const app = await measuredApp(t, { spanProcessors: [collector] })
  await app.inject('/users/1')
  const metrics = await collector.metrics()
  const value = (name) => metrics.find((metric) => metric.name === name).points[0].value
  t.equal(value('otel.sdk.span.started'), 1)
  t.equal(value('otel.sdk.span.live'), 0)
  t.equal(value('otel.sdk.processor.span.processed'), 1)
})

test('a garbage collection is counted by its kind', async (t) => {
  const { openRuntimeMetrics } = require('../../lib/features/metrics/runtime-metrics')
  const { newRegistry, newMeter } = require('./support')
  const { snapshot } = require('../../lib/features/metrics/app-metrics')
  const registry = newRegistry()
  const close = openRuntimeMetrics(newMeter(registry))
  const { gc } = require('../support/bytes-in-use')
  for (let i = 0; i < 3; i++) gc()
  const majors = () => snapshot(registry.scopes()).find(({ name }) => name === 'v8js.gc.duration')?.points
    .find(({ attributes }) => attributes['v8js.gc.type'] === 'major')?.count ?? 0
  while (majors() < 3) await new Promise((resolve) => setImmediate(resolve))
  t.ok(majors() >= 3)
  close()
})
