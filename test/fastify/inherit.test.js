'use strict'

// `inheritAttributes`: the attributes that child spans copy from their request's span.
// Feature: inherit

const diagnosticsChannel = require('node:diagnostics_channel')
const { test } = require('tap')
const { BasicTracerProvider, AlwaysOffSampler } = require('@opentelemetry/sdk-trace-base')
const { setImmediate: turn } = require('node:timers/promises')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')
const { startMetricSink } = require('../support/metric-sink')
const { signal } = require('../support/raw-client')
const { tellingLogger } = require('../support/telling-logger')

const tenants = { inheritAttributes: ['tenant.id'], attributes: ({ headers }) => ({ 'tenant.id': headers['x-tenant'] }) }
const redis = { database: 2, serverAddress: 'redis.internal', serverPort: 6379 }
const get = (key) => diagnosticsChannel.tracingChannel('node-redis:command').tracePromise(async () => 'done', { command: 'GET', args: ['GET', key], ...redis })

/** Returns the spans of requests to `/` by name, as the native exporter sends them and as processors see them. */
async function spansOf (t, trace, handler, requests = [{}]) {
  const sink = await startSink(t)
  const routes = (app) => app.get('/', { config: { trace: { attributes: { tier: 'gold' } } } }, handler)
  const native = await tracedApp(t, { listen: false, trace: { spanProcessors: undefined, exporter: { url: sink.url }, ...trace }, routes })
  const objects = await tracedApp(t, { listen: false, trace, routes })
  for (const { app } of [native, objects]) for (const headers of requests) await app.inject({ url: '/', headers })
  await native.app.lightTrace.flush()
  const collected = await objects.collector.spans()
  const shown = (spans) => spans.map(({ name, attributes }) => `${name} ${JSON.stringify(Object.entries(attributes).sort(), (key, value) => typeof value === 'bigint' ? Number(value) : value)}`).sort()
  t.same(shown(sink.spans), shown(collected), 'the same natively and as objects')
  return collected
}

const tenantOf = ({ attributes }) => attributes['tenant.id']
const named = (spans, name) => spans.find((span) => span.name === name)

test('every span of a request has the tenant if it was set before the span ended', async (t) => {
  const spans = await spansOf(t, { inheritAttributes: ['tenant.id', 'user.id'] }, async ({ trace }) => {
    trace.withSpan('before', () => {})
    await trace.withSpan('around', async () => {
      trace.span.setAttribute('tenant.id', 'acme')
      trace.withSpan('inner', () => {})
    })
    trace.span.setAttributes({ 'tenant.id': 'other', 'user.id': 7, not: 'inherited' })
    trace.withSpan('after', () => {})
  })
  t.same(Object.fromEntries(spans.map(({ name, attributes }) => [name, [attributes['tenant.id'], attributes['user.id']]])), {
    before: [undefined, undefined], inner: ['acme', undefined], around: ['acme', undefined], after: ['other', 7], 'GET /': ['other', 7]
  })
  t.notOk('not' in named(spans, 'after').attributes)
})

test('concurrent requests do not mix', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: tenants,
    routes: (app) => app.get('/', async ({ trace, headers }) => { await trace.withSpan(`of ${headers['x-tenant']}`, () => turn()) })
  })
  await Promise.all(['a', 'b', 'c'].map((tenant) => app.inject({ url: '/', headers: { 'x-tenant': tenant } })))
  const children = (await collector.spans()).filter(({ name }) => name.startsWith('of '))
  t.same(children.map(({ name, attributes }) => [name, attributes['tenant.id']]).sort(), [['of a', 'a'], ['of b', 'b'], ['of c', 'c']])
})

test('a span that ends after the response has the attributes that its request had at its end', async (t) => {
  for (const way of ['native', 'objects']) {
    const sink = await startSink(t)
    const over = signal()
    const { app, collector, origin } = await tracedApp(t, {
      trace: { ...tenants, ...way === 'native' && { spanProcessors: undefined, exporter: { url: sink.url } } },
      routes: (app) => app.get('/', async ({ trace }) => { trace.withSpan('late', () => over.promise) })
    })
    await (await fetch(origin, { headers: { 'x-tenant': 'acme' } })).text()
    await app.lightTrace.flush()
    while (app.lightTrace.stats().spans.ended === 0) await turn()
    await app.lightTrace.flush()
    over.give()
    await turn()
    await app.lightTrace.flush()
    const late = named(way === 'native' ? sink.spans : await collector.spans(), 'late')
    t.match(late.attributes, { 'tenant.id': 'acme', 'light_trace.after_response': true }, way)
  }
})

test('a child\'s own attribute is kept', async (t) => {
  const spans = await spansOf(t, { ...tenants, inheritAttributes: ['tenant.id', 'tier'] }, async ({ trace }) => {
    trace.withSpan('own', (span) => span.setAttribute('tenant.id', 'mine'))
    trace.withSpan('theirs', (span) => span.setAttribute('more', 1))
  }, [{ 'x-tenant': 'acme' }])
  t.match(named(spans, 'own').attributes, { 'tenant.id': 'mine', tier: 'gold' })
  t.match(named(spans, 'theirs').attributes, { 'tenant.id': 'acme', tier: 'gold', more: 1 })
})

test('attributes of the route, of all routes and of the request itself are inherited', async (t) => {
  const spans = await spansOf(t, { inheritAttributes: ['tier', 'region', 'http.route', 'http.request.method', 'no.such', 'http.response.status_code'], attributes: { region: 'eu' } },
    async ({ trace }) => { trace.withSpan('step', () => {}) })
  t.same(named(spans, 'step').attributes, { tier: 'gold', region: 'eu', 'http.route': '/', 'http.request.method': 'GET' })
})

