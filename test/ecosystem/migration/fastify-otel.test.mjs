// Compares the spans that users of @fastify/otel see with those of light-trace, with the options that docs/migration.md lists as
// equivalent. If both differ, the test has what each reports.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import FastifyOtelInstrumentation from '@fastify/otel'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import fastify from 'fastify'
import lightTrace from 'light-trace'
import { createCollector } from 'light-trace/testing'

const HOOKS = ['onRequest', 'preParsing', 'preValidation', 'preHandler', 'preSerialization', 'onSend', 'onResponse', 'onError']
const CALLER = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }

// The default of @fastify/otel.
const ALL_STAGES = { theirs: {}, ours: { spans: { handler: true, hooks: HOOKS } } }

/**
 * Sends the same requests to both applications.
 * @returns {Promise<{ theirs: string[], ours: string[] }>} a line for each request: its status,
 * whether its span is an ERROR, its route, and the stages that have spans, sorted by name
 */
async function ask (t, routes, requests, { theirs, ours } = ALL_STAGES) {
  return { theirs: await askTheirs(t, routes, requests, theirs), ours: await askOurs(t, routes, requests, ours) }
}

async function askTheirs (t, routes, requests, options) {
  const exporter = new InMemorySpanExporter()
  const instrumentation = new FastifyOtelInstrumentation(options)
  instrumentation.setTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  t.after(() => { context.disable(); propagation.disable() })
  const lines = await serve(t, (app) => app.register(instrumentation.plugin()), routes('otel'), requests, () => exporter.getFinishedSpans(), () => exporter.reset())
  context.disable()
  propagation.disable()
  return lines
}

async function askOurs (t, routes, requests, options) {
  const exporter = new InMemorySpanExporter()
  return serve(t, (app) => app.register(lightTrace, { ...options, spanProcessors: [new SimpleSpanProcessor(exporter)] }), routes('trace'), requests, () => exporter.getFinishedSpans(), () => exporter.reset())
}

async function serve (t, register, routes, requests, spans, reset) {
  const app = fastify()
  t.after(() => app.close())
  await register(app)
  await routes(app)
  const lines = []
  for (const request of requests) {
    const { statusCode } = await app.inject(request)
    await new Promise((resolve) => setImmediate(resolve)) // a span ends when its response is closed
    lines.push(`${statusCode} ${picture(spans())}`)
    reset()
  }
  return lines
}

function picture (spans) {
  const server = spans.find(({ kind }) => kind === SpanKind.SERVER)
  if (server === undefined) return spans.length === 0 ? 'no span' : `no request span, ${stagesOf(spans)}`
  const caller = server.parentSpanContext === undefined ? '' : ' with a caller'
  const isError = ({ status }) => status.code === SpanStatusCode.ERROR
  return `${isError(server) ? 'ERROR ' : ''}${server.attributes['http.route'] ?? 'no route'}${caller}${stagesOf(spans)}`
}

function stagesOf (spans) {
  const stages = spans.filter(({ kind }) => kind === SpanKind.INTERNAL)
    .map(({ name, status }) => `${name.split(' - ')[0]}${status.code === SpanStatusCode.ERROR ? ' ERROR' : ''}`).sort()
  return stages.length === 0 ? '' : `: ${stages.join(', ')}`
}

async function same (t, routes, requests, expected, options) {
  const { theirs, ours } = await ask(t, routes, requests, options)
  assert.deepEqual({ theirs, ours }, { theirs: expected, ours: expected })
}

const hello = async () => 'hello'

test('a request is one SERVER span with its route and its handler', (t) => same(t, () => (app) => {
  app.get('/', hello)
  app.get('/users/:id', hello)
  app.register(async (shop) => shop.get('/items/:item', hello), { prefix: '/shop' })
}, ['/', '/users/7', '/shop/items/3'], ['200 /: handler', '200 /users/:id: handler', '200 /shop/items/:item: handler']))

test('a caller’s span is the parent', (t) => same(t, () => (app) => app.get('/', hello), [{ url: '/', headers: CALLER }], ['200 / with a caller: handler']))

test('hooks of the app, of the route and of a plugin have spans', (t) => same(t, () => (app) => {
  app.addHook('preValidation', async () => {})
  app.get('/', { onRequest: async () => {}, preHandler: (request, reply, done) => done() }, hello)
  app.register(async (nested) => {
    nested.addHook('preHandler', async () => {})
    nested.get('/', hello)
  }, { prefix: '/nested' })
}, ['/', '/nested'], ['200 /: handler, onRequest, preHandler, preValidation', '200 /nested: handler, preHandler, preValidation']))

test('two hooks of one stage: theirs have a span each, ours one for the stage', async (t) => {
  const { theirs, ours } = await ask(t, () => (app) => app.get('/', { preHandler: [async () => {}, async () => {}] }, hello), ['/'])
  assert.deepEqual({ theirs, ours }, { theirs: ['200 /: handler, preHandler, preHandler'], ours: ['200 /: handler, preHandler'] })
})

test('hook spans can be switched off, chosen, and chosen for a route', async (t) => {
  const routes = (key) => (app) => {
    const only = key === 'otel' ? { instrumentHooks: ['onRequest'] } : { spans: { handler: true, hooks: ['onRequest'] } }
    const hooks = { onRequest: async () => {}, preHandler: async () => {} }
    app.get('/', hooks, hello)
    app.get('/only', { ...hooks, config: { [key]: only } }, hello)
  }
  const requests = ['/', '/only']
  await same(t, routes, requests, ['200 /: handler', '200 /only: handler, onRequest'], { theirs: { instrumentHooks: false }, ours: { spans: { handler: true } } })
  await same(t, routes, requests, ['200 /: handler, preHandler', '200 /only: handler, onRequest'],
    { theirs: { instrumentHooks: ['preHandler'] }, ours: { spans: { handler: true, hooks: ['preHandler'] } } })
  await same(t, routes, ['/'], ['200 /: preHandler'], { theirs: { instrumentHooks: ['preHandler'], instrumentHandler: false }, ours: { spans: { hooks: ['preHandler'] } } })
})

