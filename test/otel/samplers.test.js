'use strict'

const { test } = require('tap')
const Fastify = require('fastify')
const { trace, SpanKind } = require('@opentelemetry/api')
const { ParentBasedSampler, AlwaysOnSampler, AlwaysOffSampler, TraceIdRatioBasedSampler, BasicTracerProvider, BatchSpanProcessor, SimpleSpanProcessor, InMemorySpanExporter } = require('@opentelemetry/sdk-trace-base')
const lightTrace = require('../..')
const { collectorFor } = require('../support/collector')
const { startSink } = require('../support/otlp-sink')
const { without } = require('../support/features')

const SAMPLED = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03'
const UNSAMPLED = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02'

test('a sampler gets name, kind, creation attributes and parent of a request', async (t) => {
  const seen = []
  const { app } = await traced(t, { sampler: sampler((...args) => { seen.push(args); return { decision: 2 } }) })
  await app.inject({ url: '/users/7?q=1', headers: { traceparent: UNSAMPLED, tracestate: 'a=b', 'user-agent': 'test' } })
  const [[context, traceId, name, kind, attributes, links]] = seen
  t.equal(traceId, '0af7651916cd43dd8448eb211c80319c')
  t.match(trace.getSpanContext(context), { spanId: 'b7ad6b7169203331', traceFlags: 2, isRemote: true })
  t.equal(trace.getSpanContext(context).traceState.serialize(), 'a=b')
  t.equal(name, 'GET /users/:id')
  t.equal(kind, SpanKind.SERVER)
  t.match(attributes, { 'http.request.method': 'GET', 'http.route': '/users/:id', 'url.path': '/users/7', 'url.query': 'q=1', 'url.scheme': 'http', 'user_agent.original': 'test' })
  t.same(links, [])

  await app.inject('/users/8')
  t.equal(trace.getSpan(seen.at(-1)[0]), undefined, 'no parent')
})

test('its attributes and trace state are on the span, and the random flag is kept', async (t) => {
  const traceState = { serialize: () => 'mine=1', get () {}, set () {}, unset () {} }
  const { app, collector } = await traced(t, { sampler: sampler(() => ({ decision: 2, attributes: { 'sampler.rule': 'x' }, traceState })) })
  const { headers } = (await app.inject({ url: '/headers', headers: { traceparent: UNSAMPLED, tracestate: 'a=b' } })).json()
  t.match(headers.traceparent, /-03$/)
  t.equal(headers.tracestate, 'mine=1')
  t.match(await collector.spans(), [{ attributes: { 'sampler.rule': 'x' } }])
})

test('NOT_RECORD, RECORD and RECORD_AND_SAMPLED have their effect', { skip: without('testing') }, async (t) => {
  let decision
  const exporter = new InMemorySpanExporter()
  const seen = []
  const { app, collector } = await traced(t, { sampler: sampler(() => ({ decision })) }, [new BatchSpanProcessor(exporter), seeing(seen)])
  const answers = []
  for (decision of [0, 1, 2]) answers.push((await app.inject('/headers')).json())
  t.match(answers, [
    { recording: false, headers: { traceparent: /-02$/ } },
    { recording: true, headers: { traceparent: /-02$/ } },
    { recording: true, headers: { traceparent: /-03$/ } }
  ])
  t.equal(seen.length, 2, 'processors get recorded spans')
  t.equal((await collector.spans()).length, 1)
  await app.lightTrace.flush()
  t.equal(exporter.getFinishedSpans().length, 1, 'exporters get sampled spans')
  t.match(app.lightTrace.stats().spans, { started: 3, ended: 3, unsampled: 2, accepted: 1, handedOver: 1 })
})

test('a sampler decides about children, too', async (t) => {
  const { app, collector } = await traced(t, { sampler: sampler((context, id, name) => ({ decision: name === 'no' ? 0 : 2 })) })
  await app.inject('/children')
  t.equal(await collector.tree(), 'SERVER GET /children\n  INTERNAL yes')
})

