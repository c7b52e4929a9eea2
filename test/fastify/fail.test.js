'use strict'

// request.trace.fail(error), for applications that answer errors themselves.

const { test } = require('tap')
const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-base')
const { tracedApp } = require('../support/traced-app')
const { without } = require('../support/features')

function answers (app) {
  app.get('/:status', async (request, reply) => {
    const error = new TypeError('broken')
    request.trace.fail(error)
    if (request.query.twice) request.trace.fail(error)
    if (request.query.throw) throw error
    reply.code(Number(request.params.status))
    return 'mine'
  })
}

async function spanOf (t, url, trace) {
  const { app, collector } = await tracedApp(t, { listen: false, routes: answers, trace })
  await app.inject(url)
  const [span] = await collector.spans()
  return span
}

const exceptions = ({ events }) => events.map(({ name, attributes }) => `${name} ${attributes['exception.type']} ${attributes['exception.message']}`)

test('fail with a 5xx answer records the exception, error.type and the status', async (t) => {
  const span = await spanOf(t, '/503')
  t.same(exceptions(span), ['exception TypeError broken'])
  t.equal(span.attributes['error.type'], 'TypeError')
  t.equal(span.status.code, 'ERROR')
})

test('fail with another answer records the exception and no status, and for a 4xx error.type', async (t) => {
  for (const status of [200, 404]) {
    const span = await spanOf(t, `/${status}`)
    t.same(exceptions(span), ['exception TypeError broken'])
    t.equal(span.attributes['error.type'], status === 404 ? 'TypeError' : undefined)
    t.equal(span.status.code, 'UNSET')
  }
})

test('an error that Fastify also catches is recorded once', async (t) => {
  const span = await spanOf(t, '/200?throw=1')
  t.same(exceptions(span), ['exception TypeError broken'])
  t.equal(span.attributes['error.type'], 'TypeError')
})

test('each call is an event, and a value that is not an error is recorded unchanged', async (t) => {
  t.equal(exceptions(await spanOf(t, '/500?twice=1')).length, 2)
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/', async ({ trace }, reply) => {
      for (const thrown of [null, undefined, 'text', 7, { get message () { throw new Error('hostile') } }]) trace.fail(thrown)
      reply.code(500)
      return 'no'
    })
  })
  t.equal((await app.inject('/')).statusCode, 500)
  t.equal((await collector.spans())[0].status.code, 'ERROR')
})

test('fail does nothing on unsampled, ignored and ended requests', async (t) => {
  for (const trace of [{ sampler: 'always_off' }, { ignore: () => true }]) {
    const { app, collector } = await tracedApp(t, { listen: false, routes: answers, trace })
    t.equal((await app.inject('/500')).statusCode, 500)
    t.same(await collector.spans(), [])
  }
  let late
  const { app, collector } = await tracedApp(t, { listen: false, routes: (app) => app.get('/', async (request) => { late = request.trace; return 'ok' }) })
  await app.inject('/')
  const [span] = await collector.spans()
  late.fail(new Error('late'))
  t.same(span.events, [])
})

test('keep exports an unsampled request with a 5xx that calls fail', { skip: without('keep') }, async (t) => {
  const { app, collector } = await tracedApp(t, { listen: false, routes: answers, trace: { sampler: 'always_off', keep: { errors: true } } })
  await app.inject('/500')
  await app.inject('/200')
  t.same((await collector.spans()).map(({ attributes }) => attributes['error.type']), ['TypeError'])
})

test('in SDK mode fail records on the provider\'s span', { skip: without('sdk') }, async (t) => {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const { app } = await tracedApp(t, { listen: false, routes: answers, trace: { spanProcessors: undefined, tracerProvider: provider } })
  await app.inject('/500')
  await app.lightTrace.flush()
  const [span] = exporter.getFinishedSpans()
  t.same(exceptions(span), ['exception TypeError broken'])
  t.equal(span.attributes['error.type'], 'TypeError')
})

test('fail can be destructured within its request', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/', async ({ trace: { fail } }, reply) => { fail(new RangeError('no')); reply.code(500); return 'no' })
  })
  await app.inject('/')
  t.equal((await collector.spans())[0].attributes['error.type'], 'RangeError')
})

test('a numeric code is not the type: a DOMException has its name', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/', async () => { throw new DOMException('too long', 'AbortError') })
  })
  await app.inject('/')
  const [{ events, attributes }] = await collector.spans()
  t.same([attributes['error.type'], ...events.map((event) => event.attributes['exception.type'])], ['AbortError', 'AbortError'])
})
