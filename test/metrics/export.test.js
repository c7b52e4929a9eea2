'use strict'

const { test } = require('tap')
const { setTimeout: after } = require('node:timers/promises')
const zlib = require('node:zlib')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { Stats } = require('../../lib/export/pipeline')
const { freePort } = require('../../scripts/free-port')
const { runInChild } = require('../support/child')
const { startMetricSink } = require('../support/metric-sink')

const DURATION = 'http.server.request.duration'
const SOON = 5 // ms, short enough for tests to wait

async function measuredApp (t, { sink, ...options } = {}) {
  sink ??= await startMetricSink(t)
  const app = Fastify()
  await app.register(lightTrace, { serviceName: 'shop', exporter: { url: sink.url }, metrics: true, ...options })
  app.get('/users/:id', async () => ({ ok: true }))
  await app.ready()
  t.teardown(() => app.close())
  return { app, sink }
}

const POINTS = 7 // per collection after one request: its duration, and the six numbers of otel.sdk.*
const counts = ({ metrics }) => metrics.find(({ name }) => name === DURATION)?.points.reduce((sum, { count }) => sum + count, 0) ?? 0

test('spans and metrics share one connection, with two paths and the same headers', async (t) => {
  const sink = await startMetricSink(t)
  const { app } = await measuredApp(t, { sink, exporter: { url: sink.url, headers: { 'x-scope': 'a' } } })
  await app.inject('/users/1')
  await app.lightTrace.flush()
  await app.inject('/users/2')
  await app.close()
  t.equal(sink.connections, 1)
  t.same([...new Set(sink.requests.map(({ path }) => path))].sort(), ['/v1/metrics', '/v1/traces'])
  for (const { headers } of sink.requests) t.match(headers, { 'x-scope': 'a', 'content-type': 'application/x-protobuf' })
  t.same(sink.exports.map(counts), [1, 2])
  t.match(app.lightTrace.stats().metrics, { exports: { ok: 2, failed: 0 }, points: { rejected: 0, dropped: 0 }, lastError: null })
})

test('metrics are sent at each interval, and not before', async (t) => {
  const { app, sink } = await measuredApp(t, { metrics: { intervalMs: SOON } })
  await app.inject('/users/1')
  await sink.until(() => sink.exports.filter((request) => counts(request) === 1).length >= 3)
  const quiet = await measuredApp(t)
  await quiet.app.inject('/users/1')
  t.same(quiet.sink.exports, [])
})

test('an interval beyond the limit of timers, or an infinite one, sends nothing early', async (t) => {
  const { random } = Math
  t.teardown(() => { Math.random = random })
  Math.random = () => 0.999 // the first export is due after one and a half intervals
  const late = []
  for (const intervalMs of [Infinity, 2 ** 31 - 1, 20 * 86_400_000]) late.push(await measuredApp(t, { metrics: { intervalMs } }))
  process.env.OTEL_METRIC_EXPORT_INTERVAL = '2000000000'
  late.push(await measuredApp(t))
  delete process.env.OTEL_METRIC_EXPORT_INTERVAL
  Math.random = random
  for (const { app } of late) await app.inject('/users/1')
  const clock = await measuredApp(t, { metrics: { intervalMs: SOON } })
  await clock.app.inject('/users/1')
  await clock.sink.until(() => clock.sink.exports.length > 2)
  t.same(late.map(({ sink }) => sink.exports.length), [0, 0, 0, 0])
  for (const { app } of late) await app.lightTrace.flush({ timeoutMs: Infinity })
  t.same(late.map(({ sink }) => sink.exports.length), [1, 1, 1, 1])
})

test('a collection that throws is counted and logged once, and the next one runs', async (t) => {
  const { MetricReader } = require('../../lib/features/metrics/reader')
  const logged = []
  const stats = new Stats()
  let isBroken = true
  const registry = { async observe () { if (isBroken) throw new Error('no such series') }, scopes: () => [] }
  const report = { failed: (code, what, error) => logged.push(`${what}: ${error.message}`) }
  const encoder = { encode: () => [] }
  const reader = new MetricReader({ registry, encoder, stats, report, log: null, intervalMs: Infinity, closeTimeoutMs: 5000, suppress: (fn) => fn() })
  await reader.flush()
  t.same(logged, ['metrics could not be collected: no such series'])
  t.match(stats, { exportsFailed: 1, lastError: 'no such series' })
  isBroken = false
  await reader.flush()
  await reader.close()
  t.equal(stats.exportsFailed, 1)
})

