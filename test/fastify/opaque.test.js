'use strict'

// Our properties on Fastify's and Node's objects do not lead to a span, a tracer or the exporter. Code that compares, prints or clones
// these objects follows their enumerable properties.

const assert = require('node:assert')
const { inspect } = require('node:util')
const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')

// Returns the constructor names of all light-trace objects that can be reached by enumerable keys.
function ours (root) {
  const found = new Set()
  const seen = new Set()
  const open = [root]
  while (open.length > 0) {
    const value = open.pop()
    if (value === null || typeof value !== 'object' || seen.has(value)) continue
    seen.add(value)
    if (/Span$|^Tracer|Exporter|Pipeline|Sender|ChunkBuffer|^SpanStarter|^Report$/.test(value.constructor?.name ?? '')) found.add(value.constructor.name)
    for (const key of Reflect.ownKeys(value)) {
      const descriptor = Reflect.getOwnPropertyDescriptor(value, key)
      // The application's decorator is public.
      if (descriptor.enumerable && 'value' in descriptor && key !== 'lightTrace') open.push(descriptor.value)
    }
  }
  return [...found]
}

const spans = { handler: true, hooks: ['onRequest', 'preHandler', 'onSend', 'onResponse'] }

for (const [what, trace] of [['by default', {}], ['with spans of stages', { spans }], ['not sampled', { sampler: 'always_off' }], ['kept', { sampler: 'always_off', keep: { errors: true } }]]) {
  test(`from a request and a reply, raw or not, no enumerable key leads to a span or a tracer (${what})`, async (t) => {
    const found = []
    const sink = await startSink(t)
    const seen = []
    const { origin } = await tracedApp(t, {
      trace: { ...trace, spanProcessors: undefined, exporter: { url: sink.url } },
      routes (app) {
        const look = (stage) => async (request, reply) => {
          for (const root of [request, reply, request.raw, reply.raw]) found.push(...ours(root).map((name) => `${stage} ${root.constructor.name} ${name}`))
          seen.push(request, reply)
        }
        for (const stage of ['onRequest', 'preHandler', 'onSend', 'onResponse']) app.addHook(stage, look(stage))
        app.get('/', async (request, reply) => { await look('handler')(request, reply); return 'ok' })
        app.setNotFoundHandler(async (request, reply) => { await look('not found')(request, reply); return 'no' })
      }
    })
    for (const path of ['/', '/none']) await (await fetch(origin + path)).text()
    for (const kept of seen) found.push(...ours(kept).map((name) => `afterwards ${name}`))
    t.same([...new Set(found)], [])
  })
}

test('comparing two requests, replies or raw objects ends, and is no slower than without light-trace', async (t) => {
  const sink = await startSink(t)
  const kept = []
  const { origin } = await tracedApp(t, {
    trace: { spanProcessors: undefined, exporter: { url: sink.url } },
    routes: (app) => app.get('/', async (request, reply) => { kept.push([request, reply]); return 'ok' })
  })
  for (let i = 0; i < 2; i++) await (await fetch(origin)).text()
  const [[request, reply], [otherRequest, otherReply]] = kept
  for (const [one, other] of [[request, otherRequest], [reply, otherReply], [request.raw, otherRequest.raw], [reply.raw, otherReply.raw]]) {
    // The values of our keys compare as equal.
    for (const symbol of Object.getOwnPropertySymbols(one).filter(({ description }) => description?.startsWith('light-trace'))) {
      assert.deepStrictEqual(one[symbol], other[symbol])
      t.same(Object.keys(one[symbol]), [])
      t.ok(inspect(one[symbol], { depth: 1000, customInspect: false }).length < 100)
    }
  }
})

test('a second copy of the package ignores a request that the first one traces', async (t) => {
  const sink = await startSink(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: sink.url }, registerGlobals: false, buffer: { flushDelayMs: 1 } })
  const paths = Object.keys(require.cache).filter((path) => path.startsWith(require.resolve('../..').replace(/index\.js$/, 'lib')) || path === require.resolve('../..'))
  const first = paths.map((path) => [path, require.cache[path]])
  for (const path of paths) delete require.cache[path]
  const second = require('../..')
  t.teardown(() => { for (const [path, module] of first) require.cache[path] = module })
  t.not(second, lightTrace)
  await app.register(async (child) => {
    await child.register(second, { exporter: { url: sink.url }, registerGlobals: false, buffer: { flushDelayMs: 1 } })
    child.get('/', async (request) => { throw new TypeError(request.trace.traceId) })
  })
  const { message } = (await app.inject('/')).json()
  const [span] = await sink.waitFor(1)
  t.equal(span.traceId, message)
  await app.lightTrace.flush()
  t.equal(sink.spans.length, 1)
})
