'use strict'

// backPressure: an overloaded collector makes the sampler take fewer new traces, and what stays says so.

const { test } = require('tap')
const crypto = require('node:crypto')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { BackPressure, samplerOf, DROP, RECORD_AND_SAMPLE } = require('../../lib/sampling/sampler')
const { OtlpHttp } = require('../../lib/export/http/otlp-http')
const { thresholdOf } = require('../../lib/context/tracestate')
const { startFakeCollector } = require('../support/fake-collector')

const silent = { warn () {}, recovered () {} }
const refused = { isOverload: true, disposition: 'retry' }
const delivered = { isOverload: false, disposition: 'delivered' }

function pressureAt (level) {
  return Object.assign(new BackPressure(silent), { level })
}

function randomTrace (tracestate = '') {
  const [t0, t1, t2, t3] = crypto.getRandomValues(new Int32Array(4))
  return { t0, t1, t2, t3, flags: 0, tracestate }
}

test('three refusals are a step down, ten seconds apart at least; half a minute of deliveries is a step up', (t) => {
  const pressure = new BackPressure(silent)
  const refuse = (now, times = 1) => {
    for (let i = 0; i < times; i++) pressure.answered(refused, now)
    return pressure.level
  }
  t.equal(refuse(0, 2), 0)
  t.equal(refuse(300_000), 1, 'however long the collector asked to wait between them')
  t.equal(refuse(300_001, 9), 1)
  t.equal(refuse(310_000), 2)
  for (let now = 320_000; now <= 420_000; now += 10_000) refuse(now, 3)
  t.equal(pressure.level, 6)
  t.equal(pressure.ratio, 1 / 64)
  const deliver = (now) => {
    pressure.answered(delivered, now)
    return pressure.level
  }
  t.equal(deliver(450_000), 6)
  t.equal(deliver(479_999), 6)
  t.equal(deliver(480_000), 5)
  t.equal(deliver(509_999), 5)
  t.equal(refuse(510_000), 5)
  t.equal(deliver(520_000), 5)
  t.equal(deliver(549_999), 5)
  for (let now = 550_000; now <= 670_000; now += 30_000) deliver(now)
  t.equal(pressure.level, 0)
  t.equal(refuse(680_000, 2), 0, 'what was counted before is forgotten')
  t.end()
})

test('one refusal among many deliveries is none too many; one in two is', (t) => {
  const rare = new BackPressure(silent)
  for (let now = 0; now < 3_600_000; now += 1000) rare.answered(now % 29_000 === 0 ? refused : delivered, now)
  t.equal(rare.level, 0)
  const often = new BackPressure(silent)
  for (let now = 0; now < 60_000; now += 1000) often.answered(now % 2000 === 0 ? refused : delivered, now)
  t.ok(often.level > 2)
  t.end()
})

test('a collector that asks for pauses of a minute, and refuses again after each, is overloaded', (t) => {
  const pressure = new BackPressure(silent)
  for (let now = 0; now < 1_800_000; now += 60_000) {
    pressure.answered(refused, now)
    pressure.answered(delivered, now + 59_000)
  }
  t.equal(pressure.level, 6)
  t.end()
})

for (const [what, answer, isOverload] of [['503 with Retry-After', { status: 503, headers: { 'retry-after': '1' } }, true], ['503', { status: 503 }, false], ['502 with Retry-After', { status: 502, headers: { 'retry-after': '1' } }, false], ['429', { status: 429 }, true]]) {
  test(`${what} ${isOverload ? 'is' : 'is not'} an overload`, async (t) => {
    const collector = await startFakeCollector(t)
    collector.script = [answer]
    const http = new OtlpHttp({ url: collector.url, headers: {}, timeoutMs: 5000 }, (fn) => fn())
    const outcome = await new Promise((resolve) => http.post([Buffer.from('')], '', resolve))
    t.equal(outcome.isOverload, isOverload)
    http.close()
  })
}

const OPTIONS = {
  always_on: { kind: 'always_on', parentBased: true },
  'a ratio': { kind: 'ratio', ratio: 0.3, parentBased: true },
  'a small ratio': { kind: 'ratio', ratio: 0.1, parentBased: true },
  'a rate': { kind: 'per_second', perSecond: 500, parentBased: true }
}

