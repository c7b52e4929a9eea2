'use strict'

// A Sampler gets the attributes that the options add to a request's span at its start.

const { test } = require('tap')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')

function asking (answer) {
  const asked = []
  return {
    asked,
    shouldSample (context, traceId, name, kind, attributes) {
      asked.push({ name, attributes: { ...attributes } })
      return { decision: answer(attributes) ? 2 : 0 }
    },
    toString: () => 'asking'
  }
}

test('captured request headers and attributes(request) are available in shouldSample', async (t) => {
  const sampler = asking((attributes) => attributes['app.tenant'] === 'gold')
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: { sampler, headers: { request: ['x-tenant'] }, attributes: ({ headers }) => ({ 'app.tenant': headers['x-tenant'] }) },
    routes: (app) => app.get('/', { config: { trace: { attributes: () => ({ 'app.route': 1 }) } } }, async () => 'ok')
  })
  await app.inject({ url: '/', headers: { 'x-tenant': 'gold' } })
  await app.inject({ url: '/', headers: { 'x-tenant': 'lead' } })
  t.match(sampler.asked, [
    { attributes: { 'http.request.header.x-tenant': ['gold'], 'app.tenant': 'gold', 'app.route': 1, 'http.route': '/' } },
    { attributes: { 'http.request.header.x-tenant': ['lead'], 'app.tenant': 'lead' } }
  ])
  const spans = await collector.spans()
  t.equal(spans.length, 1)
  t.match(spans[0].attributes, { 'http.request.header.x-tenant': ['gold'], 'app.tenant': 'gold', 'app.route': 1 })
})

test('an object of attributes is available, too', async (t) => {
  for (const attributes of [{ 'app.tenant': 'gold' }, { 'app.tenant': 'gold', 'server.address': 'shop.test' }]) {
    const sampler = asking(() => true)
    const { app, collector } = await tracedApp(t, { listen: false, trace: { sampler, attributes }, routes: (app) => app.get('/', async () => 'ok') })
    await app.inject('/')
    t.match(sampler.asked, [{ attributes: { ...attributes, 'http.route': '/' } }])
    const [span] = await collector.spans()
    t.match(span.attributes, attributes)
  }
})

test('attributes(request) runs once, before the span, which does not record meanwhile', async (t) => {
  const seen = []
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: {
      sampler: asking(() => true),
      attributes (request) {
        seen.push(request.trace.span.isRecording())
        request.trace.span.setAttribute('lost', true)
        return { fine: 1 }
      }
    },
    routes: (app) => app.get('/', async ({ trace }) => { seen.push(trace.span.isRecording()); return 'ok' })
  })
  await app.inject('/')
  t.same(seen, [false, true])
  const [span] = await collector.spans()
  t.equal(span.attributes.fine, 1)
  t.notOk('lost' in span.attributes)
})

test('they are also available to a route\'s own sampler, with keep, and with a tracer provider', { skip: without('sdk') }, async (t) => {
  const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-base')
  const attributes = () => ({ fine: 1 })
  const own = asking(() => true)
  const route = await tracedApp(t, { listen: false, trace: { attributes }, routes: (app) => app.get('/', { config: { trace: { sampler: own } } }, async () => 'ok') })
  await route.app.inject('/')
  t.equal(own.asked[0].attributes.fine, 1)

  const theirs = asking(() => true)
  const exporter = new InMemorySpanExporter()
  const tracerProvider = new BasicTracerProvider({ sampler: theirs, spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const provided = await tracedApp(t, { listen: false, trace: { attributes, spanProcessors: undefined, tracerProvider }, routes: (app) => app.get('/', async () => 'ok') })
  await provided.app.inject('/')
  t.equal(theirs.asked[0].attributes.fine, 1)
  t.equal(exporter.getFinishedSpans()[0].attributes.fine, 1)
})

test('a function that throws loses only its attributes', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: { sampler: asking(() => true), attributes () { throw new Error('no') } },
    routes: (app) => app.get('/', async () => 'ok')
  })
  t.equal((await app.inject('/')).statusCode, 200)
  t.equal((await collector.spans()).length, 1)
})