test('an invalid result or an error of a sampler means unsampled, is logged once, and never throws', async (t) => {
  const answers = [undefined, null, {}, { decision: 3 }, { decision: 'yes' }, { decision: 2, attributes: 5, traceState: 7 }, Promise.resolve({ decision: 2 })]
  const { app, lines } = await traced(t, { sampler: sampler(() => { if (answers.length === 0) throw new Error('mine'); return answers.shift() }) })
  const statuses = []
  for (let i = 0; i < 9; i++) statuses.push((await app.inject('/users/1')).statusCode)
  t.same([...new Set(statuses)], [200])
  t.equal(lines.filter(({ code }) => code === 'LT_WARN_SAMPLER').length, 2)
  const { spans } = app.lightTrace.stats()
  t.equal(spans.started, 9)
  t.equal(spans.ended, spans.accepted + spans.unsampled)
  t.equal(spans.accepted, 0)
})

test('samplers of the SDK decide as in the SDK', async (t) => {
  const ratio = new TraceIdRatioBasedSampler(1)
  for (const [given, traceparent, sampled] of [
    [new AlwaysOnSampler(), UNSAMPLED, true],
    [new AlwaysOffSampler(), SAMPLED, false],
    [new ParentBasedSampler({ root: new AlwaysOnSampler() }), UNSAMPLED, false],
    [new ParentBasedSampler({ root: new AlwaysOffSampler() }), SAMPLED, true],
    [new ParentBasedSampler({ root: ratio }), undefined, true]
  ]) {
    const { app } = await traced(t, { sampler: given })
    const { trace: state } = (await app.inject({ url: '/headers', headers: traceparent && { traceparent } })).json()
    t.equal(state.sampled, sampled, String(given))
  }
})

test('a route can have its own sampler', async (t) => {
  const { app, collector } = await traced(t, {}, [], (app) => {
    app.get('/off', { config: { trace: { sampler: new AlwaysOffSampler() } } }, async () => 'ok')
    app.get('/ratio', { config: { trace: { sampler: 0 } } }, async () => 'ok')
    app.get('/rule', { config: { trace: { sampler: sampler(() => ({ decision: 2, attributes: { rule: 1 } })) } } }, async () => 'ok')
  })
  for (const url of ['/off', '/ratio', '/rule']) t.equal((await app.inject(url)).statusCode, 200)
  t.match(await collector.spans(), [{ name: 'GET /rule', attributes: { rule: 1 } }])
})

test('keep exports failed and slow requests with their children, marked, and stays unsampled in outgoing headers', { skip: without('keep') || without('testing') }, async (t) => {
  const seen = []
  const { app, collector } = await traced(t, { sampler: 'always_off', keep: { errors: true, slow: true }, slow: { afterMs: 1e6 } }, [seeing(seen)], keepRoutes)
  const failed = await app.inject('/fail')
  t.match(failed.json().headers.traceparent, /-02$/)
  await app.inject('/fine')
  t.equal(await collector.tree(), [
    'SERVER GET /fail ERROR error.type=500',
    '  INTERNAL first',
    '    INTERNAL grandchild',
    '  INTERNAL second'
  ].join('\n'))
  t.equal(seen.length, 8, 'a processor sees all spans')
  t.same((await collector.spans()).map(({ name, attributes }) => [name, attributes['light_trace.kept']]), [['GET /fail', 'error'], ['first', 'error'], ['grandchild', 'error'], ['second', 'error']])
  t.match(app.lightTrace.stats().spans, { started: 8, ended: 8, unsampled: 4, accepted: 4 })
})

test('kept spans reach exporters of the SDK', { skip: without('keep') || without('testing') }, async (t) => {
  const exporter = new InMemorySpanExporter()
  const { app } = await traced(t, { sampler: 'always_off', keep: { slow: true }, slow: { afterMs: 0 } }, [new BatchSpanProcessor(exporter)], keepRoutes)
  await app.inject('/fine')
  await app.lightTrace.flush()
  t.same(exporter.getFinishedSpans().map(({ name }) => name).sort(), ['GET /fine', 'first', 'grandchild', 'second'])
  t.ok(exporter.getFinishedSpans().every(({ attributes }) => attributes['light_trace.kept'] === 'slow'))
  t.ok(exporter.getFinishedSpans().every((span) => (span.spanContext().traceFlags & 1) === 0), 'they stay unsampled in outgoing headers')
})

