'use strict'

// Which requests say what they waited for. What they say is measured by test/slow, where nothing else runs.

const http2 = require('node:http2')
const { once } = require('node:events')
const { setTimeout: sleep } = require('node:timers/promises')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')
const { connect, signal } = require('../support/raw-client')

const ALL = { config: { trace: { slow: { afterMs: 0 } } } }
const KEYS = ['busy', 'error', 'gc', 'idle', 'unscheduled'].map((name) => `light_trace.time.${name}`)
const saidBy = ({ attributes }) => Object.keys(attributes).filter((key) => key.startsWith('light_trace.time.')).sort()

// The first request of a process may have none: its event loop has never waited. And Node is asked for collections from the first on.
async function warm ({ collector, origin }) {
  while (performance.nodeTiming.idleTime === 0) await sleep(5)
  for (let i = 0; i < 3; i++) await (await fetch(`${origin}/all`)).text()
  await collector.spans()
  collector.reset()
}

function routes (app) {
  app.get('/all', ALL, async () => 'ok')
  app.get('/many', ALL, async ({ trace }) => {
    for (let i = 0; i < 50; i++) trace.span.setAttribute(`planted.${i}`, i)
    return 'ok'
  })
  app.get('/fast', async () => 'ok')
  app.get('/never', { config: { trace: { slow: false } } }, async () => {
    await sleep(30)
    throw new Error('planted')
  })
  app.get('/fails', async () => {
    await sleep(30)
    throw new Error('planted')
  })
  app.get('/hijacked', ALL, async (request, reply) => {
    reply.hijack()
    reply.raw.end('ok')
  })
  const aborted = signal()
  app.get('/aborted', ALL, (request, reply) => { aborted.give() })
  app.decorate('aborted', aborted)
}

test('a fast request says nothing, however it is answered; a slow one all, whose route sets the limit', async (t) => {
  const traced = await tracedApp(t, { routes, trace: { slow: { afterMs: 1e6 } } })
  await warm(traced)
  const { collector, origin } = traced
  for (const path of ['/fast', '/nothing-here', '/all', '/hijacked']) await (await fetch(origin + path)).text()
  const said = (await collector.spans()).map((span) => [span.attributes['url.path'], saidBy(span)])
  t.same(said, [['/fast', []], ['/nothing-here', []], ['/all', KEYS], ['/hijacked', KEYS]])
})

test('the times are those of the request, and its span has its own end', async (t) => {
  const traced = await tracedApp(t, { routes })
  await warm(traced)
  await (await fetch(`${traced.origin}/all`)).text()
  const [{ attributes, duration }] = await traced.collector.spans()
  const sum = ['idle', 'busy', 'gc', 'unscheduled'].reduce((total, name) => total + attributes[`light_trace.time.${name}`], 0) * 1000
  t.ok(Math.abs(sum - duration) <= 2 * attributes['light_trace.time.error'] * 1000 + 0.01, `${sum} ms of ${duration}`)
})

test('one that failed says it too, unless its route says no', async (t) => {
  const traced = await tracedApp(t, { routes, trace: { slow: { afterMs: 1e6 } } })
  await warm(traced)
  for (const path of ['/fails', '/never']) await (await fetch(traced.origin + path)).text()
  t.same((await traced.collector.spans()).map(saidBy), [KEYS, []])
})

test('`slow: false` switches it off for all, but for routes that ask', async (t) => {
  const traced = await tracedApp(t, { routes, trace: { slow: false } })
  await warm(traced)
  for (const path of ['/fails', '/all']) await (await fetch(traced.origin + path)).text()
  t.same((await traced.collector.spans()).map(saidBy), [[], KEYS])
})

test('a request that is not sampled says it where it is kept', async (t) => {
  const traced = await tracedApp(t, { routes, trace: { sampler: 'always_off', keep: { errors: true, slowerThanMs: 1e6 } } })
  await (await fetch(`${traced.origin}/fast`)).text()
  await (await fetch(`${traced.origin}/fails`)).text()
  await (await fetch(`${traced.origin}/fails`)).text()
  const spans = await traced.collector.spans()
  t.same(spans.map(({ attributes }) => attributes['light_trace.kept']), ['error', 'error'])
  t.same(saidBy(spans[1]), KEYS)
})

test('what `keep` calls slow is slow', async (t) => {
  const traced = await tracedApp(t, { routes, trace: { keep: { slowerThanMs: 0 }, slow: undefined } })
  await warm(traced)
  await (await fetch(`${traced.origin}/fast`)).text()
  t.same((await traced.collector.spans()).map(saidBy), [KEYS])
})

test('HTTP/2 and a client that leaves', async (t) => {
  const traced = await tracedApp(t, { routes, fastify: { http2: true, forceCloseConnections: undefined } })
  const session = http2.connect(traced.origin)
  t.teardown(() => session.destroy())
  for (let i = 0; i < 4; i++) {
    const stream = session.request({ ':path': '/all' })
    stream.resume()
    await once(stream, 'close')
  }
  t.same(saidBy((await traced.collector.spans()).at(-1)), KEYS)

  const plain = await tracedApp(t, { routes })
  await warm(plain)
  const client = await connect(plain.port)
  client.request('GET', '/aborted')
  await plain.app.aborted.promise
  await client.leave()
  const [span] = await plain.collector.spans()
  t.equal(span.attributes['error.type'], 'aborted')
  t.same(saidBy(span), KEYS)
})

test('an attribute limit does not take it away, and the collector reads it', async (t) => {
  const sink = await startSink(t)
  const traced = await tracedApp(t, { routes, trace: { spanProcessors: undefined, exporter: { url: sink.url }, limits: { attributes: 40 } } })
  for (let i = 0; i < 3; i++) await (await fetch(`${traced.origin}/many`)).text()
  await traced.app.lightTrace.flush()
  const spans = await sink.waitFor(3)
  t.same(saidBy(spans.at(-1)), KEYS)
  t.notOk('planted.49' in spans.at(-1).attributes)
})

test('flush and close hand on what has ended in this turn', async (t) => {
  const traced = await tracedApp(t, { routes })
  await warm(traced)
  const { app } = traced
  const { ended } = app.lightTrace.stats().spans
  await app.inject('/all')
  await app.lightTrace.flush()
  t.equal(app.lightTrace.stats().spans.ended, ended + 1)
})
