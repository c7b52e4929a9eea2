'use strict'

// Among many unsampled requests, a few culprits hold a lock that others wait for. None of them fails. With LIGHT_TRACE_LONG=1 there are 20
// culprits among 100,000 requests, else 4 among 2,000. A snapshot has the culprit, all requests that waited for it, and the child spans of
// both.
// Feature: keep

const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { signal } = require('../support/raw-client')
const { startSink } = require('../support/otlp-sink')

const IS_LONG = process.env.LIGHT_TRACE_LONG === '1'
const CULPRITS = IS_LONG ? 20 : 4
const REQUESTS = IS_LONG ? 5000 : 500 // per culprit
const VICTIMS = 10
const STEPS = 100 // of a failed request, more than a sampled one may have

// M13
test(`a snapshot has ${CULPRITS} culprits among ${CULPRITS * REQUESTS} requests, and the requests that waited for them`, { timeout: 300_000 }, async (t) => {
  const sink = await startSink(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { sampler: 0, keep: { errors: true, recorder: true }, exporter: { url: sink.url }, registerGlobals: false, slow: false })
  let lock = Promise.resolve()
  let held, allWait, release
  let waiting = 0
  app.get('/usual', async () => '')
  app.get('/culprit/:round', async (request) => {
    lock = request.trace.withSpan('holds the lock', () => new Promise((resolve) => { release = resolve }))
    held.give()
    await lock
    return ''
  })
  app.get('/victim/:round', async (request) => {
    await request.trace.withSpan('waits', () => {
      if (++waiting % VICTIMS === 0) allWait.give()
      return lock
    })
    return ''
  })
  app.get('/fails/:round', async (request, reply) => {
    for (let i = 0; i < STEPS; i++) request.trace.withSpan('step', () => {})
    return reply.code(500).send('')
  })
  for (let round = 0; round < CULPRITS; round++) {
    for (let i = 0; i < REQUESTS; i++) await app.inject('/usual')
    held = signal()
    allWait = signal()
    const culprit = app.inject(`/culprit/${round}`)
    await held.promise
    const victims = Array.from({ length: VICTIMS }, () => app.inject(`/victim/${round}`))
    const failed = app.inject(`/fails/${round}`)
    await allWait.promise
    const snapshot = app.lightTrace.snapshot({ seconds: 1, reason: `round ${round}` }) // while all of them are running
    release()
    await Promise.all([culprit, failed, ...victims])
    t.equal((await snapshot).missed, 0)
    await app.lightTrace.flush()
  }
  const { accepted, recorded, unsampled, ended, started, delivered } = app.lightTrace.stats().spans
  const spans = await sink.waitFor(accepted)
  t.same([ended, started, delivered], [accepted + recorded + unsampled, ended, accepted])
  t.equal(new Set(spans.map(({ spanId }) => spanId)).size, spans.length, 'each span once')
  const byTrace = new Map()
  for (const span of spans) byTrace.set(span.traceId, [...byTrace.get(span.traceId) ?? [], span.name])
  const tracesTo = (path) => spans.filter(({ attributes }) => attributes['url.path'] === path).map(({ traceId }) => byTrace.get(traceId).sort())
  for (let round = 0; round < CULPRITS; round++) {
    t.same(tracesTo(`/culprit/${round}`), [['GET /culprit/:round', 'holds the lock']], `the culprit of round ${round}`)
    t.same(tracesTo(`/victim/${round}`), Array(VICTIMS).fill(['GET /victim/:round', 'waits']), 'and its victims')
    t.same(tracesTo(`/fails/${round}`), [['GET /fails/:round', ...Array(STEPS).fill('step')]], 'and each request that failed meanwhile, with all its steps')
  }
})