test('a collector that accepts metrics or spans again is logged', async (t) => {
  const lines = []
  const sink = await startMetricSink(t)
  const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  await app.register(lightTrace, { exporter: { url: sink.url }, metrics: { intervalMs: 1e9 } })
  app.get('/', async () => 'x')
  t.teardown(() => app.close())
  const rejection = (path, count) => ({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ partialSuccess: { [path === '/v1/traces' ? 'rejectedSpans' : 'rejectedDataPoints']: count, errorMessage: 'too old' } })
  })
  const again = async (answer) => {
    sink.answer = answer
    lines.length = 0
    await app.inject('/')
    await app.lightTrace.flush({ timeoutMs: 300 })
    return lines.filter(({ code }) => code === 'LT_WARN_RECOVERED').map(({ msg }) => / (accepts .+ again);/.exec(msg)[1])
  }
  t.same(await again(() => ({ status: 503 })), [])
  t.same(await again(() => ({ status: 400 })), [])
  t.same(await again(() => ({ status: 503 })), [])
  t.same(await again((path) => rejection(path, 1000)), [])
  t.same((await again(() => ({ status: 200 }))).sort(), ['accepts metric points again', 'accepts spans again'])
})

test('in an outage, a newer cumulative export replaces an older one', async (t) => {
  const { app, sink } = await measuredApp(t, { metrics: { intervalMs: SOON } })
  sink.answer = () => ({ status: 503 })
  const attempts = () => sink.requests.filter(({ path }) => path === '/v1/metrics')
  for (let i = 0; i < 3; i++) {
    await app.inject('/users/1')
    const before = attempts().length
    await sink.until(() => attempts().length > before + 1)
  }
  sink.answer = () => ({ status: 200 })
  const first = await sink.until(() => sink.exports[0])
  t.equal(counts(first), 3)
  const { exports, lastError } = app.lightTrace.stats().metrics
  t.ok(exports.failed >= 3)
  t.match(lastError, /503/)
})

test('after a 503 without Retry-After or a refused connection, metrics are retried before the next interval', async (t) => {
  const intervalMs = 8000 // three attempts take a quarter of a second
  const { random } = Math
  t.teardown(() => { Math.random = random })
  Math.random = () => 0 // the first export is after half the interval, and waits are as short as possible
  await Promise.all([true, false].map(async (isUp) => {
    const sink = await startMetricSink(t)
    sink.answer = () => ({ status: 503 })
    const url = isUp ? sink.url : `http://127.0.0.1:${await freePort()}/v1/traces`
    const { app } = await measuredApp(t, { sink, exporter: { url }, metrics: { intervalMs } })
    const failed = async (times) => { while (app.lightTrace.stats().metrics.exports.failed < times) await after(10) }
    await failed(1)
    t.equal(await Promise.race([failed(3).then(() => 'is asked again'), after(intervalMs, 'the next interval', { ref: false })]), 'is asked again', isUp ? 'answers 503' : 'refuses connections')
  }))
})

test('in an outage with delta, every request arrives once', async (t) => {
  const { app, sink } = await measuredApp(t, { metrics: { intervalMs: SOON, temporality: 'delta' } })
  let number = 0
  sink.answer = (path) => ({ status: path === '/v1/metrics' && number++ % 3 !== 2 ? 503 : 200 })
  for (let i = 0; i < 40; i++) {
    await app.inject('/users/1')
    if (i % 10 === 9) await sink.until(() => sink.exports.length > i / 10)
  }
  sink.answer = () => ({ status: 200 })
  await app.close()
  t.equal(sink.exports.reduce((sum, request) => sum + counts(request), 0), 40)
  const points = sink.exports.flatMap(({ metrics }) => metrics).filter(({ name }) => name === DURATION).flatMap(({ points }) => points)
  for (let i = 1; i < points.length; i++) t.ok(points[i].start >= points[i - 1].time, 'intervals do not overlap')
})

test('a delta whose answer was lost is sent again with the same interval and numbers, before newer data', async (t) => {
  const { app, sink } = await measuredApp(t, { metrics: { temporality: 'delta' } })
  const sent = () => sink.requests.filter(({ path }) => path === '/v1/metrics').map(({ metrics }) => metrics.find(({ name }) => name === DURATION).points[0])
  sink.answer = (path) => ({ status: path === '/v1/metrics' ? 502 : 200 })
  for (let i = 0; i < 2; i++) {
    await app.inject('/users/1')
    await app.lightTrace.flush()
  }
  sink.answer = () => ({ status: 200 })
  await app.lightTrace.flush()
  const points = sent()
  t.same(points.map(({ count }) => count), [1, 1, 1, 1])
  t.same(points[1], points[0])
  t.same(points[2], points[0])
  t.equal(points[3].start, points[0].time)
  t.match(app.lightTrace.stats().metrics, { points: { delivered: 2 * POINTS, dropped: 0 }, exports: { ok: 2, failed: 2 } })
})

