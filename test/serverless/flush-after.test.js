'use strict'

// `flushAfter` in this process: flushes that run in parallel.
// Feature: serverless

const http = require('node:http')
const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { without } = require('../support/features')
const { listenAnew } = require('../support/new-port')
const { startSink } = require('../support/otlp-sink')
const { tracedApp } = require('../support/traced-app')

test('each span of parallel invocations has its own invocation, from the platform\'s context and not from a field of the event', async (t) => {
  process.env.AWS_LAMBDA_FUNCTION_NAME = 'orders'
  t.teardown(() => { delete process.env.AWS_LAMBDA_FUNCTION_NAME })
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/:id', async () => { await new Promise(setImmediate); return 'ok' })
  })
  const handler = lightTrace.flushAfter(app, async (event, context) => {
    await new Promise(setImmediate)
    return app.inject(`/${context.awsRequestId}`)
  })
  await Promise.all(Array.from({ length: 20 }, (_, i) => handler({ awsRequestId: 'forged' }, { awsRequestId: `request-${i}` })))
  await app.inject('/outside')
  const ids = (await collector.spans()).map(({ attributes }) => [attributes['url.path'], attributes['faas.invocation_id']])
  t.equal(ids.length, 21)
  t.same(ids.filter(([path, id]) => path !== `/${id}`), [['/outside', undefined]])
})

test('a context that throws loses no answer and no span', async (t) => {
  process.env.AWS_LAMBDA_FUNCTION_NAME = 'orders'
  t.teardown(() => { delete process.env.AWS_LAMBDA_FUNCTION_NAME })
  const refuses = () => { throw new Error('no') }
  const contexts = [
    new Proxy({}, { get: refuses, has: refuses, getPrototypeOf: refuses }),
    { get awsRequestId () { return refuses() } },
    { awsRequestId: 'one', get invokedFunctionArn () { return refuses() } },
    { awsRequestId: 'two', getRemainingTimeInMillis: refuses },
    { awsRequestId: 'three', get getRemainingTimeInMillis () { return refuses() } }
  ]
  const sink = await startSink(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: sink.url } })
  app.get('/', async () => 'ok')
  for (const [i, context] of contexts.entries()) {
    const { body } = await lightTrace.flushAfter(app, () => app.inject('/'))({}, context)
    t.equal(body, 'ok')
    t.equal(sink.spans.length, i + 1)
  }
})

test('an error in an application\'s ready() is no failure of the invocation', async (t) => {
  for (const ready of [() => {}, () => { throw new Error('boom') }, async () => { throw new Error('boom') }]) {
    t.equal(await lightTrace.flushAfter({ ready, server: {} }, async () => 'answer')({}), 'answer')
  }
})

test('spans and metrics are sent in parallel, and neither waits for the other\'s answer', { skip: without('metrics') }, async (t) => {
  const answers = []
  const collector = http.createServer((request, response) => {
    request.resume()
    if (answers.push(response) === 2) for (const each of answers) each.end()
  })
  const url = `http://127.0.0.1:${await listenAnew(collector)}/v1/traces`
  const app = Fastify()
  t.teardown(async () => {
    collector.closeAllConnections()
    collector.close()
    await app.close()
  })
  app.register(lightTrace, { exporter: { url }, metrics: true, closeTimeoutMs: 1 })
  app.get('/', async () => 'ok')
  // If the flushes ran one after the other, the answer would not arrive within this test.
  await lightTrace.flushAfter(app, () => app.inject('/'), { timeoutMs: 600_000 })({}, {})
  t.equal(answers.length, 2)
})
