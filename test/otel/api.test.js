'use strict'

const { test } = require('tap')
const { EventEmitter } = require('node:events')
const Fastify = require('fastify')
const api = require('@opentelemetry/api')
const early = api.trace.getTracer('early', '1.0.0') // before light-trace is loaded
const lightTrace = require('../..')
const { collectorFor } = require('../support/collector')

const { trace, context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode } = api

test('spans of a tracer from module load are below the request', async (t) => {
  const { app, collector } = await traced(t, (app) => app.get('/', async () => {
    t.equal(trace.getActiveSpan().spanContext().spanId, lightTrace.current().spanId)
    return early.startActiveSpan('outer', async (outer) => {
      t.equal(trace.getActiveSpan(), outer)
      await new Promise((resolve) => setImmediate(resolve))
      early.startActiveSpan('inner', { kind: SpanKind.CLIENT }, (inner) => inner.end())
      outer.end()
      return {}
    })
  }))
  await app.inject('/')
  t.equal(await collector.tree(), [
    'SERVER GET /',
    '  INTERNAL outer',
    '    CLIENT inner'
  ].join('\n'))
  t.match(await collector.spans(), [{}, { scope: { name: 'early', version: '1.0.0' } }])
})

test('startActiveSpan works in all its forms', async (t) => {
  const { app, collector } = await traced(t)
  await app.ready()
  const tracer = trace.getTracer('forms')
  t.equal(tracer.startActiveSpan('a', (span) => { span.end(); return 1 }), 1)
  t.equal(tracer.startActiveSpan('b', { attributes: { x: 1 } }, (span) => { span.end(); return 2 }), 2)
  const parent = tracer.startSpan('parent')
  t.equal(tracer.startActiveSpan('c', {}, trace.setSpan(ROOT_CONTEXT, parent), (span) => { span.end(); return 3 }), 3)
  parent.end()
  t.throws(() => tracer.startActiveSpan('d', (span) => { span.end(); throw new Error('mine') }), { message: 'mine' })
  t.equal(await collector.tree(), ['INTERNAL a', 'INTERNAL b', 'INTERNAL parent', '  INTERNAL c', 'INTERNAL d'].join('\n'))
})

test('links, root, times in all three forms, status and exceptions are recorded', async (t) => {
  const { app, collector } = await traced(t, (app) => app.get('/', async () => {
    const tracer = app.lightTrace.tracerProvider.getTracer('lib', '2', { schemaUrl: 'https://example.test/1' })
    const link = { context: { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 }, attributes: { a: 1 } }
    const span = tracer.startSpan('root', { root: true, links: [link], startTime: new Date(1e12) })
    span.recordException(new TypeError('no'))
    span.setStatus({ code: SpanStatusCode.ERROR, message: 'no' })
    span.end([1e9 + 1, 5e8])
    tracer.startSpan('number', { startTime: 1e12 + 1 }).end(1e12 + 3)
    return {}
  }))
  await app.inject('/')
  const spans = await collector.spans()
  const [root, number] = ['root', 'number'].map((name) => spans.find((span) => span.name === name))
  t.equal(root.parentSpanId, undefined)
  t.match(root, { status: { code: 'ERROR', message: 'no' }, links: [{ attributes: { a: 1 } }], events: [{ name: 'exception' }] })
  t.equal(root.duration, 1500)
  t.equal(number.duration, 2)
  t.ok(number.parentSpanId)
})

test('the context manager binds functions and emitters', async (t) => {
  await traced(t)
  const key = Symbol('key')
  const bound = context.bind(ROOT_CONTEXT.setValue(key, 1), function (a, b) { return [this, a, b, context.active().getValue(key)] })
  const self = {}
  t.same(bound.call(self, 2, 3), [self, 2, 3, 1])
  t.equal(bound.length, 2)

  const emitter = context.bind(ROOT_CONTEXT.setValue(key, 2), new EventEmitter())
  const seen = []
  const listener = () => seen.push(context.active().getValue(key))
  emitter.on('x', listener)
  emitter.once('x', listener)
  emitter.emit('x')
  emitter.off('x', listener)
  emitter.emit('x')
  t.same(seen, [2, 2])
  t.equal(emitter.listenerCount('x'), 0)
  t.equal(context.bind(ROOT_CONTEXT, 5), 5)
  t.equal(context.active(), context.active(), 'outside of any context it is always the same object')
  t.equal(trace.getActiveSpan(), undefined)
})

test('attach holds until it is disposed', { skip: context.attach === undefined && 'api 1.9' }, async (t) => {
  await traced(t)
  const key = Symbol('key')
  await new Promise((resolve) => setImmediate(() => {
    const token = context.attach(ROOT_CONTEXT.setValue(key, 1))
    t.equal(context.active().getValue(key), 1)
    token.dispose()
    token.dispose()
    t.equal(context.active().getValue(key), undefined)
    resolve()
  }))
})