test('inherited values are complete copies, within the limits', async (t) => {
  const spans = await spansOf(t, { inheritAttributes: ['zones', 'long'], limits: { attributes: 16, attributeValueLength: 8 } }, async ({ trace }) => {
    trace.span.setAttributes({ zones: ['a', 'ä'], long: 'x'.repeat(20) })
    trace.withSpan('step', () => {})
    trace.withSpan('full', (span) => { for (let i = 0; i < 15; i++) span.setAttribute(`a${i}`, i) })
  })
  t.same(named(spans, 'step').attributes, { zones: ['a', 'ä'], long: 'x'.repeat(8) })
  const full = named(spans, 'full')
  t.same([Object.keys(full.attributes).length, full.attributes.zones, full.attributes.long, full.droppedAttributesCount], [16, ['a', 'ä'], undefined, 1])
})

test('calls of libraries inherit in addition to the attributes of their target', { skip: without('libraries') }, async (t) => {
  const spans = await spansOf(t, { ...tenants, inheritAttributes: ['tenant.id', 'server.address', 'http.route'] }, async () => { await get('a') }, [{ 'x-tenant': 'acme' }])
  t.match(named(spans, 'GET').attributes, { 'tenant.id': 'acme', 'http.route': '/', 'server.address': 'redis.internal', 'db.system.name': 'redis' })
})

test('folded calls inherit', { skip: without('libraries') || without('repeated-calls') }, async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: { ...tenants, outbound: { fold: { after: 1 } } },
    routes: (app) => app.get('/', async () => { for (let i = 0; i < 20; i++) await get('a') })
  })
  await app.inject({ url: '/', headers: { 'x-tenant': 'acme' } })
  const calls = (await collector.spans()).filter(({ kind }) => kind === 'CLIENT')
  t.ok(calls.some(({ attributes }) => attributes['light_trace.fold.count'] > 1))
  t.same(calls.map(tenantOf), calls.map(() => 'acme'))
})

test('metrics of calls use only the call\'s own attributes', { skip: without('libraries') || without('metrics') }, async (t) => {
  const sink = await startMetricSink(t)
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { spanProcessors: undefined, exporter: { url: sink.url }, metrics: true, inheritAttributes: ['http.request.method', 'http.route', 'tenant.id'], attributes: { 'tenant.id': 'acme' } },
    routes: (app) => app.get('/', async () => { await get('a') })
  })
  await app.inject('/')
  await app.close()
  const { points } = await sink.metric('db.client.operation.duration')
  t.same(points.map(({ attributes, count }) => [attributes, Number(count)]), [[{ 'db.system.name': 'redis', 'db.operation.name': 'GET', 'db.namespace': '2', 'server.address': 'redis.internal', 'server.port': 6379 }, 1]])
})

test('children of a kept request inherit, both held and late ones', { skip: without('keep') }, async (t) => {
  const over = signal()
  const { app, collector, origin } = await tracedApp(t, {
    trace: { ...tenants, sampler: 'always_off', keep: { errors: true } },
    routes: (app) => app.get('/', async ({ trace }) => {
      trace.withSpan('held', () => {})
      trace.withSpan('late', () => over.promise)
      throw new Error('no')
    })
  })
  await (await fetch(origin, { headers: { 'x-tenant': 'acme' } })).text()
  while (app.lightTrace.stats().spans.ended < 2) await turn()
  over.give()
  const spans = await collector.spans()
  t.same(spans.map(({ name, attributes }) => [name, attributes['tenant.id'], attributes['light_trace.kept']]).sort(), [
    ['GET /', 'acme', 'error'], ['held', 'acme', 'error'], ['late', 'acme', 'error']
  ])
})

test('spans outside of any request inherit nothing', { skip: without('jobs') }, async (t) => {
  const { app, collector } = await tracedApp(t, { listen: false, trace: { ...tenants, attributes: { 'tenant.id': 'acme' } } })
  await app.lightTrace.run({}, { name: 'job' }, () => {})
  t.same((await collector.spans()).map(({ name, attributes }) => [name, attributes]), [['job', {}]])
})

test('with a tracer provider, a warning reports that the option has no effect', { skip: without('sdk') }, async (t) => {
  const loggerInstance = tellingLogger()
  const tracerProvider = new BasicTracerProvider({ sampler: new AlwaysOffSampler() })
  const { app } = await tracedApp(t, { listen: false, fastify: { loggerInstance }, trace: { ...tenants, tracerProvider }, routes: (app) => app.get('/', async ({ trace }) => trace.withSpan('step', () => 'ok')) })
  t.equal((await app.inject('/')).body, 'ok')
  t.match(loggerInstance.logged, [['LT_WARN_OPTION_MEANING', /^inheritAttributes has no effect: spans are made by the tracerProvider/]])
})

test('without the option, nothing is added to the pipeline of a span', async (t) => {
  const { app } = await tracedApp(t, { listen: false, routes: (app) => app.get('/', async ({ trace }) => Object.hasOwn(trace.span.pipeline, 'ended')) })
  t.equal((await app.inject('/')).body, 'false')
})

test('an omitted attribute is not inherited', { skip: without('omit') || without('logs') }, async (t) => {
  const spans = await spansOf(t, { ...tenants, inheritAttributes: ['tenant.id', 'tier'], omitAttributes: ['tenant.id'] }, async ({ trace }) => { trace.withSpan('step', () => {}) }, [{ 'x-tenant': 'acme' }])
  t.same(named(spans, 'step').attributes, { tier: 'gold' })
})
