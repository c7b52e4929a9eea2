'use strict'

const { test } = require('tap')
const { runInChild } = require('../support/child')
const { measuredApp, points } = require('../support/measured-app')
const { startMetricSink } = require('../support/metric-sink')
const { without } = require('../support/features')

// By OTEL_METRICS_EXEMPLAR_FILTER: whether a sampled and an unsampled request have exemplars, on the request metrics and on the instruments
// that they call.
const EXPECTED = {
  always_on: { '/sampled': true, '/unsampled': true },
  trace_based: { '/sampled': true, '/unsampled': false },
  always_off: { '/sampled': false, '/unsampled': false }
}

const work = async ({ Fastify, lightTrace, say }) => {
  const app = Fastify()
  await app.register(lightTrace, { metrics: true, sampler: 'always_off' })
  const orders = app.lightTrace.meterProvider.getMeter('shop').createHistogram('orders')
  const handler = async (request) => {
    orders.record(1, { route: request.routeOptions.url })
    say({ route: request.routeOptions.url, traceId: request.trace.traceId, spanId: request.trace.spanId })
    return 'x'
  }
  app.get('/sampled', { config: { trace: { sampler: 'always_on' } } }, handler)
  app.get('/unsampled', handler)
  for (const url of ['/sampled', '/unsampled']) await app.inject(url)
  await app.close()
}

for (const [filter, expected] of Object.entries(EXPECTED)) {
  test(`OTEL_METRICS_EXEMPLAR_FILTER=${filter} decides which requests leave exemplars`, async (t) => {
    const sink = await startMetricSink(t)
    const { said, stderr } = await runInChild(t, work, { env: { OTEL_METRICS_EXEMPLAR_FILTER: filter, OTEL_EXPORTER_OTLP_ENDPOINT: sink.origin } }).exit
    t.equal(stderr, '')
    for (const [name, key] of [['http.server.request.duration', 'http.route'], ['orders', 'route']]) {
      const { points } = await sink.metric(name)
      t.equal(points.length, 2)
      for (const { attributes, count, exemplars } of points) {
        const { route, traceId, spanId } = said.find(({ route }) => route === attributes[key])
        t.equal(count, 1)
        t.match(exemplars, expected[route] ? [{ traceId, spanId }] : [], `${name} of ${route}`)
        t.equal(exemplars.length, expected[route] ? 1 : 0)
      }
    }
  })
}

test('a request without a trace has no exemplar, and does not replace the existing one', async (t) => {
  const options = { metrics: { exemplars: 'always_on', buckets: [1000] }, ignore: ({ headers }) => headers['x-ignored'] !== undefined }
  const { app, sink, get } = await measuredApp(t, options, (app) => {
    const orders = app.lightTrace.meterProvider.getMeter('shop').createCounter('orders')
    app.get('/orders', async (request) => {
      orders.add(1)
      return request.trace.traceId
    })
  })
  const ignored = { headers: { 'x-ignored': '1' } }
  await get('/users/1', ignored)
  const traceId = await (await fetch(`${app.listeningOrigin}/orders`)).text()
  await get('/orders', ignored)
  const found = await points(app, sink)
  const tracesOf = ({ exemplars }) => exemplars.map(({ traceId }) => traceId)
  t.same(tracesOf(found['GET http 1.1 http.response.status_code=200 http.route=/users/:id']), [])
  t.same(tracesOf(found['GET http 1.1 http.response.status_code=200 http.route=/orders']), [traceId])
  t.same(tracesOf((await sink.metric('orders')).points[0]), [traceId])
})

test('an unsampled but kept request is an exemplar, even if unsampled ones are not', { skip: without('keep') }, async (t) => {
  for (const [filter, kept, fine] of [['trace_based', 1, 0], ['always_off', 0, 0]]) {
    const options = { metrics: { exemplars: filter }, sampler: 'always_off', keep: { errors: true } }
    const ids = []
    const { app, sink, get } = await measuredApp(t, options, (app) => app.get('/fails', async (request, reply) => {
      ids.push(request.trace.traceId)
      return reply.code(503).send('')
    }))
    await get('/fails')
    await get('/users/1')
    const found = await points(app, sink)
    const failed = found['GET http 1.1 http.response.status_code=503 http.route=/fails error.type=503'].exemplars
    t.same(failed.map(({ traceId }) => traceId), ids.slice(0, kept))
    t.equal(found['GET http 1.1 http.response.status_code=200 http.route=/users/:id'].exemplars.length, fine)
  }
})