test('an application that closes counts everything undelivered: the held delta, and data since then', async (t) => {
  const { app, sink } = await measuredApp(t, { metrics: { temporality: 'delta' } })
  sink.answer = (path) => ({ status: path === '/v1/metrics' ? 503 : 200 })
  await app.inject('/users/1')
  await app.lightTrace.flush()
  await app.inject('/users/1')
  await app.close()
  t.match(app.lightTrace.stats().metrics.points, { delivered: 0, dropped: 2 * POINTS })
})

test('an interval and a retry honour Retry-After, and a flush does not', async (t) => {
  const { app, sink } = await measuredApp(t, { metrics: { intervalMs: SOON } })
  sink.answer = (path) => path === '/v1/metrics' ? { status: 429, headers: { 'retry-after': '100' } } : { status: 200 }
  await app.inject('/users/1')
  await sink.until(() => sink.requests.some(({ path }) => path === '/v1/metrics'))
  const clock = await measuredApp(t, { metrics: { intervalMs: SOON } }) // a clock: its exports show that several intervals have passed
  await clock.app.inject('/users/1')
  await clock.sink.until(() => clock.sink.exports.length > 5)
  t.equal(sink.requests.filter(({ path }) => path === '/v1/metrics').length, 1)
  sink.answer = () => ({ status: 200 })
  await app.lightTrace.flush()
  t.equal(sink.exports.length, 1)
})

test('a server without metrics is logged once, and not asked each time', async (t) => {
  const warnings = []
  const onWarning = ({ code }) => warnings.push(code)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const { app, sink } = await measuredApp(t, { metrics: { intervalMs: SOON, temporality: 'delta' } })
  sink.answer = (path) => ({ status: path === '/v1/metrics' ? 404 : 200 })
  await app.inject('/users/1')
  await sink.until(() => sink.requests.some(({ path }) => path === '/v1/metrics'))
  await app.lightTrace.flush()
  await app.lightTrace.flush()
  await app.close()
  t.equal(sink.requests.filter(({ path }) => path === '/v1/metrics').length, 1)
  t.equal(sink.requests.filter(({ path }) => path === '/v1/traces').length, 1, 'spans continue')
  t.same(warnings.filter((code) => code === 'LT_WARN_METRICS_ENDPOINT'), ['LT_WARN_METRICS_ENDPOINT'])
})

test('rejected metrics are counted, and the next export runs', async (t) => {
  const { app, sink } = await measuredApp(t, { metrics: { temporality: 'delta' } })
  sink.answer = (path) => ({ status: path === '/v1/metrics' ? 400 : 200 })
  await app.inject('/users/1')
  await app.lightTrace.flush()
  sink.answer = () => ({ status: 200 })
  await app.inject('/users/1')
  await app.close()
  t.same(sink.exports.map(counts), [1], 'rejected metrics are not sent again')
  t.match(app.lightTrace.stats().metrics, { points: { dropped: POINTS, delivered: POINTS }, exports: { ok: 1, failed: 1 } })
})

