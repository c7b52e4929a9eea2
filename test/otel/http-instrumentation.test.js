'use strict'

// Together with instrumentation-http, which uses light-trace through the API if there is no SDK. A stub here makes the same API calls.
// sdk-interop.js tests the real package.
// Feature: sdk

const http = require('node:http')
const { once } = require('node:events')
const { test } = require('tap')
const { setImmediate: turn } = require('node:timers/promises')
const { context, trace, SpanKind } = require('@opentelemetry/api')
const { setRPCMetadata, RPCType } = require('@opentelemetry/core')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')
const { upstream } = require('../support/upstream')
const { signal } = require('../support/raw-client')

const NAME = '@opentelemetry/instrumentation-http'

/** Calls http.get like the instrumentation does. */
async function get (url) {
  const span = trace.getTracer(NAME).startSpan('GET', { kind: SpanKind.CLIENT })
  const [response] = await context.with(trace.setSpan(context.active(), span), () => once(http.get(url), 'response'))
  response.resume()
  await once(response, 'end')
  span.end()
}

/** A server that starts a SERVER span for each request, like the instrumentation. */
function instrumented (handler) {
  return http.createServer((request, response) => {
    const span = trace.getTracer(NAME).startSpan('GET', { kind: SpanKind.SERVER })
    response.once('close', () => span.end())
    const active = setRPCMetadata(trace.setSpan(context.active(), span), { type: RPCType.HTTP, span })
    context.with(active, () => handler(request, response))
  })
}

for (const propagators of ['tracecontext,baggage', 'none']) {
  test(`with outgoing calls only, no call has two spans (${propagators})`, async (t) => {
    process.env.OTEL_PROPAGATORS = propagators
    t.teardown(() => { delete process.env.OTEL_PROPAGATORS })
    const next = await upstream(t)
    const { app, collector } = await tracedApp(t, {
      listen: false,
      trace: { registerGlobals: true, keep: { errors: true } },
      routes: (app) => app.get('/', async () => {
        await get(next.origin)
        await get(next.origin)
      })
    })
    for (let i = 0; i < 2; i++) t.equal((await app.inject('/')).statusCode, 200)
    const spans = await collector.spans()
    t.same(spans.map(({ kind, scope }) => [kind, scope.name === NAME]).sort(), [...Array(4).fill(['CLIENT', true]), ...Array(2).fill(['SERVER', false])])
  })
}

test('calls of another kind from another instrumentation are not affected', async (t) => {
  const next = await upstream(t)
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: { registerGlobals: true },
    routes: (app) => app.get('/', async () => {
      const span = trace.getTracer('another').startSpan('query', { kind: SpanKind.CLIENT })
      await context.with(trace.setSpan(context.active(), span), async () => { await (await fetch(next.origin)).text() })
      span.end()
    })
  })
  await app.inject('/')
  t.equal(await collector.tree(), 'SERVER GET /\n  CLIENT query\n    CLIENT GET')
})

test('children of its SERVER span inherit, and are late if they end after it', { skip: without('inherit') }, async (t) => {
  const over = signal()
  const { app, collector, origin } = await tracedApp(t, {
    trace: { registerGlobals: true, inheritAttributes: ['tenant.id', 'http.route'], attributes: () => ({ 'tenant.id': 'acme' }) },
    fastify: { serverFactory: instrumented },
    routes: (app) => app.get('/', async ({ trace }) => {
      trace.withSpan('step', () => {})
      trace.withSpan('late', () => over.promise)
    })
  })
  for (let i = 0; i < 2; i++) await (await fetch(origin)).text()
  while (app.lightTrace.stats().spans.ended < 4) await turn()
  over.give()
  const spans = await collector.spans()
  t.same(spans.filter(({ kind }) => kind === 'SERVER').map(({ scope }) => scope.name), [NAME, NAME])
  t.same(spans.filter(({ name }) => name === 'step').map(({ attributes }) => attributes), Array(2).fill({ 'tenant.id': 'acme', 'http.route': '/' }))
  t.same(spans.filter(({ name }) => name === 'late').map(({ attributes }) => attributes), Array(2).fill({ 'tenant.id': 'acme', 'http.route': '/', 'light_trace.after_response': true }))
})
