'use strict'

// `omitAttributes` for spans, records and metrics that are not sent to a collector.
// Feature: omit, sdk, console, testing

const { test } = require('tap')
const { metrics } = require('@opentelemetry/api')
const { BasicTracerProvider } = require('@opentelemetry/sdk-trace-base')
const { markedApp, native, omitsAll, keysIn, KEYS: { ours, set, logs }, ALL, OMITTED } = require('../support/telling-app')
const { createCollector } = require('../../lib/features/testing/testing')
const { runProgram } = require('../support/program')

const EMPTY = { events: [], links: [], resource: {} }

/** A processor that reads spans when they start, and keeps ended spans of the SDK to read them at the end. */
function holding () {
  const spans = []
  const processor = { onStart: (span) => { spans.push({ ...EMPTY, attributes: { ...span.attributes } }) }, onEnd: (span) => { spans.push(span) }, forceFlush: async () => {}, shutdown: async () => {} }
  return { processor, read: () => JSON.stringify(spans.map(({ attributes, events, links, resource }) => ({ attributes, events, links, resource: resource.attributes }))) }
}

test('span processors and collectors of light-trace/testing do not get omitted attributes', async (t) => {
  const run = async (trace) => {
    const { processor, read } = holding()
    const collector = createCollector()
    let metrics
    await markedApp({ spanProcessors: [processor, collector], ...trace }, { last: async () => { metrics = await collector.metrics() } })
    const [spans, records] = [await collector.spans(), await collector.logs()]
    t.equal(spans.length, 15)
    return { held: read(), collected: JSON.stringify({ spans, records, metrics }) }
  }
  const all = await run()
  t.same(keysIn(all.collected), ALL)
  t.same(keysIn(all.held), [...ours, ...set])
  const { held, collected } = await run({ omitAttributes: OMITTED })
  omitsAll(t, held)
  omitsAll(t, collected)
})

test('the spans of an SDK do not get omitted attributes from light-trace', async (t) => {
  const run = async (trace) => {
    const { processor, read } = holding()
    await markedApp({ tracerProvider: new BasicTracerProvider({ spanProcessors: [processor] }), logs: true, metrics: false, ...trace })
    return read()
  }
  const unseen = ['app.cell', 'host.name', 'process.pid', ...set] // of the SDK's own resource, and attributes that the application sets on the SDK's spans
  t.same(keysIn(await run(), ours).sort(), ours.filter((key) => !unseen.includes(key)).sort())
  t.same(keysIn(await run({ omitAttributes: OMITTED }), ours), [])
})

test('OTLP lines and the tree on standard output have no omitted attributes', async (t) => {
  await Promise.all(['otlp/stdout', 'console'].map(async (exporter) => {
    const trace = { exporter, logs: { export: exporter }, metrics: { exporter: exporter === 'console' ? 'none' : exporter } }
    const traces = [trace, { ...trace, omitAttributes: OMITTED }]
    const { code, stdout, stderr } = await runProgram([require.resolve('../support/telling-app'), JSON.stringify(traces)])
    t.equal(code, 0, stderr)
    const [all, omitted] = stdout.split('====\n')
    if (exporter === 'console') t.ok(all.includes('(marked-message)') && all.includes('error.type=') && all.includes('marked-order'))
    else t.same(keysIn(all, [...ours, ...set, ...logs, 'meter.said']), [...ours, ...set, ...logs, 'meter.said'])
    omitsAll(t, omitted)
    t.match(omitted, /GET \/orders\/:id/)
  }))
})

test("metrics in another package's MeterProvider have no omitted attributes", async (t) => {
  const seen = []
  const record = (value, attributes) => { seen.push(attributes) }
  const instrument = { add: record, record, addCallback () {}, removeCallback () {} }
  const meter = new Proxy({}, { get: () => () => instrument })
  metrics.setGlobalMeterProvider({ getMeter: () => meter })
  t.teardown(() => metrics.disable())
  await native(t)
  const keys = ['http.request.method', 'url.scheme', 'http.route', 'server.address', 'metric.tenant', 'db.query.summary']
  t.same(keysIn(JSON.stringify(seen.splice(0)), keys), keys)
  await native(t, { omitAttributes: OMITTED })
  t.ok(seen.length > 10)
  t.same(keysIn(JSON.stringify(seen.filter((attributes) => !('meter.said' in attributes)))), [])
})

test('observed values are added up if omitted attributes make them one series', async (t) => {
  const last = async (app) => {
    const queues = app.lightTrace.meterProvider.getMeter('own').createObservableUpDownCounter('waiting')
    queues.addCallback((result) => { for (const [user, value] of [['a', 2], ['b', 3]]) result.observe(value, { 'app.user': user, queue: 'mail' }) })
  }
  for (const [omitAttributes, lines] of [[[], ['2', '3']], [['app.user'], ['5']], [['app.*', 'queue'], ['5']]]) {
    const { text } = await markedApp({ exporter: 'none', omitAttributes }, { last })
    t.same(text.split('\n').filter((line) => line.startsWith('waiting')).map((line) => line.split(' ').at(-1)).sort(), lines)
  }
})
