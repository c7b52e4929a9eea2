'use strict'

// Work outside of requests: lightTrace.run, and TRACEPARENT from the environment.
// Feature: jobs

const { test } = require('tap')
const { trace: api, SpanKind } = require('@opentelemetry/api')
const lightTrace = require('..')
const { tracedApp } = require('./support/traced-app')

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const PRODUCER = { traceparent: `00-${TRACE_ID}-b7ad6b7169203331-01`, tracestate: 'a=1', baggage: 'tenant=acme' }

const silent = (options) => ({ listen: false, ...options })

test('a job is a CONSUMER span under its producer, with a context like a request\'s', async (t) => {
  const { collector } = await tracedApp(t, silent())
  const answer = await lightTrace.run(PRODUCER, { name: 'process emails', attributes: { 'messaging.system': 'bullmq' } }, async (trace) => {
    t.equal(lightTrace.current(), trace)
    trace.set('job', 7)
    await new Promise((resolve) => setImmediate(resolve))
    t.equal(lightTrace.current().get('job'), 7)
    await trace.withSpan('send', async () => {})
    t.equal(trace.traceId, TRACE_ID)
    t.match(trace.inject(), { traceparent: new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-01$`), tracestate: 'a=1', baggage: 'tenant=acme' })
    return 'done'
  })
  t.equal(answer, 'done')
  t.equal(await collector.tree(), 'CONSUMER process emails\n  INTERNAL send')
  const [job] = await collector.spans()
  t.match(job, { traceId: TRACE_ID, parentSpanId: 'b7ad6b7169203331', attributes: { 'messaging.system': 'bullmq' }, traceState: 'a=1' })
  t.equal(lightTrace.current(), undefined)
})

test('the span ends with the function, and an error is recorded and thrown again', async (t) => {
  const { collector } = await tracedApp(t, silent())
  t.throws(() => lightTrace.run({}, () => { throw new TypeError('no') }), TypeError)
  await t.rejects(lightTrace.run({}, async () => { throw new RangeError('no') }), RangeError)
  t.equal(lightTrace.run({}, () => 7), 7)
  t.equal(await collector.tree(), 'CONSUMER process ERROR error.type=TypeError\nCONSUMER process ERROR error.type=RangeError\nCONSUMER process')
})

test('a job can have a link instead of a parent, and another kind', async (t) => {
  const { collector } = await tracedApp(t, silent())
  await lightTrace.run(PRODUCER, { link: true, kind: SpanKind.INTERNAL }, async () => {})
  const [job] = await collector.spans()
  t.not(job.traceId, TRACE_ID)
  t.match(job, { kind: 'INTERNAL', parentSpanId: undefined, links: [{ traceId: TRACE_ID, spanId: 'b7ad6b7169203331' }] })
})

test('carriers of all kinds are read, and invalid ones ignored', async (t) => {
  const { collector } = await tracedApp(t, silent())
  for (const carrier of [PRODUCER, new Map(Object.entries(PRODUCER)), { traceparent: Buffer.from(PRODUCER.traceparent) }]) {
    collector.reset()
    lightTrace.run(carrier, () => {})
    t.equal((await collector.spans())[0].traceId, TRACE_ID)
  }
  for (const carrier of [undefined, null, {}, 7, 'x', { traceparent: 'nonsense' }, { traceparent: [] }, { get traceparent () { throw new Error('no') } }]) {
    collector.reset()
    lightTrace.run(carrier, () => {})
    t.equal((await collector.spans())[0].parentSpanId, undefined)
  }
})

test('the producer\'s sampling decision applies', async (t) => {
  const { collector } = await tracedApp(t, silent({ trace: { sampler: 'always_on' } }))
  lightTrace.run({ traceparent: PRODUCER.traceparent.replace(/01$/, '00') }, (trace) => t.equal(trace.sampled, false))
  t.same(await collector.spans(), [])
})

test('without an application, the work still runs', async (t) => {
  t.equal(lightTrace.run(PRODUCER, (trace) => trace.withSpan('x', () => trace.traceparent)), '')
})

test('invalid options throw', async (t) => {
  t.throws(() => lightTrace.run({}), { code: 'LT_ERR_OPTION_INVALID' })
  t.throws(() => lightTrace.run({}, { kind: 9 }, () => {}), { code: 'LT_ERR_OPTION_INVALID' })
  t.throws(() => lightTrace.run({}, { nam: 'x' }, () => {}), { code: 'LT_ERR_OPTION_UNKNOWN' })
})

test('TRACEPARENT is the parent of spans without one, and never of requests', async (t) => {
  process.env.TRACEPARENT = PRODUCER.traceparent
  process.env.TRACESTATE = 'a=1'
  t.teardown(() => { delete process.env.TRACEPARENT; delete process.env.TRACESTATE })
  const { app, collector } = await tracedApp(t, silent({
    trace: { sampler: 'always_off' },
    routes: (app) => app.get('/', async (request) => request.trace.withSpan('child', () => request.trace.traceId))
  }))
  const { tracer } = app.lightTrace
  tracer.startActiveSpan('job', (span) => {
    tracer.startSpan('part').end()
    span.end()
  })
  tracer.startSpan('apart', { root: true }).end()
  t.not((await app.inject('/')).body, TRACE_ID)
  lightTrace.run({ traceparent: PRODUCER.traceparent.replace('0af7', '1af7') }, () => {})
  const spans = await collector.spans()
  t.same(spans.map(({ name }) => name), ['job', 'part', 'process'])
  const [job, part, other] = spans
  t.match(job, { traceId: TRACE_ID, parentSpanId: 'b7ad6b7169203331', traceState: 'a=1' })
  t.match(part, { traceId: TRACE_ID, parentSpanId: job.spanId })
  t.match(other.traceId, /^1af7/)
  t.equal(api.getActiveSpan(), undefined)
})

test('an invalid TRACEPARENT is ignored', async (t) => {
  process.env.TRACEPARENT = 'nonsense'
  t.teardown(() => { delete process.env.TRACEPARENT })
  const { app, collector } = await tracedApp(t, silent())
  app.lightTrace.tracer.startSpan('job').end()
  t.equal((await collector.spans())[0].parentSpanId, undefined)
})

test('with several applications, app.lightTrace.run uses its own', async (t) => {
  const first = await tracedApp(t, silent())
  const second = await tracedApp(t, silent())
  t.equal(await second.app.lightTrace.run(PRODUCER, async (trace) => trace.traceId), TRACE_ID)
  await second.app.lightTrace.run({}, { name: 'named' }, async () => {})
  t.equal(await second.collector.tree(), 'CONSUMER process\nCONSUMER named')
  t.same(await first.collector.spans(), [])
  t.throws(() => second.app.lightTrace.run({}), { code: 'LT_ERR_OPTION_INVALID' })
})
