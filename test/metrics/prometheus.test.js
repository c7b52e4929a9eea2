'use strict'

const { test } = require('tap')
const { TraceContext, SAMPLED } = require('../../lib/context/trace-context')
const { keepExemplar } = require('../../lib/features/metrics/histograms')
const { exposition, negotiate, TEXT, OPEN_METRICS } = require('../../lib/features/metrics/prometheus')
const { newRegistry, newMeter, scope } = require('./support')

function textOf (registry, isOpenMetrics = false) {
  return [...exposition(registry.scopes(), { 'service.name': 'shop', 'process.pid': 7 }, { isOpenMetrics, ownScope: scope.name, onDropped () {} })].join('')
}

function withRequests (histograms = 'explicit') {
  const registry = newRegistry({ histograms })
  const series = registry.metric(scope, 'histogram', {
    name: 'http.server.request.duration', unit: 's', description: 'Duration of HTTP server requests.', bounds: [0.005, 1]
  }).of(['http.route', '/a', 'http.response.status_code', 200])
  const span = Object.assign(new TraceContext(), { t0: 1, t1: 2, t2: 3, t3: 4, s0: 5, s1: 6, flags: SAMPLED })
  keepExemplar(series, series.record(0.004), 0.004, 100, span)
  series.record(0.5)
  series.record(3)
  return registry
}

test('the text format has a histogram with the name, labels and bounds that Prometheus expects', async (t) => {
  t.equal(textOf(withRequests()), `# HELP target_info Target metadata
# TYPE target_info gauge
target_info{process_pid="7",service_name="shop"} 1
# HELP http_server_request_duration_seconds Duration of HTTP server requests.
# TYPE http_server_request_duration_seconds histogram
http_server_request_duration_seconds_bucket{http_response_status_code="200",http_route="/a",le="0.005"} 1
http_server_request_duration_seconds_bucket{http_response_status_code="200",http_route="/a",le="1"} 2
http_server_request_duration_seconds_bucket{http_response_status_code="200",http_route="/a",le="+Inf"} 3
http_server_request_duration_seconds_sum{http_response_status_code="200",http_route="/a"} 3.504
http_server_request_duration_seconds_count{http_response_status_code="200",http_route="/a"} 3
`)
})

test('OpenMetrics has exemplars, units and an end', async (t) => {
  const lines = textOf(withRequests(), true).split('\n')
  t.equal(lines.at(-2), '# EOF')
  t.ok(lines.includes('# TYPE target info'))
  t.ok(lines.includes('# UNIT http_server_request_duration_seconds seconds'))
  t.match(lines.find((line) => line.includes('le="0.005"')),
    /_bucket\{.*\} 1 # \{trace_id="00000001000000020000000300000004",span_id="0000000500000006"\} 0\.004 \d{10}\.\d{3}$/)
  t.match(lines.find((line) => line.includes('le="1')), /le="1\.0"\} 2$/)
})

test('exponential histograms become nested cumulative buckets', async (t) => {
  const text = textOf(withRequests('exponential'))
  const buckets = [...text.matchAll(/le="([^"]+)"\} (\d+)/g)].map(([, bound, count]) => [bound === '+Inf' ? Infinity : Number(bound), Number(count)])
  t.ok(buckets.length < 30, `${buckets.length} buckets`)
  for (const value of [0.004, 0.5, 3]) {
    const at = buckets.findIndex(([bound]) => value <= bound)
    t.equal(buckets[at][1] - (buckets[at - 1]?.[1] ?? 0), 1, String(value))
  }
  t.same(buckets.at(-1), [Infinity, 3])
})

test('the text has counters, gauges, units and names', async (t) => {
  const registry = newRegistry()
  const meter = newMeter(registry, 'shop', '1')
  meter.createCounter('orders.placed', { description: 'Orders\nplaced "by" \\ customers', unit: '{order}' }).add(2, { 'sort-of': 'a"b\\c\nd' })
  meter.createCounter('bytes_total', { unit: 'By' }).add(1)
  meter.createGauge('load', { unit: '1' }).record(0.5)
  meter.createUpDownCounter('speed', { unit: 'm/s' }).add(-2)
  meter.createGauge('1 bad').record(1)
  const text = textOf(registry)
  t.ok(text.includes('# HELP orders_placed_total Orders\\nplaced "by" \\\\ customers\n# TYPE orders_placed_total counter\norders_placed_total{sort_of="a\\"b\\\\c\\nd",otel_scope_name="shop",otel_scope_version="1"} 2\n'), text)
  t.match(text, /^bytes_total\{/m)
  t.match(text, /^load_ratio\{.*\} 0\.5$/m)
  t.match(text, /^speed_meters_per_second\{.*\} -2$/m)
  t.notMatch(text, /bad/)
  t.match(textOf(registry, true), /# TYPE orders_placed counter\norders_placed_total\{/)
})

test('two metrics with one name are grouped, and one of another type is left out', async (t) => {
  const registry = newRegistry()
  newMeter(registry, 'a').createCounter('hits').add(1)
  newMeter(registry, 'b').createGauge('other').record(1)
  newMeter(registry, 'c').createCounter('hits').add(2)
  newMeter(registry, 'd').createCounter('other').add(2)
  const text = textOf(registry)
  t.match(text, /# TYPE hits_total counter\nhits_total\{otel_scope_name="a"\} 1\nhits_total\{otel_scope_name="c"\} 2\n/)
  t.equal(text.match(/# TYPE hits/g).length, 1)
})

test('the text is written in pieces', async (t) => {
  const registry = newRegistry()
  const metric = registry.metric(scope, 'histogram', { name: 'd', unit: 's' })
  for (let i = 0; i < 1000; i++) metric.of(['route', `/${i}`]).record(i)
  const pieces = [...exposition(registry.scopes(), {}, { isOpenMetrics: true, ownScope: '', onDropped () {} })]
  t.ok(pieces.length > 15)
  t.ok(pieces.every((piece) => piece.length < 300_000))
})

test('the Accept header chooses the format', async (t) => {
  const prometheus2 = 'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
  const prometheus3 = 'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2'
  const protobufFirst = 'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,' + prometheus3
  for (const accept of [prometheus2, prometheus3, protobufFirst, 'application/openmetrics-text']) t.equal(negotiate(accept), OPEN_METRICS, accept)
  for (const accept of [undefined, '', '*/*', 'text/plain', 'text/html,*/*;q=0.8', 'application/openmetrics-text;q=0.1,text/plain', 'application/openmetrics-text;version=9.0.0', ';;;q=,']) {
    t.equal(negotiate(accept), TEXT, accept)
  }
})
