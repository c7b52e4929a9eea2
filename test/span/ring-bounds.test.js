'use strict'

// The option `recorder`: sums over the kept spans, and the memory of the ring.
// Feature: keep

const { test } = require('tap')
const { setImmediate: turn } = require('node:timers/promises')
const { extrapolate } = require('../support/extrapolation')
const { recordedApp, identity } = require('../support/recorded-app')
const { runInChild } = require('../support/child')

const KEPT = 'light_trace.kept'

test('estimates of children are right for kept requests with more children than are held', async (t) => {
  const REQUESTS = 200
  const { app, sent } = await recordedApp(t, { sampler: 0.1, keep: { errors: true, maxPerSecond: Infinity } }, (app) => {
    app.get('/', async ({ trace }, reply) => {
      for (let i = 0; i < 100; i++) trace.withSpan('child', () => {})
      return reply.code(500).send('')
    })
  })
  for (let i = 0; i < REQUESTS; i++) await app.inject('/')
  let spans = []
  while (spans.length < REQUESTS * 101) { // children beyond the immediate limit arrive a little later
    await turn()
    spans = await sent()
  }
  t.equal(spans.length, REQUESTS * 101)
  const counted = spans.filter(({ name, attributes, traceState }) => name === 'child' && (traceState !== '' || attributes[KEPT] === undefined))
  const { count, deviation } = extrapolate(counted)
  t.ok(Math.abs(count - 100 * REQUESTS) < 4 * deviation * Math.sqrt(36), `${Math.round(count)} of ${100 * REQUESTS}`) // the other 36 children of a request are sampled together
  t.equal(extrapolate(spans.filter(({ kind }) => kind === 'SERVER')).count, REQUESTS)
  identity(t, app)
})

test('the ring stays within its memory, and the oldest are overwritten and counted', async (t) => {
  const maxBytes = 128 * 1024
  const { app, sent } = await recordedApp(t, { recorder: { maxBytes } }, (app) => app.get('/:n', async ({ trace }) => {
    trace.withSpan('child', () => {})
    return ''
  }))
  for (let i = 0; i < 2000; i++) {
    await app.inject(`/${i}`)
    if (i % 100 === 0) identity(t, app)
  }
  const { spans, recorder } = app.lightTrace.stats()
  t.ok(recorder.bytes <= maxBytes && recorder.bytes > maxBytes / 2, `${recorder.bytes} bytes`)
  t.ok(spans.recorded > 200 && spans.recorded < 1000, `${spans.recorded} of 4000`)
  t.equal(spans.unsampled, 4000 - spans.recorded)
  const { spans: count } = await app.lightTrace.snapshot()
  t.equal(count, spans.recorded)
  const requests = (await sent()).filter(({ kind }) => kind === 'SERVER').map(({ attributes }) => Number(attributes['url.path'].slice(1)))
  t.same(requests, requests.map((_, i) => 2000 - requests.length + i), 'the last ones')
})

test('a full ring takes `maxBytes` of memory and at most one mebibyte more', async (t) => {
  const memoryOf = async (recorder) => {
    const child = runInChild(t, async ({ Fastify, lightTrace, say, root }, recorder) => {
      const { bytesInUse } = require(`${root}/test/support/bytes-in-use`)
      const app = Fastify()
      await app.register(lightTrace, { sampler: 'always_off', recorder, slow: false, exporter: { url: 'http://127.0.0.1:9' } })
      app.get('/:n', async ({ trace }) => {
        trace.withSpan('child', () => {})
        return ''
      })
      // inject() retains what it writes until the event loop turns.
      for (let i = 0; i < 5000; i++) {
        await app.inject(`/${i}`)
        if (i % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      say({ bytes: await bytesInUse(), ring: app.lightTrace.stats().recorder?.bytes ?? 0 })
      await app.close()
    }, { args: [recorder], killAfterMs: 120_000 })
    return (await child.exit).said[0]
  }
  const maxBytes = 2 * 1024 * 1024
  const [without, having] = [await memoryOf(false), await memoryOf({ maxBytes })]
  t.ok(having.ring > 0.9 * maxBytes, `${having.ring} bytes in the ring`)
  t.ok(having.bytes - without.bytes <= maxBytes + 1024 * 1024, `${having.bytes - without.bytes} bytes more than without it`)
})
