'use strict'

// Span processors together with an exporter in code. The processors see every span, and the exporter sends it natively.
// Feature: sdk

const http = require('node:http')
const { test } = require('tap')
const { BatchSpanProcessor, InMemorySpanExporter, BasicTracerProvider } = require('@opentelemetry/sdk-trace-base')
const { testing } = require('../support/collector')
const { without } = require('../support/features')
const { listenAnew } = require('../support/new-port')
const { startSink } = require('../support/otlp-sink')
const { startMetricSink } = require('../support/metric-sink')
const { tracedApp } = require('../support/traced-app')

/** A processor that records its calls, and then calls the method of `extra`. */
function seeing (calls, extra = {}) {
  const see = (method) => (span, ...more) => {
    calls.push(span === undefined ? method : `${method} ${span.name}`)
    return extra[method]?.(span, ...more)
  }
  return { onStart: see('onStart'), onEnding: see('onEnding'), onEnd: see('onEnd'), forceFlush: see('forceFlush'), shutdown: see('shutdown') }
}

async function besideApp (t, { trace, fastify, routes = work } = {}) {
  const sink = await startSink(t)
  const calls = []
  const logged = []
  const { app } = await tracedApp(t, {
    listen: false,
    fastify: { logger: { level: 'debug', stream: { write: (line) => logged.push(JSON.parse(line)) } }, ...fastify },
    trace: { exporter: { url: sink.url }, spanProcessors: [seeing(calls)], ...trace },
    routes
  })
  return { app, sink, calls, logged, stats: () => app.lightTrace.stats().spans, codes: () => logged.filter(({ code }) => code).map(({ code }) => code) }
}

function work (app) {
  app.get('/', async ({ trace }) => trace.withSpan('work', async () => 'ok'))
  app.get('/fail', async ({ trace }) => trace.withSpan('work', async () => { throw new TypeError('no') }))
}

test('processors get start, onEnding and end, and the collector gets the same spans', async (t) => {
  const { app, sink, calls, logged, codes } = await besideApp(t)
  await app.inject('/')
  await app.lightTrace.flush()
  t.same(calls, ['onStart GET /', 'onStart work', 'onEnding work', 'onEnd work', 'onEnding GET /', 'onEnd GET /', 'forceFlush'])
  t.same(sink.spans.map(({ name }) => name), ['work', 'GET /'])
  t.same(codes(), [])
  t.match(logged.map(({ msg }) => msg), [/^light-trace in mode native: spans go to http:\S+\/v1\/traces and 1 span processor$/])
  await app.close()
  t.equal(calls.at(-1), 'shutdown')
})

test('attributes that a processor sets in onStart and onEnding reach the collector', async (t) => {
  const sets = {
    onStart: (span, context) => { span.setAttribute('from.onStart', context !== undefined) },
    onEnding: (span) => { span.setAttribute('from.onEnding', 1).updateName(`${span.name}!`).addEvent('seen') },
    onEnd: (span) => { span.setAttribute('too.late', 1) }
  }
  const { app, sink } = await besideApp(t, { trace: { spanProcessors: [seeing([], sets)] } })
  await app.inject('/')
  await app.lightTrace.flush()
  for (const { name, attributes, events } of sink.spans) {
    t.match(name, /!$/)
    t.match(attributes, { 'from.onStart': true, 'from.onEnding': '1' })
    t.notOk('too.late' in attributes)
    t.same(events.map(({ name }) => name), ['seen'])
  }
  t.equal(sink.spans.length, 2)
})

test('a processor that exports later has the complete span', async (t) => {
  const exporter = new InMemorySpanExporter()
  const { app, sink } = await besideApp(t, {
    trace: { spanProcessors: [new BatchSpanProcessor(exporter)] },
    routes: (app) => app.get('/', async ({ trace }) => {
      trace.span.setAttribute('order.id', 'a').addEvent('paid').addLink({ context: { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 } })
    })
  })
  await app.inject('/?a=1')
  await app.lightTrace.flush()
  const [span] = exporter.getFinishedSpans()
  const [sent] = sink.spans
  t.match(span.attributes, { 'order.id': 'a', 'url.query': 'a=1' })
  t.same([span.events.length, span.links.length], [1, 1])
  t.same(Object.keys(span.attributes).sort(), Object.keys(sent.attributes).sort())
  t.same([sent.events.length, sent.links.length], [1, 1])
})

