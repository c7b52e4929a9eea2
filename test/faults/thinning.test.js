'use strict'

// A buffer that is full is thinned: what a collector gets after an outage of twenty times the buffer's length is a true sample of
// all of it. The trace ids are the callers', and the same in each run; how far each chunk is thinned depends on when it was
// compressed, so sums are compared with the error of a sample. Five standard errors: three would be missed once in 370 times.

const { test } = require('tap')
const crypto = require('node:crypto')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { extrapolate } = require('../support/extrapolation')
const { freePort } = require('../../scripts/free-port')
const { runInChild } = require('../support/child')
const { CollectorProcess } = require('../support/collector-process')
const { startFakeCollector } = require('../support/fake-collector')

const ERRORS_MAX = 5

const thresholdOf = ({ traceState }) => parseInt((/\bth:([0-9a-f]+)/.exec(traceState)?.[1] ?? '0').padEnd(14, '0').slice(0, 12), 16) / 2 ** 48
const randomOf = ({ traceId }) => parseInt(traceId.slice(18, 30), 16) / 2 ** 48

/** Trace ids by number: the same in each run, and as good as random. */
function idOf (number) {
  return crypto.createHash('sha256').update(String(number)).digest('hex').slice(0, 32)
}

async function appWithout (t, { trace = {}, routes = shop } = {}) {
  const collector = await startFakeCollector(t, { keepSpans: true })
  await collector.down()
  const lines = []
  const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: collector.url }, registerGlobals: false, slow: false, closeTimeoutMs: 100, ...trace, buffer: { maxBytes: 256 * 1024, flushDelayMs: 50, ...trace.buffer } })
  routes(app)
  await app.ready()
  return { app, collector, lines }
}

function shop (app) {
  app.get('/cart', async (request) => {
    request.trace.withSpan('price', () => {})
    return 'cart'
  })
  app.get('/items/:id', async () => 'item')
  app.get('/fail', async () => { throw new Error('out of stock') })
}

function ask (app, url, number, headers = {}) {
  return app.inject({ url, headers: { traceparent: `00-${idOf(number)}-00f067aa0ba902b7-03`, ...headers } })
}

