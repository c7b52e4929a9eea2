'use strict'

const { test } = require('tap')
const { samplerOf, RateLimit, DROP, RECORD_AND_SAMPLE } = require('../../lib/sampling/sampler')
const { tracedApp } = require('../support/traced-app')

// The last 14 hex digits of a trace id, and whether a ratio samples it. It samples values from (1 − ratio)·2^56 upward.
const VECTORS = [
  [0.5, '7fffffffffffff', false], [0.5, '80000000000000', true], [0.5, 'ffffffffffffff', true], [0.5, '00000000000000', false],
  [0.25, 'bfffffffffffff', false], [0.25, 'c0000000000000', true],
  [0.1, 'e6666666666665', false], [0.1, 'e6666666666666', true],
  [0.01, 'fd70a3d70a3d70', false], [0.01, 'fd70a3d70a3d71', true],
  [0.75, '3fffffffffffff', false], [0.75, '40000000000000', true],
  [2 ** -56, 'fffffffffffffe', false], [2 ** -56, 'ffffffffffffff', true],
  [1 - 2 ** -53, '00000000000007', false], [1 - 2 ** -53, '00000000000008', true],
  [0, 'ffffffffffffff', false], [1, '00000000000000', true]
]

for (const [ratio, low, taken] of VECTORS) {
  test(`a ratio of ${ratio} ${taken ? 'samples' : 'does not sample'} …${low}`, async (t) => {
    for (const high of ['00', 'ff']) { // the other 72 bits are ignored
      const traceId = '0af7651916cd43dd' + high + low
      for (const parentBased of [true, false]) {
        const sampler = samplerOf({ kind: 'ratio', ratio, parentBased })
        t.equal(sampler.decide(contextOf(traceId), false) === RECORD_AND_SAMPLE, taken)
      }
    }
    // The same through a request. Without parentbased, the caller's sampled flag does not matter.
    process.env.OTEL_TRACES_SAMPLER = 'traceidratio'
    process.env.OTEL_TRACES_SAMPLER_ARG = String(ratio)
    t.teardown(() => { delete process.env.OTEL_TRACES_SAMPLER; delete process.env.OTEL_TRACES_SAMPLER_ARG })
    const { app, collector } = await tracedApp(t, { listen: false, routes: (app) => app.get('/', async () => 'ok') })
    await app.inject({ url: '/', headers: { traceparent: `00-0af7651916cd43dd00${low}-b7ad6b7169203331-0${taken ? 0 : 1}` } })
    t.equal((await collector.spans()).length, taken ? 1 : 0)
  })
}

test('the parent decides if the sampler is parent-based', (t) => {
  for (const kind of ['always_on', 'always_off', 'ratio']) {
    const sampler = samplerOf({ kind, ratio: 0.5, parentBased: true })
    t.equal(sampler.decide(contextOf('0'.repeat(31) + '1', 1), true), RECORD_AND_SAMPLE)
    t.equal(sampler.decide(contextOf('f'.repeat(32), 0), true), DROP)
  }
  t.end()
})

test('a rate limit admits one second\'s worth, and refills with time', (t) => {
  const limit = new RateLimit(10)
  const taken = (at, tries) => Array.from({ length: tries }, () => limit.take(at)).filter(Boolean).length
  t.equal(taken(1000, 50), 10)
  t.equal(taken(1000, 50), 0)
  t.equal(taken(1100, 50), 1)
  t.equal(taken(1550, 50), 4)
  t.equal(taken(99999, 50), 10, 'never more than one second\'s worth')
  const slow = new RateLimit(0.5)
  t.same([0, 1, 1000, 2000, 2001].map((at) => slow.take(at)), [true, false, false, true, false])
  t.end()
})

test('maxSampledPerSecond limits the cost of a caller\'s flag, and the rest still propagates its context', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: { limits: { sampledPerSecond: 5 } },
    routes: (app) => app.get('/', async (request) => request.trace.inject())
  })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const answers = []
  for (let i = 0; i < 20; i++) answers.push((await app.inject({ url: '/', headers: { traceparent } })).json().traceparent)
  const { length } = await collector.spans()
  t.ok(length >= 5 && length < 20, String(length))
  for (const answer of answers) t.match(answer, /^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-0[01]$/)
  t.equal(answers.filter((answer) => answer.endsWith('01')).length, length)
  t.match(app.lightTrace.stats().spans, { started: 20, ended: 20, accepted: length, unsampled: 20 - length })
})

test('limits.sampledPerSecond: 0 samples nothing', async (t) => {
  const { app, collector } = await tracedApp(t, { listen: false, trace: { limits: { sampledPerSecond: 0 } }, routes: (app) => app.get('/', async () => 'ok') })
  await app.inject('/')
  t.same(await collector.spans(), [])
})

test('unsampled requests still have ids, a store, inert children and outgoing headers', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: { sampler: 'always_off' },
    routes: (app) => app.get('/', async (request) => {
      const { trace } = request
      const child = await trace.withSpan('child', async (span) => ({ recording: span.isRecording(), traceId: span.spanContext().traceId }))
      trace.set('a', 1)
      return { ...child, own: trace.traceId, sampled: trace.sampled, a: trace.get('a'), headers: trace.inject() }
    })
  })
  const answer = (await app.inject('/')).json()
  t.match(answer, { recording: false, sampled: false, a: 1, traceId: answer.own })
  t.match(answer.headers.traceparent, new RegExp(`^00-${answer.own}-[0-9a-f]{16}-02$`))
  t.same(await collector.spans(), [])
  t.match(app.lightTrace.stats().spans, { started: 2, ended: 2, unsampled: 2, accepted: 0 })
})

test('a step of an unsampled request runs under the request\'s own span, and its result or error is unchanged', async (t) => {
  const boom = new Error('boom')
  const seen = {}
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { sampler: 'always_off', spanProcessors: undefined, exporter: 'none' },
    routes: (app) => app.get('/', async ({ trace }) => {
      const span = trace.withSpan('step', (span) => span)
      const promise = Promise.resolve(7)
      let sent = 0
      const query = { then (resolve) { sent++; resolve?.('rows') } }
      trace.withSpan('lazy', () => query)
      seen.sent = sent
      seen.sync = thrownBy(() => trace.withSpan('sync', () => { throw boom }))
      seen.async = await trace.withSpan('async', async () => { throw boom }).catch((error) => error)
      seen.value = await trace.withSpan('promise', { attributes: { a: 1 } }, () => promise)
      seen.isActive = await trace.withSpan('active', async (given) => {
        await promise
        return trace.inject().traceparent.includes(given.spanContext().spanId)
      })
      seen.isOwn = span === trace.span
      seen.root = trace.withSpan('root', { root: true }, (span) => span.spanContext().traceId) !== trace.traceId
      seen.api = app.lightTrace.tracer.startSpan('own id').spanContext().spanId !== trace.spanId
      return {}
    })
  })
  await app.inject('/')
  t.same(seen, { sent: 1, sync: boom, async: boom, value: 7, isActive: true, isOwn: true, root: true, api: true })
  t.match(app.lightTrace.stats().spans, { started: 9, ended: 9, unsampled: 9, accepted: 0 })
})

function thrownBy (fn) {
  try {
    return fn()
  } catch (error) {
    return error
  }
}

function contextOf (traceId, flags = 0) {
  const word = (i) => parseInt(traceId.slice(i * 8, i * 8 + 8), 16) | 0
  return { t0: word(0), t1: word(1), t2: word(2), t3: word(3), flags }
}