test('processors that throw, reject or hang affect neither a span nor the close', async (t) => {
  const METHODS = ['onStart', 'onEnding', 'onEnd', 'forceFlush', 'shutdown']
  const all = (fn) => Object.fromEntries(METHODS.map((name) => [name, () => fn(name)]))
  const broken = all((name) => { throw new Error(name) })
  const rejecting = all(async (name) => { throw new Error(name) })
  const hanging = { onStart () {}, onEnd () {}, forceFlush: () => new Promise(() => {}), shutdown: () => new Promise(() => {}) }
  const calls = []
  const { app, sink, stats, codes } = await besideApp(t, { trace: { closeTimeoutMs: 50, buffer: { flushDelayMs: 1 }, spanProcessors: [broken, rejecting, hanging, seeing(calls)] } })
  t.equal((await app.inject('/')).statusCode, 200)
  await sink.waitFor(2)
  await app.close()
  t.same(sink.spans.map(({ name }) => name), ['work', 'GET /'])
  t.same(calls.filter((call) => call.startsWith('onEnd ')), ['onEnd work', 'onEnd GET /'])
  t.match(stats(), { accepted: 2, delivered: 2 })
  t.same([...new Set(codes())], ['LT_WARN_PROCESSOR'])
})

test('neither a hanging processor nor a hanging collector blocks a flush', async (t) => {
  const server = http.createServer(() => {}) // never answers
  t.teardown(() => { server.closeAllConnections(); server.close() })
  const hanging = { onStart () {}, onEnd () {}, forceFlush: () => new Promise(() => {}), shutdown: () => new Promise(() => {}) }
  const { app } = await besideApp(t, { trace: { closeTimeoutMs: 50, spanProcessors: [hanging], exporter: { url: `http://127.0.0.1:${await listenAnew(server)}` } } })
  await app.inject('/')
  await app.lightTrace.flush({ timeoutMs: 10 })
  await app.close()
  t.equal(app.lightTrace.stats().spans.ended, 2)
})

test('unsampled spans reach neither, and spans that `keep` exports reach both', { skip: without('keep') }, async (t) => {
  const exporter = new InMemorySpanExporter()
  const calls = []
  const { app, sink, stats } = await besideApp(t, { trace: { sampler: 'always_off', keep: { errors: true }, spanProcessors: [seeing(calls), new BatchSpanProcessor(exporter)] } })
  await app.inject('/')
  await app.inject('/fail')
  await app.lightTrace.flush()
  t.same(calls.filter((call) => call.startsWith('onEnd ')).sort(), ['onEnd GET /', 'onEnd GET /fail', 'onEnd work', 'onEnd work'], 'a processor sees all spans')
  t.same(exporter.getFinishedSpans().map(({ name }) => name).sort(), ['GET /fail', 'work'])
  t.same(sink.spans.map(({ name, attributes, flags }) => [name, attributes['light_trace.kept'], flags & 1]), [['GET /fail', 'error', 0], ['work', 'error', 0]])
  t.match(stats(), { started: 4, ended: 4, unsampled: 2, accepted: 2, delivered: 2, handedOver: 0 })
})

test('the recorder is reported without effect', { skip: without('keep') }, async (t) => {
  const { app, logged, codes } = await besideApp(t, { trace: { sampler: 0, recorder: true } })
  await app.inject('/')
  t.same(codes(), ['LT_WARN_RECORDER'])
  t.match(logged.find(({ code }) => code).msg, /and 1 span processor/)
  t.notOk('recorder' in app.lightTrace.stats())
})

test('a sampler decides for both, and its attributes are in both', async (t) => {
  const exporter = new InMemorySpanExporter()
  const sampler = { shouldSample: (context, traceId, name) => ({ decision: name === 'work' ? 0 : 2, attributes: { by: 'sampler' } }), toString: () => 'mine' }
  const { app, sink, stats } = await besideApp(t, { trace: { sampler, spanProcessors: [new BatchSpanProcessor(exporter)] } })
  await app.inject('/')
  await app.lightTrace.flush()
  for (const spans of [exporter.getFinishedSpans(), sink.spans]) t.same(spans.map(({ name, attributes }) => [name, attributes.by]), [['GET /', 'sampler']])
  t.match(stats(), { started: 2, ended: 2, unsampled: 1, accepted: 1, delivered: 1, handedOver: 0 })
})