test('an ignored path and a route that is switched off have no span', async (t) => {
  const routes = (key) => (app) => {
    app.addHook('onRequest', async () => {})
    app.get('/health/live', hello)
    app.get('/off', { config: { [key]: false } }, hello)
    app.get('/', hello)
  }
  const requests = ['/health/live', '/off', '/']
  const expected = ['200 no span', '200 no span', '200 /: handler, onRequest']
  await same(t, routes, requests, expected, { theirs: { ignorePaths: '/health/*' }, ours: { ...ALL_STAGES.ours, ignore: '/health/*' } })
  await same(t, routes, requests, expected, { theirs: { ignorePaths: ({ url }) => url.startsWith('/health') }, ours: { ...ALL_STAGES.ours, ignore: (request) => request.url.startsWith('/health') } })
})

test('OTEL_FASTIFY_IGNORE_PATHS is read by both', async (t) => {
  process.env.OTEL_FASTIFY_IGNORE_PATHS = '/health/*'
  t.after(() => { delete process.env.OTEL_FASTIFY_IGNORE_PATHS })
  await same(t, () => (app) => app.get('/health/live', hello).get('/', hello), ['/health/live', '/'], ['200 no span', '200 /: handler'])
})

test('an error is recorded on the request and on the stage that caused it', (t) => same(t, () => (app) => {
  app.get('/handler', async () => { throw new Error('no') })
  app.get('/hook', { preHandler: async () => { throw new Error('no') } }, hello)
}, ['/handler', '/hook'], ['500 ERROR /handler: handler ERROR', '500 ERROR /hook: preHandler ERROR']))

test('an error that a hook passes to its callback: only ours has it on the hook', async (t) => {
  const { theirs, ours } = await ask(t, () => (app) => app.get('/', { preHandler: (request, reply, done) => done(new Error('no')) }, hello), ['/'])
  assert.deepEqual({ theirs, ours }, { theirs: ['500 ERROR /: preHandler'], ours: ['500 ERROR /: preHandler ERROR'] })
})

test('an error with a 4xx answer: only theirs is an ERROR', async (t) => {
  const { theirs, ours } = await ask(t, () => (app) => app.get('/', async () => { throw Object.assign(new Error('no'), { statusCode: 404 }) }), ['/'])
  assert.deepEqual({ theirs, ours }, { theirs: ['404 ERROR /: handler ERROR'], ours: ['404 /: handler'] })
})

test('without a route, the request, the hooks and a custom handler have spans', async (t) => {
  await same(t, () => () => {}, ['/nothing'], ['404 no route'])
  const { theirs, ours } = await ask(t, () => (app) => {
    app.addHook('onRequest', async () => {})
    app.setNotFoundHandler({ preHandler: async () => {} }, (request, reply) => { reply.code(404).send('none') })
  }, ['/nothing'])
  assert.deepEqual({ theirs, ours }, { theirs: ['404 no route: notFoundHandler, notFoundHandler, onRequest'], ours: ['404 no route: handler, onRequest, preHandler'] })
})

test('registered in a scope, it traces that scope only', async (t) => {
  const app = fastify()
  t.after(() => app.close())
  const collector = createCollector()
  await app.register(async (scope) => {
    await scope.register(lightTrace, { spanProcessors: [collector] })
    scope.get('/in', hello)
  })
  app.get('/out', hello)
  for (const url of ['/in', '/out']) assert.equal((await app.inject(url)).statusCode, 200)
  assert.equal(await collector.tree(), 'SERVER GET /in')
})

test('a custom function gets each request’s span, and may throw', async (t) => {
  const routes = () => (app) => app.get('/', hello)
  const named = []
  await same(t, routes, ['/'], ['200 /'], {
    theirs: { instrumentHandler: false, requestHook: (span, request) => { named.push(request.url); throw new Error('no') } },
    ours: { onStart: (span, request) => { named.push(request.url); throw new Error('no') } }
  })
  assert.deepEqual(named, ['/', '/'])
})

test('the request has its span, and passes its trace on', async (t) => {
  const answers = []
  await same(t, (key) => (app) => app.get('/', async (request) => {
    const { span, inject } = key === 'otel' ? request.opentelemetry() : { span: request.trace.span, inject: (headers) => request.trace.inject(headers) }
    const headers = {}
    inject(headers)
    const { traceId } = span.spanContext()
    answers.push([headers.traceparent.split('-')[1] === traceId, trace.getActiveSpan().spanContext().traceId === traceId])
    return 'ok'
  }), ['/'], ['200 /: handler'])
  assert.deepEqual(answers, [[true, true], [true, true]])
})

test('addHook returns the application, and hooks keep their order', (t) => same(t, () => (app) => {
  const order = []
  assert.equal(app.addHook('onRequest', async () => { order.push(1) }).addHook('onRequest', async () => { order.push(2) }), app)
  app.get('/', async () => {
    assert.deepEqual(order, [1, 2])
    return 'ok'
  })
}, ['/'], ['200 /: handler'], { theirs: { instrumentHooks: false }, ours: { spans: { handler: true } } }))
