'use strict'

// Which requests record what they waited for. test/slow checks the values, in a process in which nothing else runs.
// Feature: accounts

const http2 = require('node:http2')
const { once } = require('node:events')
const { setTimeout: sleep } = require('node:timers/promises')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')
const { connect, signal } = require('../support/raw-client')
const { without } = require('../support/features')
const { runInChild } = require('../support/child')

const ALL = { config: { trace: { slow: { afterMs: 0 } } } }
const KEYS = ['busy', 'gc', 'idle', 'uncertainty', 'unscheduled'].map((name) => `light_trace.time.${name}`)
const TIMES = 8 // if a busy machine takes the CPU away between two clock reads, a request records nothing
const waits = () => sleep(30) // a handler that fails at once has no time to explain
const saidBy = ({ attributes }) => Object.keys(attributes).filter((key) => key.startsWith('light_trace.time.')).sort()

/** Of several requests of a kind, some have all keys, and none has only a part of them. */
function saysAll (t, spans, what) {
  const said = spans.map(saidBy).filter((keys) => keys.length > 0)
  t.ok(said.length > 0, what)
  for (const keys of said) t.same(keys, KEYS, what)
}

async function ask (origin, ...paths) {
  for (const path of paths) await (await fetch(origin + path)).text()
}

const times = (path) => Array(TIMES).fill(path)

// The first request of a process may record nothing, because its event loop has never been idle. It also switches on the recording of
// garbage collections.
async function warm ({ collector, origin }) {
  while (performance.nodeTiming.idleTime === 0) await sleep(1) // the loop is idle when nothing is due at once
  await ask(origin, '/all', '/all')
  await collector.spans()
  collector.reset()
}

function routes (app) {
  app.get('/all', ALL, async () => 'ok')
  app.get('/many', ALL, async ({ trace }) => {
    for (let i = 0; i < 50; i++) trace.span.setAttribute(`planted.${i}`, i)
    return 'ok'
  })
  app.get('/ended', ALL, async ({ trace }) => {
    trace.span.end()
    return 'ok'
  })
  app.get('/fast', async () => 'ok')
  app.get('/never', { config: { trace: { slow: false } } }, async () => {
    await waits()
    throw new Error('planted')
  })
  app.get('/fails', async () => {
    await waits()
    throw new Error('planted')
  })
  app.get('/hijacked', ALL, async (request, reply) => {
    reply.hijack()
    reply.raw.end('ok')
  })
  let came = signal()
  app.get('/aborted', ALL, (request, reply) => { came.give() })
  app.decorate('arrived', async () => {
    await came.promise
    came = signal()
  })
}

test('a fast request records nothing, however it is answered, and a slow one everything, with its route\'s limit', async (t) => {
  const traced = await tracedApp(t, { routes, trace: { slow: { afterMs: 1e6 } } })
  await warm(traced)
  const { collector, origin } = traced
  await ask(origin, '/fast', '/nothing-here', ...times('/all'), ...times('/hijacked'), ...times('/ended'))
  const spans = await collector.spans()
  const of = (path) => spans.filter(({ attributes }) => attributes['url.path'] === path)
  for (const path of ['/fast', '/nothing-here']) t.same(of(path).map(saidBy), [[]], path)
  for (const path of ['/all', '/hijacked', '/ended']) saysAll(t, of(path), path)
})

test('the parts add up to the request, within their uncertainty', async (t) => {
  const traced = await tracedApp(t, { routes })
  await warm(traced)
  await ask(traced.origin, ...times('/all'))
  const spans = await traced.collector.spans()
  saysAll(t, spans)
  for (const { attributes, duration } of spans.filter((span) => saidBy(span).length > 0)) {
    const sum = ['idle', 'busy', 'gc', 'unscheduled'].reduce((total, name) => total + attributes[`light_trace.time.${name}`], 0) * 1000
    t.ok(Math.abs(sum - duration) <= attributes['light_trace.time.uncertainty'] * 1000 + 0.01, `${sum} ms of ${duration}`)
  }
})

test('a failed request records its times, unless its route switches that off', async (t) => {
  const traced = await tracedApp(t, { routes, trace: { slow: { afterMs: 1e6 } } })
  await warm(traced)
  await ask(traced.origin, ...times('/fails'))
  saysAll(t, await traced.collector.spans())
  traced.collector.reset()
  await ask(traced.origin, '/never')
  t.same((await traced.collector.spans()).map(saidBy), [[]])
})

test('`slow: false` switches it off, except on routes with an option of their own', async (t) => {
  const traced = await tracedApp(t, { routes, trace: { slow: false } })
  await warm(traced)
  await ask(traced.origin, '/fails')
  t.same((await traced.collector.spans()).map(saidBy), [[]])
  traced.collector.reset()
  await ask(traced.origin, ...times('/all'))
  saysAll(t, await traced.collector.spans())
})