for (const [name, option] of Object.entries(OPTIONS)) {
  test(`sums over the spans of ${name} under pressure are right, and each has a reason to be there`, (t) => {
    const traces = 20_000
    for (const level of [1, 3, 6]) {
      const sampler = samplerOf(option, null, pressureAt(level))
      let sum = 0
      let variance = 0
      let isConsistent = true
      for (let i = 0; i < traces; i++) {
        const trace = randomTrace()
        if (sampler.decide(trace, false, i / 10, undefined) === DROP) {
          isConsistent &&= trace.tracestate === ''
          continue
        }
        const threshold = Number(`0x${thresholdOf(trace.tracestate).padEnd(14, '0')}`) / 2 ** 56
        const random = ((trace.t2 & 0xffffff) * 2 ** 32 + (trace.t3 >>> 0)) / 2 ** 56
        isConsistent &&= random >= threshold && threshold >= 1 - 2 ** -level
        const count = 1 / (1 - threshold)
        sum += count
        variance += count * (count - 1)
      }
      t.ok(isConsistent, `level ${level}`)
      t.ok(Math.abs(sum - traces) < 5 * Math.sqrt(variance), `level ${level}: ${sum} of ${traces}, standard error ${Math.sqrt(variance)}`)
    }
    t.end()
  })
}

test('what a caller has decided stays, unless the sampler decides anew, by the caller\'s randomness', (t) => {
  const follows = samplerOf(OPTIONS.always_on, null, pressureAt(6))
  const sampled = { ...randomTrace('ot=th:8'), flags: 1 }
  t.equal(follows.decide(sampled, true, 0), RECORD_AND_SAMPLE)
  t.equal(sampled.tracestate, 'ot=th:8')
  const anew = samplerOf({ kind: 'always_on', parentBased: false }, null, pressureAt(1))
  for (const [rv, decision, tracestate] of [['7fffffffffffff', DROP, 'ot=rv:7fffffffffffff,a=1'], ['80000000000000', RECORD_AND_SAMPLE, 'ot=th:8;rv:80000000000000,a=1']]) {
    const trace = { ...randomTrace(`ot=th:0;rv:${rv},a=1`), flags: 1 }
    t.equal(anew.decide(trace, true, 0), decision)
    t.equal(trace.tracestate, tracestate)
  }
  t.end()
})

test('a collector that answers 429 gets half of the traces, whose sum is that of the requests, and the log and stats say it', async (t) => {
  const collector = await startFakeCollector(t, { keepSpans: true })
  collector.script = (_, number) => ({ status: number < 3 ? 429 : 200 })
  const lines = []
  const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: collector.url }, registerGlobals: false, backPressure: true, keep: true })
  app.get('/', async () => 'ok')
  app.get('/failing', async () => { throw new Error('x') })
  app.get('/own', { config: { trace: { sampler: 'always_on' } } }, async () => 'ok')
  await app.inject('/')
  t.same(app.lightTrace.stats().backPressure, { ratio: 1 })
  await collector.untilRequests(4)
  await app.lightTrace.flush()
  t.same(app.lightTrace.stats().backPressure, { ratio: 0.5 })
  const before = collector.spans.length
  const requests = 1000
  for (let i = 0; i < requests; i++) await app.inject(i % 2 === 0 ? '/' : '/own')
  await app.lightTrace.flush()
  const spans = collector.spans.slice(before)
  t.ok(spans.every(({ traceState }) => traceState === 'ot=th:8'))
  t.ok(Math.abs(2 * spans.length - requests) < 5 * Math.sqrt(2 * requests), `${spans.length} of ${requests}`)
  const overload = lines.filter(({ msg }) => msg.includes('overloaded'))
  t.match(overload, [{ code: 'LT_WARN_LOSS', msg: /one of 2 new traces is sampled/ }])
  for (let i = 0; i < 20; i++) await app.inject('/failing')
  await app.lightTrace.flush()
  t.equal(collector.spans.length - before - spans.length, 20, 'keep keeps what failed')
  t.ok(collector.spans.slice(-20).every(({ traceState }) => traceState === 'ot=th:0'))
})

test('where spans do not go to a collector, or a Sampler of the SDK decides, it has no effect and says so', async (t) => {
  for (const options of [{ exporter: 'none' }, { sampler: { shouldSample: () => ({ decision: 0 }) } }]) {
    const lines = []
    const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
    await app.register(lightTrace, { ...options, registerGlobals: false, backPressure: true })
    await app.ready()
    t.match(lines, [{ code: 'LT_WARN_BACK_PRESSURE' }])
    await app.close()
  }
})
