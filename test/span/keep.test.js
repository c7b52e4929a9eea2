'use strict'

// How many requests `keep` exports, which ones, and which thresholds they have.

const { test } = require('tap')
const { Keep } = require('../../lib/features/keep/keep')
const { Stats } = require('../../lib/export/pipeline')
const { GOOD, FAILED, LEFT } = require('../../lib/span/outcome')
const { extrapolate, probabilityOf } = require('../support/extrapolation')
const { startSink } = require('../support/otlp-sink')
const { randomFrom } = require('../support/random')
const { tracedApp } = require('../support/traced-app')
const { connect, signal } = require('../support/raw-client')

const TWO_24 = 2 ** 24

for (const ratio of [0, 0.01, 0.5]) {
  test(`of a flood of failures, sampled at ${ratio}, about the rate is kept, and the estimate is right`, async (t) => {
    const { keep, stats, lines } = keeper({ maxPerSecond: 100 })
    const random = randomFrom(7)
    const [busy, rare] = [{}, {}]
    const exported = []
    const times = []
    const came = { rare: 0, all: 0 }
    for (let now = 0; now < 60_000; now += 0.5) {
      const isRare = now % 500 === 0
      const bits = Math.floor(random() * TWO_24)
      const isSampled = bits >= Math.round((1 - ratio) * TWO_24)
      const tracestate = isSampled ? `ot=th:${Math.round((1 - ratio) * TWO_24).toString(16).replace(/0+$/, '')}` : ''
      came.all++
      if (isRare) came.rare++
      const traceState = keep.take({ tracestate, t2: bits, route: isRare ? rare : busy, flags: isSampled ? 1 : 0 }, 1e6 + now)
      if (traceState === null) continue
      if (!isSampled) times.push(now)
      exported.push({ traceState, isRare })
      const threshold = Math.round((1 - probabilityOf(traceState)) * TWO_24)
      if (bits < threshold) t.fail(`${bits} is below the threshold ${threshold}`)
    }
    const { count, deviation } = extrapolate(exported)
    t.ok(Math.abs(count - came.all) < 3 * deviation, `${came.all} came, ${Math.round(count)} are estimated, ± ${Math.round(deviation)}`)
    t.equal(extrapolate(exported.filter(({ isRare }) => isRare)).count, came.rare, 'a rare route is kept completely')
    for (let from = 0; from < 50_000; from += 100) {
      const inTen = times.filter((time) => time >= from && time < from + 10_000).length
      if (inTen > 1100) t.fail(`${inTen} in ten seconds`)
    }
    t.equal(stats.notKept, came.all - exported.length)
    t.same(lines, ['LT_WARN_KEEP_LIMIT'])
  })
}

test('a healthy service keeps all its failures, and each represents only itself', async (t) => {
  const { keep, stats } = keeper({ maxPerSecond: 100 })
  const random = randomFrom(3)
  for (let now = 0; now < 60_000; now += 25) {
    const span = { tracestate: '', t2: Math.floor(random() * TWO_24), route: {}, flags: 0 }
    if (keep.take(span, now) !== 'ot=th:0') t.fail(`at ${now} ms`)
  }
  t.equal(stats.notKept, 0)
})

test('callers who choose their ids cannot exceed the rate', async (t) => {
  const { keep } = keeper({ maxPerSecond: 10 })
  const route = {}
  let kept = 0
  for (let now = 0; now < 60_000; now += 1) {
    if (keep.take({ tracestate: now % 2 === 0 ? '' : 'ot=rv:ffffffffffffff', t2: -1, route, flags: 0 }, now) !== null) kept++
  }
  t.ok(kept <= 60 * 10 + 50, `${kept} in a minute`)
})

test('a request whose client leaves is kept only if configured', async (t) => {
  for (const [keep, kept] of [[{ errors: true }, []], [true, []], [{ errors: true, aborted: true }, ['aborted']], [{ aborted: true }, ['aborted']]]) {
    const [running, ended] = [signal(), signal()]
    const { app, collector, port } = await tracedApp(t, {
      trace: { sampler: 'always_off', keep, onEnd: () => ended.give() },
      routes: (app) => app.get('/slow', () => { running.give(); return new Promise(() => {}) })
    })
    const client = (await connect(port)).request('GET', '/slow')
    await running.promise
    await client.leave()
    await ended.promise
    await new Promise((resolve) => setImmediate(resolve))
    t.same((await collector.spans()).map(({ attributes }) => attributes['error.type']), kept, JSON.stringify(keep))
    t.equal(app.lightTrace.stats().spans.notKept, 0)
  }
})

