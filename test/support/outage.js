'use strict'

// Applications whose collector is down for so long that their buffer is thinned, and sums over the spans that arrive afterwards. The
// callers send the trace ids, which are the same in each run. How much a chunk is thinned depends on when it was compressed, so sums are
// compared within the sampling error. The limit is five standard errors, because three would be exceeded once in 370 times.

const crypto = require('node:crypto')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { extrapolate } = require('./extrapolation')
const { setImmediate: turn } = require('node:timers/promises')
const { startFakeCollector } = require('./fake-collector')

const TURN_EVERY = 10 // requests. With app.inject() alone the event loop never turns, so nothing is compressed or sent

module.exports = { idOf, thresholdOf, randomOf, appWithout, shop, ask, serve, comeBack, identity, isTrueSum, TURN_EVERY }

const ERRORS_MAX = 5

/** Returns the threshold of a span's tracestate as a fraction of 1. */
function thresholdOf ({ traceState }) {
  return parseInt((/\bth:([0-9a-f]+)/.exec(traceState)?.[1] ?? '0').padEnd(14, '0').slice(0, 12), 16) / 2 ** 48
}

function randomOf ({ traceId }) {
  return parseInt(traceId.slice(18, 30), 16) / 2 ** 48
}

/** Returns the trace id for a number. It is the same in each run, and as good as random. */
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

/** Sends `requests` requests. If every tenth one fails, about 1,100 fill the buffer once. Returns the number of requests per URL. */
async function serve (app, requests, urlOf, { pauseAfterFirst = () => {} } = {}) {
  const asked = new Map()
  for (let i = 0; i < requests; i++) {
    const url = urlOf(i)
    await ask(app, url, i)
    asked.set(url, (asked.get(url) ?? 0) + 1)
    if (i === 0) await pauseAfterFirst()
    if (i % TURN_EVERY === 0) await turn()
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

/** Compares an estimate from the thresholds with the true sum, in standard errors of the estimate. */
function isTrueSum (t, spans, truth, what) {
  const { count, deviation } = extrapolate(spans)
  t.ok(Math.abs(count - truth) <= ERRORS_MAX * deviation, `${what}: ${Math.round(count)} of ${truth} by ${spans.length} spans, standard error ${Math.round(deviation)}`)
}
