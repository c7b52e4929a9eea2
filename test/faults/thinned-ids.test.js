'use strict'

// A full buffer keeps or drops spans by their trace id. These tests combine it with another service's buffer, with a sampler, and with
// callers who choose the ids.
// Feature: thinning

const { test, setTimeout } = require('tap')
const { extrapolate } = require('../support/extrapolation')
const { setImmediate: turn } = require('node:timers/promises')
const { idOf, thresholdOf, randomOf, appWithout, serve, comeBack, identity, isTrueSum, TURN_EVERY } = require('../support/outage')

setTimeout(240_000) // it needs 20 s of CPU, which may take more than a minute on a busy machine

test('two services whose collectors are down keep the same traces', async (t) => {
  const back = await appWithout(t, { trace: { buffer: { maxBytes: 128 * 1024 } } })
  const front = await appWithout(t, {
    routes: (app) => app.get('/', async (request) => (await back.app.inject({ url: '/cart', headers: { traceparent: request.trace.traceparent } })).body)
  })
  await serve(front.app, 2500, () => '/')
  await comeBack(back.app, back.collector)
  await comeBack(front.app, front.collector)
  const inFront = front.collector.spans
  const inBack = back.collector.spans.filter(({ name }) => name === 'GET /cart')
  // A chunk may have been thinned to a level that none of its remaining spans shows. Two levels higher is above all of these.
  const highest = 1 - (1 - Math.max(...[...inFront, ...inBack].map(thresholdOf))) / 4
  const whole = (spans) => spans.filter((span) => randomOf(span) >= highest).map(({ traceId }) => traceId).sort()
  t.ok(whole(inFront).length > 10, `${whole(inFront).length} traces`)
  t.strictSame(whole(inFront), whole(inBack))
  isTrueSum(t, inFront, 2500, 'front')
  isTrueSum(t, inBack, 2500, 'back')
})

test('thinning includes a sampler\'s own threshold', async (t) => {
  const { app, collector } = await appWithout(t, { trace: { sampler: 0.25, trustIncoming: false } })
  for (let i = 0; i < 8000; i++) {
    await app.inject('/cart')
    if (i % TURN_EVERY === 0) await turn()
  }
  await comeBack(app, collector)
  const { thinned, dropped } = app.lightTrace.stats().spans
  t.same(dropped, {})
  t.ok(thinned > 500, `${thinned} spans were thinned`)
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
  test(`${who}: the buffer stays within its limit, and exported spans do not represent many more than there were`, async (t) => {
    const { app, collector } = await appWithout(t)
    let most = 0
    for (let i = 0; i < 3000; i++) {
      await app.inject({ url: '/cart', headers: headersOf(i) })
      if (i % TURN_EVERY === 0) await turn()
      most = Math.max(most, app.lightTrace.stats().buffer.bytes)
    }
    t.ok(most <= 256 * 1024, `${most} bytes`)
    const { dropped, thinned } = app.lightTrace.stats().spans
    await comeBack(app, collector)
    const { count } = extrapolate(collector.spans)
    t.ok(count < 3 * 6000, `${Math.round(count)} of 6000, by ${collector.spans.length}`)
    t.ok(dropped.queue_full > 500, `${dropped.queue_full} were dropped, ${thinned} thinned`)
    t.equal(identity(app.lightTrace.stats()), 0)
  })
}