test('kept spans reach a collector natively', { skip: without('keep') }, async (t) => {
  const sink = await startSink(t)
  const { app } = await traced(t, { exporter: { url: sink.url }, spanProcessors: undefined, sampler: 'always_off', keep: { errors: true } }, [], keepRoutes)
  await app.inject('/fine')
  await app.inject('/fail')
  await app.lightTrace.flush()
  t.same(sink.spans.map(({ name, attributes }) => [name, attributes['light_trace.kept']]), [['GET /fail', 'error'], ['grandchild', 'error'], ['first', 'error'], ['second', 'error']])
  t.equal(new Set(sink.spans.map(({ traceId }) => traceId)).size, 1)
  t.match(app.lightTrace.stats().spans, { started: 8, ended: 8, unsampled: 4, accepted: 4, delivered: 4 })
})

test('keep has no effect in SDK mode, which is logged', { skip: without('keep') || without('sdk') }, async (t) => {
  const exporter = new InMemorySpanExporter()
  const tracerProvider = new BasicTracerProvider({ sampler: new AlwaysOffSampler(), spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const { app, lines } = await traced(t, { tracerProvider, spanProcessors: undefined, keep: { errors: true } }, [], keepRoutes)
  await app.inject('/fail')
  t.equal(exporter.getFinishedSpans().length, 0)
  t.equal(lines.filter(({ code }) => code === 'LT_WARN_KEEP').length, 1)
})

test('at most 64 children are held', { skip: without('keep') }, async (t) => {
  let late
  const { app, collector } = await traced(t, { sampler: 'always_off', keep: { errors: true } }, [], (app) => {
    app.get('/many', async (request) => {
      const tracer = app.lightTrace.tracer
      for (let i = 0; i < 10_000; i++) tracer.startSpan('child').end()
      late = () => tracer.startSpan('late', {}, request.trace).end()
      throw new Error('no')
    })
  })
  await app.inject('/many')
  late()
  const kept = (await collector.spans()).filter(({ attributes }) => attributes['light_trace.kept'] !== undefined)
  t.same(kept.map(({ name }) => name), ['GET /many', ...Array(64).fill('child')])
  t.match(app.lightTrace.stats().spans, { started: 10_002, ended: 10_002, accepted: 65, unsampled: 9_937 })
})

test('keep does not hold a sampled request', async (t) => {
  const { app, collector } = await traced(t, { keep: { errors: true } }, [], keepRoutes)
  await app.inject('/fail')
  t.equal((await collector.spans()).some(({ attributes }) => attributes['light_trace.kept'] !== undefined), false)
  t.match(app.lightTrace.stats().spans, { accepted: 4, unsampled: 0 })
})

function keepRoutes (app) {
  const children = async (request) => {
    await request.trace.withSpan('first', async () => request.trace.withSpan('grandchild', async () => {}))
    request.trace.withSpan('second', () => {})
  }
  app.get('/fine', async (request) => { await children(request); return {} })
  app.get('/fail', async (request, reply) => {
    await children(request)
    reply.code(500)
    return { headers: request.trace.inject() }
  })
}

function sampler (shouldSample) {
  return { shouldSample, toString: () => 'test' }
}

async function traced (t, options, processors = [], routes = () => {}) {
  const { collector, options: collecting } = await collectorFor(t, { timeoutMs: 500 })
  const lines = []
  const app = Fastify({ logger: { level: 'info', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  t.teardown(() => app.close())
  await app.register(lightTrace, { ...('spanProcessors' in options ? {} : collecting), ...(processors.length > 0 && { spanProcessors: [collector, ...processors] }), registerGlobals: false, ...options })
  app.get('/users/:id', async () => 'ok')
  app.get('/headers', async (request) => ({ headers: request.trace.inject(), recording: request.trace.span.isRecording(), trace: { sampled: request.trace.sampled } }))
  app.get('/children', async (request) => {
    request.trace.withSpan('yes', () => request.trace.withSpan('no', () => {}))
    return 'ok'
  })
  routes(app)
  await app.ready()
  return { app, collector, lines }
}

function seeing (seen) {
  return { onStart () {}, onEnd: ({ name }) => seen.push(name), forceFlush: async () => {}, shutdown: async () => {} }
}