test('in an outage, processors get each span once, and the collector gets it later', async (t) => {
  const { app, sink, calls, stats } = await besideApp(t, { trace: { closeTimeoutMs: 5000 } })
  sink.respond = () => ({ status: 503 })
  for (let i = 0; i < 3; i++) await app.inject('/')
  await app.lightTrace.flush({ timeoutMs: 100 })
  t.match(stats(), { ended: 6, accepted: 6, delivered: 0, handedOver: 0 })
  t.equal(stats().queued + stats().inFlight, 6)
  sink.respond = () => ({ status: 200 })
  await app.close()
  t.equal(calls.filter((call) => call.startsWith('onEnd ')).length, 6)
  t.match(stats(), { accepted: 6, delivered: 6, handedOver: 0 })
})

test('a span that starts after the close reaches neither, and is counted', async (t) => {
  const { app, calls, stats } = await besideApp(t)
  const span = app.lightTrace.tracer.startSpan('late')
  await app.close()
  span.end()
  t.notOk(calls.includes('onEnd late'))
  t.match(stats(), { ended: 1, dropped: { after_shutdown: 1 } })
})

test('standard output works next to processors', { skip: without('console') }, async (t) => {
  const written = t.capture(process.stdout, 'write')
  const { app, calls, stats } = await besideApp(t, { trace: { exporter: 'console' } })
  await app.inject('/')
  const lines = written().map(({ args }) => String(args[0])).join('')
  t.match(lines, /SERVER GET \/ .*\n {2}INTERNAL work/)
  t.equal(calls.filter((call) => call.startsWith('onEnd ')).length, 2)
  t.match([app.lightTrace.stats().mode, stats()], ['console', { accepted: 2, handedOver: 2 }])
})

test('without an exporter in code, with `none`, or with a provider, processors work as usual', async (t) => {
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = 'http://127.0.0.1:9'
  t.teardown(() => { delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT })
  for (const exporter of [undefined, 'none']) {
    const { app, stats } = await besideApp(t, { trace: { exporter } })
    await app.inject('/')
    t.match([app.lightTrace.stats().mode, stats()], ['processors', { accepted: 2, handedOver: 2 }])
  }
  const { app, calls, codes } = await besideApp(t, { trace: { tracerProvider: new BasicTracerProvider() } })
  await app.inject('/')
  t.equal(app.lightTrace.stats().mode, 'sdk')
  t.same([calls, codes()], [[], ['LT_WARN_EXPORTER']])
})

test('an empty list of processors does not affect the exporter', async (t) => {
  const { app, sink, logged } = await besideApp(t, { trace: { spanProcessors: [] } })
  await app.inject('/')
  await app.lightTrace.flush()
  t.equal(sink.spans.length, 2)
  t.match(logged.map(({ msg }) => msg), [/spans go to http:\S+\/v1\/traces$/])
})

test('a collector of light-trace/testing gets metrics and log records too, and the exporter sends them all', { skip: without('testing') || without('metrics') || without('logs') }, async (t) => {
  const sink = await startMetricSink(t)
  const collector = testing.createCollector()
  const { app, stats } = await besideApp(t, {
    trace: { exporter: { url: sink.url }, spanProcessors: [collector], metrics: true, logs: { export: true } },
    routes: (app) => app.get('/', async (request) => { request.log.warn('careful') })
  })
  await app.inject('/')
  await app.lightTrace.flush()
  const isDuration = ({ name }) => name === 'http.server.request.duration'
  t.equal((await collector.metrics()).filter(isDuration).length, 1)
  t.equal((await sink.metric('http.server.request.duration')).points.length, 1)
  const bodies = (records) => records.map(({ body }) => body)
  t.ok(bodies(sink.records).includes('careful'))
  t.same(bodies(await collector.logs()), bodies(sink.records))
  t.equal(await collector.tree(), 'SERVER GET /')
  t.equal(sink.requests.flatMap(({ spans = [] }) => spans).length, 1)
  t.equal(app.lightTrace.stats().logs.records.delivered, sink.records.length, 'each is counted once')
  t.match(stats(), { accepted: 1, delivered: 1, handedOver: 0 })
})