test('an answer from a server that is not a collector is reported for metrics as for spans', async (t) => {
  const lines = []
  const sink = await startMetricSink(t)
  sink.answer = (path) => path === '/v1/metrics' ? { status: 200, headers: { 'content-type': 'text/html' }, body: '<html></html>' } : { status: 200 }
  const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  await app.register(lightTrace, { exporter: { url: sink.url }, metrics: { intervalMs: 1e9 } })
  app.get('/', async () => 'x')
  await app.inject('/')
  await app.close()
  t.match(lines.map(({ code, msg }) => `${code} ${msg}`), [/^LT_WARN_LOSS .*\/v1\/metrics is not an OTLP receiver: \d+ metric points lost \(.*the answer is a web page/])
  t.match(app.lightTrace.stats().metrics, { points: { delivered: 0, rejected: POINTS, dropped: 0 }, exports: { ok: 0, failed: 1 }, lastError: /the answer is a web page/ })
})

test('a server with a smaller limit gets several requests', async (t) => {
  const { app, sink } = await measuredApp(t, { metrics: { attributes: ({ query }) => ({ n: query.n }) } })
  for (let i = 0; i < 300; i++) await app.inject(`/users/1?n=${i}`)
  let refused = 0
  sink.answer = (path) => ({ status: path === '/v1/metrics' && refused++ < 2 ? 413 : 200 })
  await app.lightTrace.flush()
  t.equal(sink.exports.reduce((sum, request) => sum + counts(request), 0), 300)
  t.ok(sink.exports.length >= 3)
})

test('a partial success is counted', async (t) => {
  const { app, sink } = await measuredApp(t)
  const body = Buffer.from([0x0a, 0x06, 0x08, 0x01, 0x12, 0x02, 0x6e, 0x6f]) // rejected_data_points 1, error_message 'no'
  sink.answer = (path) => path === '/v1/metrics' ? { status: 200, body, headers: { 'content-type': 'application/x-protobuf' } } : { status: 200 }
  await app.inject('/users/1')
  await app.lightTrace.flush()
  t.match(app.lightTrace.stats().metrics.points, { delivered: POINTS - 1, rejected: 1, dropped: 0 })
})

test('close waits for a hanging server until its deadline, and not for one that is down', async (t) => {
  const { app, sink } = await measuredApp(t, { closeTimeoutMs: 50 })
  sink.answer = () => ({ hang: true })
  await app.inject('/users/1')
  await app.close()
  const gone = await measuredApp(t, { closeTimeoutMs: 60_000 })
  await gone.app.inject('/users/1')
  await gone.sink.down()
  await gone.app.close()
  t.match(gone.app.lightTrace.stats().metrics.points, { delivered: 0 })
  t.ok(gone.app.lightTrace.stats().metrics.points.dropped > 0)
  await gone.sink.up()
})

test('after close nothing is recorded and nothing throws', async (t) => {
  const { app, sink } = await measuredApp(t)
  const counter = app.lightTrace.meterProvider.getMeter('shop').createCounter('orders')
  counter.add(1)
  await app.close()
  counter.add(1)
  await app.lightTrace.flush()
  t.equal(sink.exports.length, 1)
  t.match(await app.lightTrace.metrics(), /orders_total\{otel_scope_name="shop"\} 1\n/)
})

test('metrics are compressed if configured', async (t) => {
  const sink = await startMetricSink(t)
  const { app } = await measuredApp(t, { sink, exporter: { url: sink.url, compression: 'gzip' } })
  await app.inject('/users/1')
  await app.close()
  t.equal(sink.exports[0].headers['content-encoding'], 'gzip')
  t.equal(counts(sink.exports[0]), 1)
})

test('zstd is used if configured, and gzip for a server that rejects it', { skip: zlib.zstdCompress === undefined && 'this Node has no zstd' }, async (t) => {
  for (const refused of [false, true]) {
    const sink = await startMetricSink(t)
    sink.answer = (path, number) => ({ status: refused && number === 0 ? 400 : 200 })
    const { app } = await measuredApp(t, { sink, exporter: { url: sink.url, compression: 'zstd' }, sampler: 0 })
    await app.inject('/users/1')
    await app.close()
    t.same(sink.requests.map(({ headers, status }) => [headers['content-encoding'], status]), refused ? [['zstd', 400], ['gzip', 200]] : [['zstd', 200]])
    t.equal(counts(sink.exports.at(-1)), 1)
  }
})

test('a separate endpoint for metrics gets no headers of the endpoint for spans', async (t) => {
  const [spans, metrics] = [await startMetricSink(t), await startMetricSink(t)]
  const { app } = await measuredApp(t, {
    sink: spans, exporter: { url: spans.url, headers: { 'x-key': 'secret' } }, metrics: { exporter: { url: `${metrics.origin}/custom` } }
  })
  metrics.answer = () => ({ status: 200 })
  await app.inject('/users/1')
  await app.close()
  t.same(metrics.requests.map(({ path, headers }) => [path, headers['x-key']]), [['/custom', undefined]])
  t.same(spans.requests.map(({ path }) => path), ['/v1/traces'])
})

test('the event loop keeps turning while many series are exported', async (t) => {
  const { app, sink } = await measuredApp(t, { metrics: { attributes: ({ query }) => ({ n: query.n }) } })
  for (let i = 0; i < 1500; i++) await app.inject(`/users/1?n=${i}`)
  let turns = 0
  let isOver = false
  const spin = () => { if (!isOver) { turns++; setImmediate(spin) } }
  spin()
  await app.lightTrace.flush()
  isOver = true
  t.ok(turns > 5, `${turns} turns of the event loop`)
  t.equal(counts(sink.exports[0]), 1500)
})

test('one collection runs at a time, and flushes that wait for it share the next', async (t) => {
  const { MetricReader } = require('../../lib/features/metrics/reader')
  const sends = []
  let running = 0
  class TestReader extends MetricReader {
    async send (isLast) {
      t.equal(++running, 1, 'alone')
      sends.push(isLast)
      await new Promise((resolve) => setImmediate(resolve))
      running--
      return -1
    }
  }
  const reader = new TestReader({ registry: { async observe () {} }, url: 'http://localhost', intervalMs: 1e6, closeTimeoutMs: 5000, suppress: (fn) => fn() })
  await Promise.all([reader.flush(), reader.flush(), reader.flush()])
  t.same(sends, [false])
  const first = reader.flush()
  await null
  await null
  await Promise.all([first, reader.flush(), reader.flush()])
  t.same(sends, [false, false, false], 'values recorded since the second began are in the third')
  await Promise.all([reader.flush(), reader.close(), reader.flush()])
  t.same(sends, [false, false, false, false, true])
  t.equal(running, 0)
})

test('a process that ends without a close sends its metrics', async (t) => {
  const { runProgram } = require('../support/program')
  const sink = await startMetricSink(t)
  const { code, stderr } = await runProgram(['-e', `
    const app = require('fastify')()
    app.register(require('light-trace'), { metrics: true })
    app.get('/', async () => 'x')
    app.inject('/')`], { OTEL_EXPORTER_OTLP_ENDPOINT: sink.origin })
  t.equal(code, 0, stderr)
  t.same(sink.exports.map(counts), [1])
})

test('OTEL_METRICS_EXPORTER=prometheus serves on its own port', async (t) => {
  const { startProgram } = require('../support/program')
  const { freePort } = require('../../scripts/free-port')
  const port = await freePort()
  const program = startProgram(['-e', `
    const app = require('fastify')()
    app.register(require('light-trace'), { exporter: 'none' })
    app.get('/users/:id', async () => 'x')
    app.listen({ port: 0 }).then(() => app.inject('/users/1')).then(() => console.log('ready'))`],
  { OTEL_METRICS_EXPORTER: 'prometheus', OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1', OTEL_EXPORTER_PROMETHEUS_PORT: String(port) })
  t.teardown(() => program.kill())
  await program.output(/ready/)
  const response = await fetch(`http://127.0.0.1:${port}/metrics`)
  t.match(await response.text(), /http_server_request_duration_seconds_count\{.*http_route="\/users\/:id".*\} 1\n/)
  t.equal((await fetch(`http://127.0.0.1:${port}/else`)).status, 404)
})

test('OTEL_METRICS_EXPORTER=prometheus in a cluster: one worker has the port, and another takes over', async (t) => {
  const port = await freePort()
  const child = runInChild(t, async ({ Fastify, root, say }, port) => {
    const cluster = require('node:cluster')
    if (cluster.isWorker) {
      const app = Fastify()
      app.register(require(root), { exporter: 'none' })
      app.get('/', async () => 'x')
      for (let i = 0; i < cluster.worker.id; i++) await app.inject('/')
      process.send('ready')
      return
    }
    const count = async () => {
      const text = await fetch(`http://127.0.0.1:${port}/metrics`).then((answer) => answer.text(), () => '')
      return Number(/_duration_seconds_count\{.*\} (\d)/.exec(text)?.[1] ?? 0)
    }
    const until = async (isDone) => { while (!isDone(await count())); }
    const workers = [cluster.fork(), cluster.fork()]
    await Promise.all(workers.map((worker) => new Promise((resolve) => worker.on('message', resolve))))
    await until((id) => id > 0)
    const first = await count()
    const seen = [first]
    for (let i = 0; i < 5; i++) seen.push(await count())
    cluster.workers[first].process.kill()
    await until((id) => id > 0 && id !== first)
    say(seen.every((id) => id === first))
    cluster.workers[3 - first].process.kill()
  }, { args: [port], env: { OTEL_METRICS_EXPORTER: 'prometheus', OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1', OTEL_EXPORTER_PROMETHEUS_PORT: String(port) } })
  const { said, stderr } = await child.exit
  t.same(said, [true], stderr)
  t.equal(stderr.match(/LT_WARN_METRICS_PORT/g)?.length, 1, stderr)
})
