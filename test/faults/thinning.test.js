'use strict'

// A full buffer is thinned. After an outage of twenty times the buffer's length, the collector gets a true sample of all spans.
// thinned-ids.test.js tests what depends on the ids.
// Feature: thinning

const { test, setTimeout } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { freePort } = require('../../scripts/free-port')
const { runInChild } = require('../support/child')
const { CollectorProcess } = require('../support/collector-process')
const { setImmediate: turn } = require('node:timers/promises')
const { idOf, thresholdOf, randomOf, appWithout, shop, ask, serve, comeBack, identity, isTrueSum, TURN_EVERY } = require('../support/outage')

setTimeout(240_000) // it needs 20 s of CPU, which may take more than a minute on a busy machine

// T36
test('after an outage of twenty buffers, the sum over the spans is right for each route and each part of the outage', async (t) => {
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
  t.ok(thinned > 5 * delivered, `${thinned} spans were thinned, ${delivered} delivered`)
  const numbers = new Map(Array.from({ length: requests }, (_, i) => [idOf(i), i]))
  for (const [key, count] of truth) {
    const [route, part] = key.split(' ')
    const spans = collector.spans.filter(({ name, traceId }) => name === `GET ${route}` && Math.floor(numbers.get(traceId) / (requests / 4)) === Number(part))
    isTrueSum(t, spans, count, key)
  }
  // Traces are complete: each request has its step.
  const carts = new Set(collector.spans.filter(({ name }) => name === 'GET /cart').map(({ traceId }) => traceId))
  const steps = collector.spans.filter(({ name }) => name === 'price')
  isTrueSum(t, steps, truth.get('/cart 0') + truth.get('/cart 1') + truth.get('/cart 2') + truth.get('/cart 3'), 'steps')
  t.ok(steps.filter(({ traceId }) => carts.has(traceId)).length > 0.9 * steps.length)
  t.ok(collector.spans.every((span) => randomOf(span) >= thresholdOf(span) - 1e-9), 'each trace has the randomness that its threshold requires')
  t.match(lines.filter(({ msg }) => /the buffer is full/.test(msg)), [{ code: 'LT_WARN_LOSS', msg: /^the buffer is full: \d+ spans dropped as whole traces; the rest carry an adjusted sampling threshold \(each now represents up to \d+ times as many\)/ }])
  // Spans that are thinned in the background while the collector returns may be counted in a separate line.
  t.match(lines.find(({ code }) => code === 'LT_WARN_RECOVERED'), { msg: /; [1-9]\d* spans lost/ })
})

test('failed requests are thinned last, complete, and represent only themselves, including one in the first flush\'s chunk', async (t) => {
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
test('a flood of failures is thinned, too: the budget holds, and other requests remain', async (t) => {
  const { app, collector } = await appWithout(t)
  const asked = await serve(app, 3000, (i) => i % 20 === 0 ? '/cart' : '/fail')
  t.ok(app.lightTrace.stats().buffer.bytes <= 256 * 1024)
  await comeBack(app, collector)
  t.same(app.lightTrace.stats().spans.dropped, {})
  isTrueSum(t, collector.spans.filter(({ name }) => name === 'GET /fail'), asked.get('/fail'), '/fail')
  isTrueSum(t, collector.spans.filter(({ name }) => name === 'GET /cart'), asked.get('/cart'), '/cart')
})

test('slow requests that `keep` exports arrive, whether or not the sampler took them', async (t) => {
  const { app, collector } = await appWithout(t, { trace: { sampler: 0.5, trustIncoming: false, keep: { asked: true, maxPerSecond: Infinity } }, routes: (app) => app.get('/', async ({ trace }) => trace.keep('asked for')) })
  for (let i = 0; i < 3000; i++) {
    await app.inject('/')
    if (i % TURN_EVERY === 0) await turn()
  }
  await comeBack(app, collector)
  t.ok(app.lightTrace.stats().spans.thinned > 500)
  isTrueSum(t, collector.spans, 3000, 'kept')
})

// T37
test('with one span per batch, spans of megabytes, or ids that always stay, each step is short and the budget holds', async (t) => {
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
  t.ok(app.lightTrace.stats().spans.dropped.queue_full <= 40, 'the long spans')
})

// T36
test('two applications whose collector process is killed have true sums when it is back', { timeout: 120_000 }, async (t) => {
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
    if (i === 300) await collector.kill() // immediately, whatever it is doing
    for (const app of apps) await ask(app, i % 3 === 0 ? '/items/1' : '/cart', i)
    if (i % TURN_EVERY === 0) await turn()
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
    t.ok(stats.spans.thinned > requests / 2, `${stats.spans.thinned} were thinned`)
    // Spans that were received but not acknowledged arrived twice, perhaps with a different threshold the second time.
    const byId = new Map(collector.spans.map((span) => [span.spanId, span]))
    const spans = [...byId.values()].filter((span) => span.service === service)
    isTrueSum(t, spans.filter(({ name }) => name === 'GET /items/:id'), requests / 3, `${service} /items/:id`)
    isTrueSum(t, spans.filter(({ name }) => name === 'GET /cart'), requests * 2 / 3, `${service} /cart`)
    isTrueSum(t, spans.filter(({ name }) => name === 'price'), requests * 2 / 3, `${service} price`)
  }
})

// T36
test('SIGTERM while a full buffer is thinned ends the process in time, and everything is counted', { skip: process.platform === 'win32' && 'Windows ends a process without a signal' }, async (t) => {
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
      await new Promise((resolve) => setImmediate(resolve))
    }
  }, { args: [port] })
  t.equal(await child.said(), 'full')
  child.kill('SIGTERM')
  const spans = await child.said()
  t.ok(spans.thinned > 1000, `${spans.thinned} were thinned`)
  t.ok(spans.dropped.shutdown_deadline > 0)
  t.equal(identity({ spans }), 0)
  t.equal((await child.exit).code, 0)
})
