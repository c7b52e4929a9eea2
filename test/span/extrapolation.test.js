'use strict'

// 100,000 requests (a fifth of that without LIGHT_TRACE_LONG=1), sampled at 5 %, of which 2 % fail and 1 % are slow. The numbers that a
// backend estimates from the exported thresholds match the real ones. The estimate is computed from the sent bytes, by an implementation
// that shares no code with ours. The test controls the clock, so a slow request takes no time and a busy machine makes no request slow. The
// ids come from a seeded generator, so each run samples the same requests.

const crypto = require('node:crypto')
const { performance } = require('node:perf_hooks')
let now = performance.now()
performance.now = () => now
crypto.randomFillSync = fillFromSeed

const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { startSink } = require('../support/otlp-sink')
const { extrapolate } = require('../support/extrapolation')
const { without } = require('../support/features')

const REQUESTS = process.env.LIGHT_TRACE_LONG === '1' ? 100_000 : 20_000
const DEVIATIONS = 4
const STEPS = 3 // per request

for (const keep of [{ errors: true, slow: true }, undefined]) {
  test(`the estimates for ${REQUESTS} requests are right, ${keep === undefined ? 'without keep' : 'with keep'}`, { timeout: 300_000, skip: keep !== undefined && without('keep') }, async (t) => {
    const sink = await startSink(t)
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(lightTrace, { sampler: 0.05, keep, slow: { afterMs: 500 }, exporter: { url: sink.url }, registerGlobals: false })
    app.get('/:kind', async (request, reply) => {
      for (let i = 0; i < STEPS; i++) request.trace.withSpan(`step of ${request.params.kind}`, () => {})
      now += request.params.kind === 'slow' ? 900 : 3
      if (request.params.kind === 'fails') reply.code(500)
      return ''
    })
    const happened = { ok: 0, fails: 0, slow: 0 }
    for (let i = 0; i < REQUESTS; i++) {
      const kind = i % 50 === 0 ? 'fails' : i % 100 === 1 ? 'slow' : 'ok'
      happened[kind]++
      await app.inject(`/${kind}`)
    }
    await app.lightTrace.flush({ timeoutMs: 20_000 })
    await sink.waitFor(({ spans }) => spans.length >= app.lightTrace.stats().spans.accepted)

    const isFailed = ({ status }) => status.code === 'ERROR'
    const isSlow = ({ start, end }) => end - start >= 500_000_000n
    const requests = sink.spans.filter(({ kind }) => kind === 'SERVER')
    comesOut(t, 'all', requests, REQUESTS)
    const steps = (kind) => sink.spans.filter(({ name }) => name === `step of ${kind}`)
    // The steps of a request are sampled together, so their sum varies like the number of requests.
    comesOut(t, 'steps', steps('ok'), happened.ok * STEPS, Math.sqrt(STEPS))
    comesOut(t, 'all others', requests.filter((span) => !isFailed(span) && !isSlow(span)), happened.ok)
    for (const [name, isOne, count, kind] of [['failed', isFailed, happened.fails, 'fails'], ['slow', isSlow, happened.slow, 'slow']]) {
      const spans = requests.filter(isOne)
      comesOut(t, name, spans, count)
      if (keep === undefined) continue
      t.equal(extrapolate(spans).count, count, `${name}: exact, because each is there`)
      t.equal(extrapolate(steps(kind)).count, count * STEPS, `steps of ${name}: exact`)
    }
  })
}

function comesOut (t, name, spans, happened, scatter = 1) {
  const { count, deviation } = extrapolate(spans)
  const text = `${name}: ${happened} happened, ${spans.length} spans say ${Math.round(count)} ± ${Math.round(deviation)}`
  t.ok(Math.abs(count - happened) <= DEVIATIONS * deviation * scatter, text)
}

let seed = 20261123

/** Fills words from an offset on with Marsaglia's xorshift32. */
function fillFromSeed (words, offset = 0) {
  for (let i = offset; i < words.length; i++) {
    seed ^= seed << 13
    seed ^= seed >>> 17
    seed ^= seed << 5
    words[i] = seed
  }
  return words
}