test('a server that always fails exports up to the rate, counts the rest and logs it once', async (t) => {
  const sink = await startSink(t)
  const lines = []
  const { app } = await tracedApp(t, {
    listen: false,
    fastify: { logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } },
    trace: { sampler: 'always_off', keep: { errors: true, maxPerSecond: 5 }, spanProcessors: undefined, exporter: { url: sink.url } },
    routes: (app) => app.get('/', async (request, reply) => {
      await request.trace.withSpan('child', async () => {})
      return reply.code(500).send('')
    })
  })
  for (let i = 0; i < 300; i++) await app.inject('/')
  await app.lightTrace.flush()
  const servers = sink.spans.filter(({ kind }) => kind === 'SERVER')
  const { notKept, accepted, unsampled, ended } = app.lightTrace.stats().spans
  t.ok(servers.length >= 5 && servers.length < 100, `${servers.length} of 300`)
  t.equal(sink.spans.length, servers.length * 2, 'with their children')
  t.same([servers.length + notKept, accepted, ended], [300, sink.spans.length, accepted + unsampled])
  t.equal(servers[0].traceState, 'ot=th:0')
  t.ok(servers.some(({ traceState }) => probabilityOf(traceState) < 1), 'some represent others')
  t.equal(lines.filter(({ code }) => code === 'LT_WARN_KEEP_LIMIT').length, 1)
})

test('maxPerSecond: Infinity keeps all, 0 keeps none', async (t) => {
  for (const [maxPerSecond, kept] of [[Infinity, 300], [0, 0]]) {
    const { app, collector } = await tracedApp(t, {
      listen: false,
      trace: { sampler: 'always_off', keep: { errors: true, maxPerSecond } },
      routes: (app) => app.get('/', async (request, reply) => reply.code(500).send(''))
    })
    for (let i = 0; i < 300; i++) await app.inject('/')
    t.equal((await collector.spans()).length, kept)
  }
})

test('request.trace.keep() exports the request completely, with the reason', async (t) => {
  for (const keep of [{ asked: true }, { errors: true }]) {
    const { app, collector } = await tracedApp(t, {
      listen: false,
      trace: { sampler: 'always_off', keep },
      routes: (app) => app.get('/', async (request) => {
        request.trace.withSpan('step', () => {})
        if (request.query.why === undefined) return ''
        const { keep } = request.trace
        t.equal(keep(request.query.why === '' ? undefined : request.query.why), undefined)
        return ''
      })
    })
    for (const url of ['/', '/?why=big+order', '/?why=', `/?why=${'x'.repeat(100)}`]) await app.inject(url)
    const spans = await collector.spans()
    t.same(spans.map(({ name, attributes, traceState }) => [name, attributes['light_trace.kept'], traceState]), ['big order', 'application', 'x'.repeat(64)]
      .flatMap((why) => [['GET /', why, 'ot=th:0'], ['step', why, 'ot=th:0']]))
  }
})

test('request.trace.keep() does nothing without the option, outside of a request, with an invalid reason, or too late', async (t) => {
  let late
  const routes = (app) => app.get('/', async (request) => {
    late = request.trace
    for (const reason of [Symbol('no'), {}, 1, null, 'yes']) if (request.query.ask) request.trace.keep(reason)
    return ''
  })
  for (const trace of [{ sampler: 'always_off' }, { sampler: 'always_off', metrics: { exporter: 'none' } }, { sampler: 'always_off', keep: { errors: true } }]) {
    const { app, collector } = await tracedApp(t, { listen: false, trace, routes })
    await app.inject('/')
    late.keep('late')
    if (trace.keep === undefined) await app.inject('/?ask=1')
    t.same(await collector.spans(), [])
  }
})

test('a failed request is kept as error, a long one as slow, and a client that left has its own option', async (t) => {
  const { keep } = keeper({ errors: true, slow: true })
  t.equal(keep.reasonFor(FAILED, 1, 100), 'error')
  t.equal(keep.reasonFor(LEFT, 100, 100), 'slow', 'a slow one is kept even if its client left')
  t.equal(keep.reasonFor(LEFT, 99, 100), '')
  t.equal(keep.reasonFor(GOOD, 99, 100), '')
  t.equal(keeper({ errors: true }).keep.reasonFor(GOOD, 100, 100), '')
})

test('with `slow: false` no request is slow, which is logged, except on routes with their own limit', async (t) => {
  const lines = []
  const { app, collector } = await tracedApp(t, {
    listen: false,
    fastify: { logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } },
    trace: { sampler: 'always_off', keep: { slow: true }, slow: false },
    routes (app) {
      app.get('/', async () => 'ok')
      app.get('/own', { config: { trace: { slow: { afterMs: 0 } } } }, async () => 'ok')
    }
  })
  for (const url of ['/', '/own']) await app.inject(url)
  t.same((await collector.spans()).map(({ name, attributes }) => [name, attributes['light_trace.kept']]), [['GET /own', 'slow']])
  t.match(lines, [{ code: 'LT_WARN_OPTION_MEANING', msg: /keep\.slow/ }])
})

function keeper (settings) {
  const stats = new Stats()
  const lines = []
  const report = { warn: (code) => { if (!lines.includes(code)) lines.push(code) } }
  return { keep: new Keep({ errors: true, aborted: false, slow: false, maxPerSecond: 100, ...settings }, stats, report), stats, lines }
}
