'use strict'

// One instrument of a library must not break the scrape of all others, because Prometheus rejects a text as a whole.

const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { TraceContext, SAMPLED } = require('../../lib/context/trace-context')
const { keepExemplar } = require('../../lib/features/metrics/histograms')
const { exposition } = require('../../lib/features/metrics/prometheus')
const { recordHostile, RESERVED, ONE_TO_PROMETHEUS } = require('../support/hostile-instruments')
const { faultsIn } = require('../support/prometheus-text')
const { newRegistry, newMeter, scope } = require('./support')

function textOf (registry, isOpenMetrics = false) {
  const dropped = []
  const options = { isOpenMetrics, ownScope: scope.name, onDropped: ({ name }, count) => dropped.push(`${name} ${count}`) }
  const text = [...exposition(registry.scopes(), { 'service.name': 'shop' }, options)].join('')
  return { text, dropped, lines: text.split('\n').filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('target_info')) }
}

function isValid (t, registry) {
  t.same(faultsIn(textOf(registry).text), [])
  t.same(faultsIn(textOf(registry, true).text, true), [])
}

test('the test\'s own check detects what Prometheus rejects', async (t) => {
  t.match(faultsIn('# TYPE a gauge\na 1\na 2\n'), ['a 2: twice'])
  t.match(faultsIn('# TYPE a gauge\na{b="1",c="2"} 1\na{c="2",b="1"} 2\n'), [/twice/])
  t.match(faultsIn('# TYPE a gauge\na{b="1",b="2"} 1\n'), [/label b/])
  t.match(faultsIn('# TYPE a gauge\na{__name__="b"} 1\n'), [/__name__/])
  t.match(faultsIn('# TYPE a histogram\na_bucket{le="+Inf"} 1\na_bucket{le="+Inf"} 1\n'), [/twice/])
  t.match(faultsIn('# TYPE a gauge\na 1\n# TYPE a counter\na_total 1\n'), [/family a/])
})

test('attributes with a special meaning in Prometheus are renamed', async (t) => {
  const registry = newRegistry()
  const meter = newMeter(registry, 'lib', '1')
  meter.createHistogram('sizes', { advice: { explicitBucketBoundaries: [1] } }).record(1, RESERVED)
  meter.createCounter('hits').add(1, RESERVED)
  isValid(t, registry)
  t.equal(textOf(registry).lines.at(-1), 'hits_total{exported___name__="x",exported___other="1",exported_le="1",exported_otel_scope_version="z",' +
    'exported_otel_scope_name="y",plan="pro",otel_scope_name="lib",otel_scope_version="1"} 1')
  t.same(textOf(registry).dropped, [])
})

test('of series that only OpenTelemetry can distinguish, the first is kept', async (t) => {
  const registry = newRegistry()
  const counter = newMeter(registry, 'lib').createCounter('hits')
  for (const attributes of ONE_TO_PROMETHEUS) counter.add(1, attributes)
  isValid(t, registry)
  t.same(textOf(registry).dropped, ['hits 1', 'hits 1', 'hits 1'])
  t.equal(textOf(registry).lines.length, 4)
})

test('of metrics whose names become equal, the first is kept, and ours before others', async (t) => {
  const registry = newRegistry()
  const meter = newMeter(registry, 'lib')
  meter.createGauge('http.server.request.duration.seconds').record(1)
  meter.createHistogram('jobs').record(1)
  for (const name of ['jobs.count', 'jobs_sum', 'jobs.bucket', 'jobs.created', 'target', 'target.info', 'hits.total']) meter.createGauge(name).record(1)
  meter.createCounter('hits').add(1)
  meter.createGauge('a.b').record(1)
  meter.createGauge('a_b').record(1)
  newMeter(registry, 'other').createGauge('a/b').record(1)
  registry.metric(scope, 'histogram', { name: 'http.server.request.duration', unit: 's', bounds: [1] }).of([]).record(0.5)
  isValid(t, registry)
  const { dropped, text } = textOf(registry)
  t.same(dropped, ['http.server.request.duration.seconds 1', 'jobs.count 1', 'jobs_sum 1', 'jobs.bucket 1', 'jobs.created 1', 'target 1', 'target.info 1', 'hits 1', 'a_b 1'])
  t.match(text, 'http_server_request_duration_seconds_count 1')
  t.match(text, 'a_b{otel_scope_name="other"} 1')
})

test('exponential histograms with extreme numbers are valid', async (t) => {
  const registry = newRegistry({ histograms: 'exponential' })
  const histogram = newMeter(registry, 'lib').createHistogram('h')
  for (const value of [5e-324, 1e-323, 1e-322, 0, 1.7e308, Number.MAX_VALUE]) histogram.record(value)
  isValid(t, registry)
  t.equal(textOf(registry).lines.filter((line) => line.includes('le="+Inf"')).length, 1)
  t.match(textOf(registry).text, 'le="+Inf"} 6')
})

for (const histograms of ['explicit', 'exponential']) {
  test(`any names, units, descriptions, keys and values of a library are valid, ${histograms} buckets`, async (t) => {
    const registry = newRegistry({ histograms })
    recordHostile({ getMeter: (...names) => newMeter(registry, ...names) })
    isValid(t, registry)
    t.ok(textOf(registry).lines.length > 200)
  })
}

test('OpenMetrics has the start of counting if known, and no older exemplar', async (t) => {
  const registry = newRegistry()
  const meter = newMeter(registry, 'lib')
  meter.createCounter('hits').add(1)
  meter.createGauge('load').record(1)
  meter.createObservableCounter('cpu').addCallback((result) => result.observe(5))
  const span = Object.assign(new TraceContext(), { t0: 1, t1: 2, t2: 3, t3: 4, s0: 5, s1: 6, flags: SAMPLED })
  const series = registry.metric(scope, 'histogram', { name: 'd', unit: 's', bounds: [1] }).of(['route', '/a'])
  const endedAt = series.startMs - 20
  keepExemplar(series, series.record(0.5), 0.5, endedAt, span)
  await registry.observe()
  const { text } = textOf(registry, true)
  isValid(t, registry)
  t.match(text, /^hits_total\{otel_scope_name="lib"\} 1\nhits_created\{otel_scope_name="lib"\} \d{10}\.\d{3}$/m)
  const created = /^d_seconds_created\{route="\/a"\} (\d{10}\.\d{3})$/m.exec(text)[1]
  t.equal(created, / (\d{10}\.\d{3})\n/.exec(text)[1])
  t.notMatch(text, /(load|cpu)_created/, 'an observable counter started before it was observed')
  t.notMatch(textOf(registry).text, /_created/)
})

test('values left out of the text are counted, and logged once', async (t) => {
  const app = Fastify()
  const warnings = []
  t.teardown(() => app.close())
  app.log.warn = ({ code }, message) => warnings.push(`${code} ${message}`)
  await app.register(lightTrace, { metrics: { exporter: 'none', path: '/metrics' } })
  await app.ready()
  const counter = app.lightTrace.meterProvider.getMeter('lib').createCounter('hits')
  counter.add(1, { code: 1 })
  counter.add(1, { code: '1' })
  t.equal(app.lightTrace.stats().metrics.scrapeDropped, 0)
  for (let i = 0; i < 2; i++) t.equal((await app.inject('/metrics')).statusCode, 200)
  t.equal(app.lightTrace.stats().metrics.scrapeDropped, 1)
  t.match(warnings, [/^LT_WARN_METRIC_SCRAPE .*'hits'/])
})