/** Requests until the spans of `times` buffers were written: where every tenth of them fails, some 1,100 a buffer. */
async function serve (app, requests, urlOf, { pauseAfterFirst = () => {} } = {}) {
  const asked = new Map()
  for (let i = 0; i < requests; i++) {
    const url = urlOf(i)
    await ask(app, url, i)
    asked.set(url, (asked.get(url) ?? 0) + 1)
    if (i === 0) await pauseAfterFirst()
    if (i % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  }
  return asked
}

async function comeBack (app, collector) {
  await collector.up()
  const { spans } = app.lightTrace.stats()
  await collector.until(() => {
    app.lightTrace.flush()
    const { queued, inFlight } = app.lightTrace.stats().spans
    return queued + inFlight === 0
  })
  return spans
}

function identity ({ spans }) {
  const dropped = Object.values(spans.dropped).reduce((sum, count) => sum + count, 0)
  return spans.accepted - spans.delivered - spans.rejected - spans.thinned - dropped - spans.queued - spans.inFlight
}

/** Compares a sum over the thresholds with what was there, in standard errors of such a sum. */
function isTrueSum (t, spans, truth, what) {
  const { count, deviation } = extrapolate(spans)
  t.ok(Math.abs(count - truth) <= ERRORS_MAX * deviation, `${what}: ${Math.round(count)} of ${truth} by ${spans.length} spans, standard error ${Math.round(deviation)}`)
}

// T36
test('after an outage of twenty buffers a sum over the spans is right for each route and each part of the outage', async (t) => {
  const { app, collector, lines } = await appWithout(t)
  const requests = 10_000
  const truth = new Map()
  await serve(app, requests, (i) => {
    const url = i % 40 === 0 ? '/fail' : i % 3 === 0 ? `/items/${Math.floor(i / (requests / 4))}` : '/cart'
    const key = `${url.startsWith('/items') ? '/items/:id' : url} ${Math.floor(i / (requests / 4))}`
    truth.set(key, (truth.get(key) ?? 0) + 1)
    return url
  })
  await comeBack(app, collector)
  t.equal(identity(app.lightTrace.stats()), 0)
  const { thinned, dropped, delivered } = app.lightTrace.stats().spans
  t.same(dropped, {})
  t.equal(collector.delivered.size, delivered)
  t.ok(thinned > 5 * delivered, `${thinned} spans gave way to ${delivered}`)
  const numbers = new Map(Array.from({ length: requests }, (_, i) => [idOf(i), i]))
  for (const [key, count] of truth) {
    const [route, part] = key.split(' ')
    const spans = collector.spans.filter(({ name, traceId }) => name === `GET ${route}` && Math.floor(numbers.get(traceId) / (requests / 4)) === Number(part))
    isTrueSum(t, spans, count, key)
  }
  // Whole traces: a step is there where its request is.
  const carts = new Set(collector.spans.filter(({ name }) => name === 'GET /cart').map(({ traceId }) => traceId))
  const steps = collector.spans.filter(({ name }) => name === 'price')
  isTrueSum(t, steps, truth.get('/cart 0') + truth.get('/cart 1') + truth.get('/cart 2') + truth.get('/cart 3'), 'steps')
  t.ok(steps.filter(({ traceId }) => carts.has(traceId)).length > 0.9 * steps.length)
  t.ok(collector.spans.every((span) => randomOf(span) >= thresholdOf(span) - 1e-9), 'each trace has the randomness that its threshold asks for')
  t.match(lines.filter(({ msg }) => /thinned/.test(msg)), [{ code: 'LT_WARN_LOSS', msg: /^the buffer is full: \d+ spans thinned out, whole traces; the others say in their trace state for how many they stand, up to \d+ times as many as before$/ }])
  // What is thinned in the background as the collector returns may be counted in a line of its own.
  t.match(lines.find(({ code }) => code === 'LT_WARN_RECOVERED'), { msg: /; [1-9]\d* spans lost/ })
})

test('failed requests go last, whole, and stand for themselves, also one that the first flush has put into a chunk of its own', async (t) => {
  const { app, collector } = await appWithout(t)
  const urlOf = (i) => i % 200 === 0 ? '/fail' : '/cart'
  const asked = await serve(app, 2000, urlOf, { pauseAfterFirst: () => collector.until(() => app.lightTrace.stats().exports.failed > 0) })
  await comeBack(app, collector)
  const failed = collector.spans.filter(({ name }) => name === 'GET /fail')
  t.equal(failed.length, asked.get('/fail'))
  t.ok(failed.every(({ traceState }) => traceState === ''))
  isTrueSum(t, collector.spans.filter(({ name }) => name === 'GET /cart'), asked.get('/cart'), '/cart')
})

// T37
test('a flood of failures is thinned too: the budget holds, and the others are still there', async (t) => {
  const { app, collector } = await appWithout(t)
  const asked = await serve(app, 3000, (i) => i % 20 === 0 ? '/cart' : '/fail')
  t.ok(app.lightTrace.stats().buffer.bytes <= 256 * 1024)
  await comeBack(app, collector)
  t.same(app.lightTrace.stats().spans.dropped, {})
  isTrueSum(t, collector.spans.filter(({ name }) => name === 'GET /fail'), asked.get('/fail'), '/fail')
  isTrueSum(t, collector.spans.filter(({ name }) => name === 'GET /cart'), asked.get('/cart'), '/cart')
})

test('slow requests that `keep` exports come out too, whether or not the sampler had taken them', async (t) => {
  const { app, collector } = await appWithout(t, { trace: { sampler: 0.5, trustIncoming: false, keep: { asked: true, maxPerSecond: Infinity } }, routes: (app) => app.get('/', async ({ trace }) => trace.keep('asked for')) })
  for (let i = 0; i < 3000; i++) {
    await app.inject('/')
    if (i % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await comeBack(app, collector)
  t.ok(app.lightTrace.stats().spans.thinned > 500)
  isTrueSum(t, collector.spans, 3000, 'kept')
})

// T37
test('one span a batch, spans of megabytes, and ids that always stay: little is done at once, and the budget holds', async (t) => {
  process.env.OTEL_BSP_MAX_EXPORT_BATCH_SIZE = '1'
  t.teardown(() => { delete process.env.OTEL_BSP_MAX_EXPORT_BATCH_SIZE })
  const { app, collector } = await appWithout(t, {
    trace: { buffer: { maxBytes: 4 * 1024 * 1024 }, limits: { attributeValueLength: 2 ** 21 } },
    routes: (app) => {
      shop(app)
      app.get('/long', async ({ trace }) => { trace.span.setAttribute('long', 'x'.repeat(1.5 * 1024 * 1024)) })
    }
  })
  let [most, asked] = [0, 0]
  for (let i = 0; i < 8000; i++) {
    const url = i % 200 === 199 ? '/long' : '/items/1'
    if (url !== '/long') asked++
    await ask(app, url, i)
    most = Math.max(most, app.lightTrace.stats().buffer.bytes)
  }
  t.ok(most <= 4 * 1024 * 1024, `${most} bytes`)
  await comeBack(app, collector)
  t.equal(identity(app.lightTrace.stats()), 0)
  isTrueSum(t, collector.spans.filter(({ name }) => name === 'GET /items/:id'), asked, '/items')
  t.ok(app.lightTrace.stats().spans.dropped.queue_full <= 40, 'the long ones')
})

// T36
test('two applications whose collector is killed, a process of its own: each has its sums when it is back', { timeout: 120_000 }, async (t) => {
  const collector = new CollectorProcess(t)
  await collector.up({ saysSpans: true })
  const apps = await Promise.all(['orders', 'stock'].map(async (serviceName) => {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(lightTrace, { serviceName, exporter: { url: collector.url }, registerGlobals: false, slow: false, closeTimeoutMs: 100, buffer: { maxBytes: 128 * 1024, flushDelayMs: 50 } })
    shop(app)
    await app.ready()
    return app
  }))
  const requests = 3000
  for (let i = 0; i < requests; i++) {
    if (i === 300) await collector.kill() // at once, whatever it is at
    for (const app of apps) await ask(app, i % 3 === 0 ? '/items/1' : '/cart', i)
    if (i % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await collector.up({ saysSpans: true })
  for (const app of apps) {
    do await app.lightTrace.flush()
    while (app.lightTrace.stats().spans.queued + app.lightTrace.stats().spans.inFlight > 0)
  }
  await collector.heard()
  for (const [i, service] of ['orders', 'stock'].entries()) {
    const stats = apps[i].lightTrace.stats()
    t.equal(identity(stats), 0)
    t.same(stats.spans.dropped, {})
    t.ok(stats.spans.thinned > requests / 2, `${stats.spans.thinned} gave way`)
    // What was taken and not acknowledged came twice, the second time perhaps with another threshold.
    const byId = new Map(collector.spans.map((span) => [span.spanId, span]))
    const spans = [...byId.values()].filter((span) => span.service === service)
    isTrueSum(t, spans.filter(({ name }) => name === 'GET /items/:id'), requests / 3, `${service} /items/:id`)
    isTrueSum(t, spans.filter(({ name }) => name === 'GET /cart'), requests * 2 / 3, `${service} /cart`)
    isTrueSum(t, spans.filter(({ name }) => name === 'price'), requests * 2 / 3, `${service} price`)
  }
})

// T36
test('SIGTERM while a full buffer is being thinned: the process ends in time, and all is counted', { skip: process.platform === 'win32' && 'Windows ends a process without a signal' }, async (t) => {
  const port = await freePort()
  const child = runInChild(t, async ({ Fastify, lightTrace, say }, port) => {
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url: `http://127.0.0.1:${port}/v1/traces` }, closeTimeoutMs: 500, buffer: { maxBytes: 64 * 1024 } })
    app.get('/', async () => '')
    const closing = new AbortController()
    process.once('SIGTERM', async () => {
      const { lightTrace } = app
      closing.abort()
      await app.close()
      say(lightTrace.stats().spans)
      process.exit()
    })
    for (let i = 0; !closing.signal.aborted; i++) {
      await app.inject('/')
      if (i === 2000) say('full')
      if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }, { args: [port] })
  t.equal(await child.said(), 'full')
  child.kill('SIGTERM')
  const spans = await child.said()
  t.ok(spans.thinned > 1000, `${spans.thinned} gave way`)
  t.ok(spans.dropped.shutdown_deadline > 0)
  t.equal(identity({ spans }), 0)
  t.equal((await child.exit).code, 0)
})

test('two services that lost their collectors keep the same traces', async (t) => {
  const back = await appWithout(t, { trace: { buffer: { maxBytes: 128 * 1024 } } })
  const front = await appWithout(t, {
    routes: (app) => app.get('/', async (request) => (await back.app.inject({ url: '/cart', headers: { traceparent: request.trace.traceparent } })).body)
  })
  await serve(front.app, 2500, () => '/')
  await comeBack(back.app, back.collector)
  await comeBack(front.app, front.collector)
  const inFront = front.collector.spans
  const inBack = back.collector.spans.filter(({ name }) => name === 'GET /cart')
  // A chunk may have gone through a level of which no span of it is left to say so: two levels above are beyond all.
  const highest = 1 - (1 - Math.max(...[...inFront, ...inBack].map(thresholdOf))) / 4
  const whole = (spans) => spans.filter((span) => randomOf(span) >= highest).map(({ traceId }) => traceId).sort()
  t.ok(whole(inFront).length > 10, `${whole(inFront).length} traces`)
  t.strictSame(whole(inFront), whole(inBack))
  isTrueSum(t, inFront, 2500, 'front')
  isTrueSum(t, inBack, 2500, 'back')
})

test('a sampler\'s own threshold is counted with', async (t) => {
  const { app, collector } = await appWithout(t, { trace: { sampler: 0.25, trustIncoming: false } })
  for (let i = 0; i < 8000; i++) {
    await app.inject('/cart')
    if (i % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await comeBack(app, collector)
  const { thinned, dropped } = app.lightTrace.stats().spans
  t.same(dropped, {})
  t.ok(thinned > 500, `${thinned} spans gave way`)
  isTrueSum(t, collector.spans.filter(({ name }) => name === 'GET /cart'), 8000, '/cart')
})

// T37
const CHOSEN = {
  'a caller who chooses ids that always stay': (i) => ({ traceparent: `00-${idOf(i).slice(0, 18)}ffffffffffffff-00f067aa0ba902b7-01`, tracestate: 'ot=th:0' }),
  'a caller who chooses the first of the random bits': (i) => ({ traceparent: `00-${idOf(i).slice(0, 16)}ffffff${idOf(i).slice(22)}-00f067aa0ba902b7-01` }),
  'a caller who chooses the randomness': (i) => ({ traceparent: `00-${idOf(i)}-00f067aa0ba902b7-01`, tracestate: 'ot=rv:ffffffffffffff' }),
  'a caller who has one id': () => ({ traceparent: `00-${'ff'.repeat(16)}-00f067aa0ba902b7-01` })
}
for (const [who, headersOf] of Object.entries(CHOSEN)) {
  test(`${who}: the buffer holds, and what is exported does not stand for much more than there was`, async (t) => {
    const { app, collector } = await appWithout(t)
    let most = 0
    for (let i = 0; i < 3000; i++) {
      await app.inject({ url: '/cart', headers: headersOf(i) })
      if (i % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
      most = Math.max(most, app.lightTrace.stats().buffer.bytes)
    }
    // A chunk in which all spans stay grows by what they say, until memory is asked for the next time.
    t.ok(most <= 256 * 1024 + 1024, `${most} bytes`)
    const { dropped, thinned } = app.lightTrace.stats().spans
    await comeBack(app, collector)
    const { count } = extrapolate(collector.spans)
    t.ok(count < 3 * 6000, `${Math.round(count)} of 6000, by ${collector.spans.length}`)
    t.ok(dropped.queue_full > 500, `${dropped.queue_full} were dropped, ${thinned} thinned`)
    t.equal(identity(app.lightTrace.stats()), 0)
  })
}

test("`whenFull: 'drop-oldest'` drops the oldest, and counts them", async (t) => {
  const { app, collector } = await appWithout(t, { trace: { buffer: { whenFull: 'drop-oldest' } } })
  await serve(app, 3000, () => '/cart')
  await comeBack(app, collector)
  const { dropped, thinned } = app.lightTrace.stats().spans
  t.equal(thinned, 0)
  t.ok(dropped.queue_full > 0)
  t.ok(collector.spans.every(({ traceState }) => traceState === ''))
  t.equal(identity(app.lightTrace.stats()), 0)
})