test('an unsampled request records its times if it is kept', { skip: without('keep') }, async (t) => {
  const traced = await tracedApp(t, { routes, trace: { slow: { afterMs: 1e6 }, sampler: 'always_off', keep: { errors: true, slow: true } } })
  await ask(traced.origin, '/fast', ...times('/fails'))
  const spans = await traced.collector.spans()
  t.same(new Set(spans.map(({ attributes }) => attributes['light_trace.kept'])), new Set(['error']))
  saysAll(t, spans.slice(1)) // the first request switches on the recording of garbage collections
})

test('a slow request is kept, prints its held lines and is explained, with one limit per application and one per route', { skip: without('keep') || without('logs') }, async (t) => {
  const lines = []
  const stream = { write: (line) => { lines.push(JSON.parse(line)) } }
  const traced = await tracedApp(t, {
    fastify: { logger: { level: 'info', stream } },
    trace: { slow: { afterMs: 1e6 }, sampler: 'always_off', keep: { slow: true }, logs: { buffer: 'debug' } },
    routes (app) {
      const says = async ({ log, url }) => {
        log.debug(url)
        return 'ok'
      }
      app.get('/fast', says)
      app.get('/all', ALL, says)
      app.get('/never', { config: { trace: { slow: false } } }, says)
    }
  })
  await warm(traced)
  lines.length = 0
  await ask(traced.origin, '/fast', '/never', ...times('/all'))
  const spans = await traced.collector.spans()
  t.same(spans.map(({ attributes }) => [attributes['url.path'], attributes['light_trace.kept']]), times(['/all', 'slow']))
  saysAll(t, spans)
  t.same(lines.filter(({ buffered }) => buffered).map(({ msg }) => msg), times('/all'))
})

// In a separate process, because the result of this lookup is cached for the process.
test('a route that was declared before the plugin has its own `slow`, even if Fastify keeps its routes elsewhere', { skip: without('sdk') }, async (t) => {
  const { code, said } = await runInChild(t, async ({ Fastify, lightTrace, say }) => {
    const app = Fastify({ forceCloseConnections: true })
    const config = { trace: { slow: { afterMs: 0 } } }
    const routeOptions = { value: { url: '/', config } } // with a config object that is not Fastify's
    app.addHook('onRequest', async (request) => { Object.defineProperty(request, 'routeOptions', routeOptions) })
    app.get('/', { config }, async () => 'ok')
    const onEnd = ({ attributes }) => say(attributes)
    await app.register(lightTrace, { slow: false, registerGlobals: false, spanProcessors: [{ onStart () {}, onEnd, async forceFlush () {}, async shutdown () {} }] })
    const origin = await app.listen({ port: 0, host: '127.0.0.1' })
    while (performance.nodeTiming.idleTime === 0) await new Promise((resolve) => setTimeout(resolve, 1)) // as in warm()
    for (let i = 0; i < 10; i++) await (await fetch(origin)).text()
    await app.close()
  }).exit
  t.equal(code, 0)
  t.equal(said.length, 10)
  saysAll(t, said.slice(2).map((attributes) => ({ attributes })))
})

test('HTTP/2 requests, and requests whose client leaves, record their times', async (t) => {
  const traced = await tracedApp(t, { routes, fastify: { http2: true, forceCloseConnections: undefined } })
  const session = http2.connect(traced.origin)
  t.teardown(() => session.destroy())
  for (let i = 0; i < TIMES; i++) {
    const stream = session.request({ ':path': '/all' })
    stream.resume()
    await once(stream, 'close')
  }
  saysAll(t, (await traced.collector.spans()).slice(1))

  const plain = await tracedApp(t, { routes })
  await warm(plain)
  for (let i = 0; i < TIMES; i++) {
    const client = await connect(plain.port)
    client.request('GET', '/aborted')
    await plain.app.arrived()
    await client.leave()
  }
  const spans = await plain.collector.spans()
  t.same(spans.map(({ attributes }) => attributes['error.type']), times('aborted'))
  saysAll(t, spans)
})

test('an attribute limit does not remove the times, and the collector reads them', async (t) => {
  const sink = await startSink(t)
  const traced = await tracedApp(t, { routes, trace: { spanProcessors: undefined, exporter: { url: sink.url }, limits: { attributes: 40 } } })
  await ask(traced.origin, ...times('/many'))
  await traced.app.lightTrace.flush()
  const spans = await sink.waitFor(TIMES)
  saysAll(t, spans.slice(1))
  t.notOk('planted.49' in spans.at(-1).attributes)
  for (const { attributes } of spans) t.ok(Object.keys(attributes).length <= 40, `${Object.keys(attributes).length} attributes`)
})

test('flush and close deliver requests that ended in the same turn', async (t) => {
  const traced = await tracedApp(t, { routes })
  await warm(traced)
  const { app } = traced
  const { ended } = app.lightTrace.stats().spans
  await app.inject('/all')
  await app.lightTrace.flush()
  t.equal(app.lightTrace.stats().spans.ended, ended + 1)
})
