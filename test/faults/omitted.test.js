'use strict'

// `omitAttributes`: no byte that leaves the process contains an omitted attribute, whichever way it leaves.
// Feature: omit, keep

const { test } = require('tap')
const { native, omitsAll, keysIn, ALL, OMITTED } = require('../support/telling-app')

test('no byte of OTLP and Prometheus has an omitted attribute', async (t) => {
  const { bytes: all, text: allText } = await native(t)
  t.same(keysIn(all), ALL, 'all of them are there without the option')
  t.ok(keysIn(allText).includes('metric.tenant'))
  const { app, text, bytes } = await native(t, { omitAttributes: OMITTED })
  omitsAll(t, bytes)
  omitsAll(t, text)
  t.match(text, /http_server_request_duration_seconds_count 3/, 'the requests are counted in one series')
  t.match(text, /db_client_operation_duration_seconds_count 6/, 'and so are the calls')
  t.match(text, /http_client_request_duration_seconds_count 3/)
  t.ok(bytes.includes('service.name') && bytes.includes('telemetry.sdk.name'), 'required attributes of a resource stay')
  const { spans, logs: { records }, metrics: { points } } = app.lightTrace.stats()
  t.match(spans, { delivered: 15, dropped: {} })
  t.match(records, { delivered: records.accepted, dropped: {} })
  t.match(points, { dropped: 0, rejected: 0 })
})

test('each key is omitted independently of the others', async (t) => {
  for (let bit = 1; bit < ALL.length; bit *= 2) { // any two keys are separated in at least one run
    const { bytes } = await native(t, { omitAttributes: ALL.filter((_, i) => (i & bit) !== 0) })
    t.same(keysIn(bytes), ALL.filter((_, i) => (i & bit) === 0))
  }
})

test('two applications in one process can differ in what they omit', async (t) => {
  const [omitting, other] = await Promise.all([native(t, { omitAttributes: OMITTED }), native(t)])
  omitsAll(t, omitting.bytes)
  t.same(keysIn(other.bytes), ALL)
})

test('kept and recorded spans omit it, too, and so do their marks', async (t) => {
  const last = async (app) => { await app.lightTrace.snapshot({ seconds: 60, reason: 'marked-reason' }) }
  const ways = [{ sampler: 0, keep: true }, { sampler: 0, keep: { errors: true }, recorder: true }]
  for (const way of ways) {
    const { bytes: all } = await native(t, way, way.recorder && { last })
    t.ok(all.includes('light_trace.kept') && all.includes('marked-child'))
    const { app, bytes } = await native(t, { ...way, omitAttributes: [...OMITTED, 'light_trace.*'] }, way.recorder && { last })
    omitsAll(t, bytes)
    t.notOk(bytes.includes('light_trace.'))
    t.ok(app.lightTrace.stats().spans.delivered > 0)
  }
})

test('exceptions as log records omit it', async (t) => {
  process.env.OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN = 'logs'
  t.teardown(() => delete process.env.OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN)
  omitsAll(t, (await native(t, { omitAttributes: OMITTED })).bytes)
})

test('lines that the fast writer of log records leaves to the parser omit it, too', async (t) => {
  const serializers = { err: (error) => ({ type: 'marked-type', message: error.message, stack: error.stack, detail: '\u0001' }) }
  const logger = { level: 'info', stream: { write () {} }, serializers }
  const { bytes: all } = await native(t, {}, { fastify: { logger } })
  t.ok(all.includes('marked-type'))
  omitsAll(t, (await native(t, { omitAttributes: [...OMITTED, 'err.*'] }, { fastify: { logger } })).bytes)
})