test('the propagator reads and writes W3C headers', async (t) => {
  const { app } = await traced(t, (app) => app.get('/', async (request) => {
    const carrier = {}
    propagation.inject(context.active(), carrier)
    t.equal(carrier.traceparent, request.trace.traceparent)
    return {}
  }))
  await app.inject('/')
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03'
  const extracted = propagation.extract(ROOT_CONTEXT, { traceparent, tracestate: 'a=b' })
  t.match(trace.getSpanContext(extracted), { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 3, isRemote: true })
  const carrier = {}
  propagation.inject(extracted, carrier)
  t.match(carrier, { traceparent, tracestate: 'a=b' })
  t.equal(propagation.extract(ROOT_CONTEXT, { traceparent: [traceparent, traceparent] }), ROOT_CONTEXT)
  t.same(propagation.fields(), ['traceparent', 'tracestate', 'baggage'])
})

test('after the first of two apps has closed, a tracer reaches the open one', async (t) => {
  const first = await traced(t)
  const second = await traced(t, (app) => app.get('/', async () => { early.startSpan('here').end(); return {} }))
  await Promise.all([first.app.ready(), second.app.ready()])
  early.startSpan('first').end()
  await second.app.inject('/')
  await first.app.close()
  early.startSpan('second').end()
  t.equal(await first.collector.tree(), 'INTERNAL first')
  t.equal(await second.collector.tree(), ['SERVER GET /', '  INTERNAL here', 'INTERNAL second'].join('\n'))
})

test('the API works again after a close and a new app', async (t) => {
  const first = await traced(t)
  const during = trace.getTracer('during')
  await first.app.close()
  t.equal(globalThis[Symbol.for('opentelemetry.js.api.1')]?.trace, undefined, 'the slot is free again')
  const between = trace.getTracer('between')
  t.equal(between.startSpan('lost').isRecording(), false)
  const second = await traced(t)
  for (const tracer of [early, during, between]) tracer.startSpan('found').end()
  t.equal(await second.collector.tree(), ['INTERNAL found', 'INTERNAL found', 'INTERNAL found'].join('\n'))
})

test('spans that start before ready are exported', async (t) => {
  const { collector, options: collecting } = await collectorFor(t)
  const app = Fastify()
  t.teardown(() => app.close())
  app.register(lightTrace, collecting)
  app.register(async () => { early.startSpan('plugin').end() })
  app.addHook('onReady', async () => { app.lightTrace.tracer.startSpan('onReady').end() })
  await app.ready()
  t.equal(await collector.tree(), ['INTERNAL plugin', 'INTERNAL onReady'].join('\n'))
})

test('registerGlobals: false does not touch the slots', async (t) => {
  const { app, collector } = await traced(t, (app) => app.get('/', async (request) => {
    t.equal(trace.getActiveSpan(), undefined)
    app.lightTrace.tracer.startActiveSpan('own', (span) => span.end())
    return { same: lightTrace.current() === request.trace }
  }), { registerGlobals: false })
  t.same((await app.inject('/')).json(), { same: true })
  t.equal(await collector.tree(), ['SERVER GET /', '  INTERNAL own'].join('\n'))
})

test('invalid input is limited, and never throws', async (t) => {
  const { app, collector } = await traced(t, (app) => app.get('/', async () => {
    const span = early.startSpan('child')
    span.end()
    span.end()
    span.setAttribute('late', 1).addEvent('late').updateName('late').setStatus({ code: 2 })
    for (let i = 0; i < 10_000; i++) early.startSpan('many').end()
    early.startSpan('never')
    return {}
  }))
  await app.inject('/')
  const hostile = { getValue: () => { throw new Error('context') }, setValue () { return this }, deleteValue () { return this } }
  for (const args of [[], [null], [Symbol('x')], ['x', null], ['x', 5], ['x', { attributes: 5, links: 5, kind: 'x', startTime: 'x' }], ['x', {}, {}], ['x', {}, hostile], ['x', {}, 5], [{ toString () { throw new Error('name') } }]]) {
    t.doesNotThrow(() => app.lightTrace.tracer.startSpan(...args).end())
  }
  t.equal(app.lightTrace.tracer.startActiveSpan('no function'), undefined)
  for (let i = 0; i < 1000; i++) trace.getTracer(`user-${i}`).startSpan('x').end()
  const { spans } = app.lightTrace.stats()
  t.equal(spans.ended, spans.accepted + spans.unsampled)
  const child = (await collector.spans()).find(({ name }) => name === 'child')
  t.match(child, { attributes: {}, events: [], status: { code: 'UNSET' } })
})

async function traced (t, routes = () => {}, options = {}) {
  const { collector, options: collecting } = await collectorFor(t, { timeoutMs: 300 })
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { ...collecting, ...options })
  routes(app)
  await app.ready()
  return { app, collector }
}
