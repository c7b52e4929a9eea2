'use strict'

// Metrics count the same with any provider of spans and for any kind of request.
// Feature: metrics

const http2 = require('node:http2')
const { once } = require('node:events')
const { join, relative } = require('node:path')
const { test } = require('tap')
const Fastify = require('fastify')
const { BasicTracerProvider } = require('@opentelemetry/sdk-trace-base')
const lightTrace = require('../..')
const { createCollector } = require('../../lib/features/testing/testing')
const { without } = require('../support/features')
const { runProgram, ROOT } = require('../support/program')
const { startMetricSink } = require('../support/metric-sink')

const DURATION = 'http.server.request.duration'

async function durations (t, options, drive, fastify) {
  const sink = await startMetricSink(t)
  const app = Fastify(fastify)
  t.teardown(() => app.close())
  await app.register(lightTrace, { metrics: { exporter: { url: sink.origin } }, exporter: 'none', ...options })
  app.get('/users/:id', async () => ({ ok: true }))
  app.get('/boom', async () => { throw new TypeError('boom') })
  await drive(app)
  await app.close()
  return (await sink.metric(DURATION)).points
}

async function both (app) {
  await app.inject('/users/1')
  await app.inject('/boom')
}

const expected = [
  { count: 1, attributes: { 'http.route': '/users/:id', 'http.response.status_code': 200 } },
  { count: 1, attributes: { 'http.route': '/boom', 'http.response.status_code': 500, 'error.type': 'TypeError' } }
]

test('spans from an SDK\'s tracer provider are counted, sampled or not', async (t) => {
  for (const sampler of [undefined, { shouldSample: () => ({ decision: 0 }) }]) {
    t.match(await durations(t, { exporter: undefined, tracerProvider: new BasicTracerProvider({ sampler }) }, both), expected)
  }
})

test('unsampled requests are counted, kept or not', async (t) => {
  const points = await durations(t, { sampler: 0, keep: true, exporter: undefined, spanProcessors: [{ onStart () {}, onEnd () {}, forceFlush: async () => {}, shutdown: async () => {} }] }, both)
  t.match(points, expected)
})

test('requests with a custom sampler, also a route\'s, are counted', async (t) => {
  t.match(await durations(t, { sampler: { shouldSample: () => ({ decision: 0 }) } }, both), expected)
})

test('HTTP/2 requests are counted', async (t) => {
  const points = await durations(t, { sampler: 0.5 }, async (app) => {
    await app.listen({ port: 0, host: '127.0.0.1' })
    const client = http2.connect(`http://127.0.0.1:${app.server.address().port}`)
    for (const path of ['/users/1', '/boom']) {
      const stream = client.request({ ':path': path })
      stream.resume()
      await once(stream, 'close')
    }
    client.close()
    await once(client, 'close')
  }, { http2: true })
  t.match(points, expected)
  t.ok(points.every(({ attributes }) => attributes['network.protocol.version'] === '2'))
})

test('a request that reaches no hook is counted with unrouted', { skip: without('unrouted') }, async (t) => {
  const points = await durations(t, { spans: { unrouted: true } }, async (app) => {
    await app.listen({ port: 0, host: '127.0.0.1' })
    await (await fetch(`${app.listeningOrigin}/%zz`)).text()
  })
  t.match(points, [{ count: 1, attributes: { 'http.request.method': 'GET', 'http.response.status_code': 400 } }])
})

test('a registration in a child scope counts requests of that scope', async (t) => {
  const collector = createCollector()
  const app = Fastify()
  t.teardown(() => app.close())
  app.get('/outside', async () => 'x')
  app.register(async (scope) => {
    await scope.register(lightTrace, { spanProcessors: [collector], metrics: true })
    scope.get('/inside', async () => 'x')
  })
  await app.inject('/outside')
  await app.inject('/inside')
  const { points } = (await collector.metrics()).find(({ name }) => name === DURATION)
  t.same(points.map(({ attributes }) => attributes['http.route']), ['/inside'])
})

test('light-trace/register and a variable give metrics to an application that does not mention it', async (t) => {
  const { code, stdout, stderr } = await runProgram(['--import', 'light-trace/register', '-e', `
    const app = require('fastify')()
    app.get('/hello', async () => 'hello')
    app.inject('/hello').then(() => app.close())`], { OTEL_METRICS_EXPORTER: 'otlp/stdout', OTEL_TRACES_EXPORTER: 'none' })
  t.equal(code, 0, stderr)
  t.match(stdout, /"name":"http\.server\.request\.duration".*"stringValue":"\/hello"/)
})

test('no code of metrics is loaded if they are off', async (t) => {
  const { stdout } = await runProgram(['-p', `
    const app = require('fastify')()
    app.register(require('light-trace'), { exporter: 'none' })
    app.get('/', async () => 'x')
    app.inject('/').then(() => app.close()).then(() => console.log(Object.keys(require.cache).join()))
    'files:'`])
  const loaded = stdout.trim().split(/[,\n]/).filter((file) => file.startsWith(join(ROOT, 'lib'))).map((file) => relative(ROOT, file))
  t.ok(loaded.length > 30)
  t.same(loaded.filter((file) => /metric|measur/.test(file)), [])
})
