'use strict'

// POST /v1/metrics, and what /api/metrics makes of it.

const { test } = require('tap')
const { MeterProvider, MetricReader, AggregationTemporality, AggregationType } = require('@opentelemetry/sdk-metrics')
const { ProtobufMetricsSerializer, JsonMetricsSerializer } = require('@opentelemetry/otlp-transformer')
const { resourceFromAttributes } = require('@opentelemetry/resources')
const { startViewer, traceId } = require('./support')
const { metricText } = require('../../viewer/views/metric-text')
const { bodyOf, storeAt, counter, gauge, histogram, exponential, NOW_MS, DELTA } = require('./metric-support')

const PROTOBUF = { 'content-type': 'application/x-protobuf' }
const JSON_TYPE = { 'content-type': 'application/json' }
const S = 1000

class OnDemandReader extends MetricReader {
  async onForceFlush () {}
  async onShutdown () {}
}

function sdk (temporality) {
  const reader = new OnDemandReader({ aggregationTemporalitySelector: () => temporality })
  const provider = new MeterProvider({
    readers: [reader],
    resource: resourceFromAttributes({ 'service.name': 'bakery' }),
    views: [{ instrumentName: 'exponential', aggregation: { type: AggregationType.EXPONENTIAL_HISTOGRAM } }]
  })
  const meter = provider.getMeter('ovens', '1.0.0')
  const instruments = {
    counter: meter.createCounter('loaves', { unit: '{loaf}', description: 'Baked.' }),
    upDown: meter.createUpDownCounter('shelf'),
    explicit: meter.createHistogram('explicit', { unit: 's', advice: { explicitBucketBoundaries: [0.1, 0.2, 0.4] } }),
    exponential: meter.createHistogram('exponential', { unit: 's' })
  }
  meter.createObservableGauge('heat', { unit: 'Cel' }).addCallback((result) => result.observe(230.5, { oven: 'left' }))
  return { instruments, collect: async () => (await reader.collect()).resourceMetrics }
}

for (const [encoding, headers, serializer] of [['protobuf', PROTOBUF, ProtobufMetricsSerializer], ['JSON', JSON_TYPE, JsonMetricsSerializer]]) {
  for (const temporality of [AggregationTemporality.CUMULATIVE, AggregationTemporality.DELTA]) {
    test(`metrics of the OpenTelemetry SDK are stored: ${encoding}, ${AggregationTemporality[temporality].toLowerCase()}`, async (t) => {
      const viewer = await startViewer(t)
      const { instruments, collect } = sdk(temporality)
      for (const rounds of [1, 2]) {
        for (let i = 0; i < 100; i++) {
          instruments.counter.add(2, { kind: 'rye', size: 3 })
          instruments.explicit.record(0.15)
          instruments.exponential.record(i < 50 ? 0.001 : 0.1)
        }
        instruments.upDown.add(rounds)
        const response = await viewer.post('/v1/metrics', serializer.serializeRequest(await collect()), headers)
        t.match([response.status, (await response.text()).replace('{}', '')], [200, ''])
        await new Promise((resolve) => setTimeout(resolve, 10)) // the SDK's times are of milliseconds
      }
      const { instruments: listed, series } = await viewer.json('/api/metrics')
      const name = AggregationTemporality[temporality].toLowerCase()
      t.equal(series, 5)
      t.match(listed, [
        { name: 'explicit', kind: 'histogram', unit: 's', temporality: name, services: ['bakery'] },
        { name: 'exponential', kind: 'exponential_histogram' },
        { name: 'heat', kind: 'gauge', temporality: null, attributes: { oven: ['left'] } },
        { name: 'loaves', kind: 'sum', monotonic: true, unit: '{loaf}', description: 'Baked.', scope: 'ovens', attributes: { kind: ['rye'], size: ['3'] }, attributesMore: false },
        { name: 'shelf', kind: 'sum', monotonic: false }
      ])
      const last = async (metric, member) => {
        const { series: [one] } = await viewer.json(`/api/metrics/data?name=${metric}`)
        return one[member].findLast((value) => value !== null)
      }
      t.equal(await last('heat', 'value'), 230.5)
      t.equal(await last('shelf', 'value'), 3)
      t.ok(await last('loaves', 'rate') > 0)
      const quantiles = await viewer.json('/api/metrics/data?name=exponential&points=1')
      t.ok(Math.abs(quantiles.series[0].p95[0] - 0.1) < 0.01 && quantiles.series[0].max[0] === 0.1, JSON.stringify(quantiles.series[0]))
      t.ok(Math.abs((await last('explicit', 'p50')) - 0.15) < 1e-6, 'in the middle of its bucket, or at most the highest')
    })
  }
}

test('JSON, with names of enums and numbers as text, gives the same metrics as protobuf', async (t) => {
  const [a, b] = [await startViewer(t), await startViewer(t)]
  const time = String(BigInt(Date.now()) * 1_000_000n)
  const point = { startTimeUnixNano: time, timeUnixNano: time, attributes: [{ key: 'k', value: { stringValue: 'v' } }] }
  const metrics = [
    { name: 'gauge', gauge: { dataPoints: [{ ...point, asInt: '-5' }] } },
    { name: 'sum', sum: { aggregationTemporality: 'AGGREGATION_TEMPORALITY_DELTA', isMonotonic: true, dataPoints: [{ ...point, asDouble: '2.5' }] } },
    { name: 'histogram', histogram: { aggregationTemporality: 1, dataPoints: [{ ...point, count: '3', sum: 1, bucketCounts: ['1', 2], explicitBounds: [0.5], min: 0.1, max: 0.9 }] } },
    {
      name: 'exponential',
      exponentialHistogram: { aggregationTemporality: 1, dataPoints: [{ ...point, count: 4, scale: -1, zeroCount: 1, zeroThreshold: 0.001, positive: { offset: -3, bucketCounts: [1, 1] }, negative: { offset: 2, bucketCounts: ['1'] } }] }
    },
    { name: 'summary', summary: { dataPoints: [{ ...point, count: 5, sum: 6, quantileValues: [{ quantile: 0.5, value: 7 }] }] } }
  ]
  const resourceMetrics = [{ scopeMetrics: [{ metrics }] }]
  t.equal((await a.post('/v1/metrics', JSON.stringify({ resourceMetrics }), JSON_TYPE)).status, 200)
  const { opentelemetry: { proto } } = require('@opentelemetry/otlp-transformer/build/src/generated/root')
  const Request = proto.collector.metrics.v1.ExportMetricsServiceRequest
  t.equal((await b.post('/v1/metrics', Request.encode(Request.fromObject({ resourceMetrics })).finish(), PROTOBUF)).status, 200)
  for (const { name } of metrics) {
    const [one, other] = await Promise.all([a, b].map((viewer) => viewer.json(`/api/metrics/data?name=${name}&by=k&points=1`)))
    t.same(one.series, other.series, name)
    t.equal(one.series.length, 1)
  }
  for (const broken of [{ resourceMetrics: {} }, [], { resourceMetrics: [{ scopeMetrics: [{ metrics: [{ gauge: { dataPoints: [{ asInt: 'x' }] } }] }] }] }]) {
    t.equal((await a.post('/v1/metrics', JSON.stringify(broken), JSON_TYPE)).status, 400)
  }
})

test('a cumulative counter becomes a rate, whatever the interval of its sender', async (t) => {
  for (const everyMs of [5 * S, 10 * S, 60 * S]) {
    const { send, course, data } = storeAt()
    for (let at = 0; at <= 120 * S; at += everyMs) send([counter([{ start: NOW_MS - 7200 * S, time: NOW_MS + at, asInt: 1_000_000 + at / 100 }])], { atMs: NOW_MS + at })
    t.same((await course('name=count', 'rate')), Array.from({ length: 12 }, (_, i) => [i * 10, 10]), `every ${everyMs} ms: ten a second, and nothing of what was before`)
    t.same((await data('name=count&points=3')).series[0].rate.at(-1), 10, 'also over many slots')
  }
})

test('a counter that starts again, and one whose value falls, are not negative', async (t) => {
  const { send, course } = storeAt()
  const points = [[-3600, 0, 100], [-3600, 10, 200], [12, 20, 50], [12, 30, 150], [12, 40, 20]] // start, time, value
  for (const [start, time, value] of points) send([counter([{ start: NOW_MS + start * S, time: NOW_MS + time * S, asInt: value }])], { atMs: NOW_MS + time * S })
  const rates = await course('name=count', 'rate')
  t.same(rates, [[0, 10], [10, 6.25], [20, 10], [30, 2]], 'over the time since its start')
})

test('an app is counted from its start, and so is a series that it first measures later', async (t) => {
  const { send, course } = storeAt()
  const start = NOW_MS - 10 * S
  send([counter([{ start, time: NOW_MS, asInt: 20 }])], { atMs: NOW_MS })
  send([counter([{ start, time: NOW_MS + 10 * S, asInt: 40 }, { start, time: NOW_MS + 10 * S, asInt: 70, attributes: { new: 'yes' } }])], { atMs: NOW_MS + 10 * S })
  t.same(await course('name=count&attr=new:yes&by=new', 'rate'), [[0, 7]])
  t.same(await course('name=count', 'rate'), [[-10, 2], [0, 9]], 'both series together')
})

test('workers that send the same series under the same name do not count as starts', async (t) => {
  const { send, course } = storeAt()
  for (let at = 0; at <= 30; at += 10) {
    for (const worker of [0, 1]) send([counter([{ start: NOW_MS - 3600 * S + worker, time: NOW_MS + at * S, asInt: 1000 + at }])], { atMs: NOW_MS + at * S })
  }
  t.same(await course('name=count', 'rate'), [[0, 2], [10, 2], [20, 2]])
})

test('workers under one name that send at other times do not show what they counted before', async (t) => {
  for (const workers of [2, 12, 40]) {
    const { send, course } = storeAt()
    for (let at = 0; at <= 60; at += 10) {
      for (let worker = 0; worker < workers; worker++) {
        const time = NOW_MS + at * S + worker * 100
        send([counter([{ start: NOW_MS - 3600 * S + worker, time, asInt: 1_000_000 + at }])], { atMs: time })
      }
    }
    const rates = await course('name=count', 'rate')
    t.ok(rates.every(([, rate]) => rate <= workers), `${workers} workers: ${JSON.stringify(rates)}`)
    if (workers <= 32) t.same(rates.slice(1, -1), [10, 20, 30, 40, 50].map((at) => [at, workers]))
  }
})

test('the newest slot is divided by the time that its service has measured of it', async (t) => {
  const workers = storeAt()
  for (const [at, worker] of [[-2, 0], [-2, 1], [3, 0], [8, 1]]) workers.send([counter([{ start: NOW_MS - 3600 * S + worker, time: NOW_MS + at * S, asInt: 1000 + at }])], { atMs: NOW_MS + at * S })
  t.same(await workers.course('name=count', 'rate'), [[-10, 2], [0, 1.375]], 'eleven in eight seconds')
  const { send, course, clock } = storeAt()
  const from = (start, asInt) => counter([{ start: NOW_MS + start * S, time: NOW_MS + (start + 10) * S, asInt }], { temporality: DELTA })
  send([from(0.01, 1000), gauge([{ time: NOW_MS + 10_010, asInt: 1 }])], { atMs: NOW_MS + 10_010 })
  clock.ms = NOW_MS + 25 * S
  t.same((await course('name=count', 'rate')), [[0, 100], [10, 100]], 'the rest of the slot has not been sent')
  send([gauge([{ time: NOW_MS + 20_010, asInt: 1 }])], { atMs: NOW_MS + 20_010 })
  t.same((await course('name=count', 'rate')), [[0, 100], [10, 0.1]], 'nothing was added in its rest')
  const ended = storeAt()
  ended.send([from(0, 1000), from(10, 1000)].map((metric) => ({ ...metric, name: 'count' })), { atMs: NOW_MS + 20 * S })
  ended.send([from(15, 10)], { atMs: NOW_MS + 25 * S })
  ended.clock.ms = NOW_MS + 400 * S
  t.same((await ended.course('name=count', 'rate')).at(-1), [20, 0.5], 'after five minutes it counts whole')
})

test('what a sender whose clock is ahead measured is not pressed into less time', async (t) => {
  for (const aheadMs of [0, 2 * S, 5 * S, 9 * S]) {
    const { send, course } = storeAt()
    for (let at = 0; at <= 60; at += 10) send([counter([{ start: NOW_MS - 3600 * S, time: NOW_MS + at * S + aheadMs, asInt: at * 7 }])], { atMs: NOW_MS + at * S })
    t.same(await course('name=count', 'rate'), [0, 10, 20, 30, 40, 50].map((at) => [at, 7]), `${aheadMs}`)
  }
})

test('the rate of a route is over the time in which its service was measured', async (t) => {
  const { send, overview } = storeAt()
  const of = (at, count, route) => ({ start: NOW_MS - 3600 * S, time: NOW_MS + at * S, count, sum: count, bucketCounts: [count, 0], explicitBounds: [1], attributes: { 'http.route': route } })
  for (let at = 1800; at <= 1865; at += 13) {
    send([histogram([of(at, 1000 + at * 2, '/a'), ...at > 1830 ? [of(at, 13, '/late')] : []], { name: 'http.server.request.duration' })], { atMs: NOW_MS + at * S })
  }
  const { routes } = await overview(`from=${NOW_MS}`)
  t.same(routes.map(({ route, rate }) => [route, rate]), [['/a', 2], ['/late', 0.2]], 'not over the time without data')
})

test('deltas add up, and a delta that is sent twice counts once', async (t) => {
  const { send, course } = storeAt()
  const of = (time, value) => counter([{ start: NOW_MS + time * S - 10 * S, time: NOW_MS + time * S, asInt: value }], { temporality: DELTA })
  for (const [time, value] of [[10, 50], [20, 30], [10, 50], [20, 30], [50, 10]]) send([of(time, value)], { atMs: NOW_MS + Math.max(time, 20) * S })
  t.same(await course('name=count', 'rate'), [[0, 5], [10, 3], [20, 0], [30, 0], [40, 1]], 'a sender of deltas sends none while nothing is counted')
})

test('sums that rise and fall are added up over their series, and gauges are not', async (t) => {
  const { send, data, course } = storeAt()
  for (const at of [0, 10, 20]) {
    const points = [1, 2].map((n) => ({ time: NOW_MS + at * S, asInt: n * 10 + at, attributes: { pool: String(n) } }))
    send([counter(points, { monotonic: false, name: 'open' }), gauge(points)], { atMs: NOW_MS + at * S })
  }
  t.same(await course('name=open', 'value'), [[0, 30], [10, 50], [20, 70]])
  t.same(await course('name=level', 'value'), [[0, 15], [10, 25], [20, 35]], 'their mean')
  const { series } = await data('name=open&by=pool')
  t.same(series.map(({ attributes, value }) => [attributes.pool, value.at(-1)]), [['2', 40], ['1', 30]])
  const deltas = storeAt()
  for (const [at, asInt] of [[0, 5], [10, -2], [20, 4]]) {
    deltas.send([counter([{ start: NOW_MS + at * S - 10 * S, time: NOW_MS + at * S, asInt }], { temporality: DELTA, monotonic: false })], { atMs: NOW_MS + at * S })
  }
  t.same(await deltas.course('name=count', 'value'), [[0, 5], [10, 3], [20, 7]], 'deltas of such a sum')
})

test('the text of a metric has the highest rate beside the newest, which is 0 for what happens rarely', async (t) => {
  const { send, data, list } = storeAt()
  for (const [at, asInt] of [[0, 1], [10, 3], [20, 0]]) send([counter([{ start: NOW_MS + at * S - 10 * S, time: NOW_MS + at * S, asInt }], { temporality: DELTA })], { atMs: NOW_MS + at * S })
  t.match(metricText(await data('name=count'), list()), /\n {2}0\/min \(at most 18\/min\) {2}4 in all {2}/)
})

test('values that are sent at other times are still added up', async (t) => {
  const { send, course } = storeAt()
  for (let at = 0; at <= 60; at += 10) {
    const pool = at % 20 === 0 ? 'a' : 'b'
    send([counter([{ time: NOW_MS + at * S, asInt: 100, attributes: { pool } }], { monotonic: false })], { atMs: NOW_MS + at * S })
  }
  t.same((await course('name=count', 'value')).slice(1), [10, 20, 30, 40, 50, 60].map((at) => [at, 200]))
})

test('percentiles are interpolated within the bucket, and merged over series', async (t) => {
  const { send, data } = storeAt()
  const bounds = { explicitBounds: [1, 2, 4] }
  const times = { start: NOW_MS - 10 * S, time: NOW_MS }
  send([histogram([
    { ...times, ...bounds, count: 10, sum: 15, bucketCounts: [0, 10, 0, 0], attributes: { route: '/a' } },
    { ...times, ...bounds, count: 10, sum: 35, bucketCounts: [0, 0, 8, 2], attributes: { route: '/b' } }
  ], { temporality: DELTA })])
  const { series: [a, b] } = await data('name=time&by=route&points=1')
  t.match(a, { attributes: { route: '/a' }, rate: [1], total: 10, p50: [1.5], p95: [1.95], p99: [1.99], mean: [1.5], max: [2] })
  t.match(b, { p50: [3.25], p99: [4], max: [null], mean: [3.5] }, 'beyond the last bound, the bound')
  const { series: [both] } = await data('name=time&points=1')
  t.match(both, { rate: [2], total: 20, p50: [2], mean: [2.5] })
  t.match(await data('name=time&attr=route:/a&points=1'), { series: [{ rate: [1] }] })
})

test('a histogram shows no figures that its sender does not know', async (t) => {
  const of = async (...points) => {
    const { send, data } = storeAt()
    send([histogram(points.map((point, i) => ({ start: NOW_MS - 10 * S, time: NOW_MS, count: 10, sum: 5000, attributes: { i }, ...point })), { temporality: DELTA })])
    const { series: [{ p50: [p50], p95: [p95], mean: [mean], max: [max] }] } = await data('name=time&points=1')
    return [p50, p95, mean, max]
  }
  const one = { bucketCounts: [10], explicitBounds: [] }
  const beyond = { bucketCounts: [0, 10], explicitBounds: [10] }
  t.same(await of({ ...one }), [null, null, 500, null])
  t.same(await of({ ...one, max: 800 }), [400, 760, 500, 800])
  t.same(await of({ ...one, min: 200, max: 800 }), [500, 770, 500, 800])
  t.same(await of({ bucketCounts: [], explicitBounds: [] }), [null, null, 500, null], 'without buckets')
  t.same(await of({ ...beyond }), [10, 10, 500, null])
  t.same(await of({ ...beyond, max: 810 }), [410, 770, 500, 810])
  t.same(await of({ bucketCounts: [0, 10, 0], explicitBounds: [10, Infinity] }), [10, 10, 500, null], 'the last bound may be infinite')
  t.same(await of({ bucketCounts: [0, 10, 0], explicitBounds: [10, Infinity], max: 810 }), [410, 770, 500, 810])
  t.same(await of(beyond, { bucketCounts: [0, 0, 10], explicitBounds: [10, 20] }), [10, 20, 500, null])
  t.same(await of(one, { bucketCounts: [10, 0], explicitBounds: [10] }), [null, null, 500, null], 'those of a part are not those of all')
  t.same(await of(beyond, { bucketCounts: [0, 10, 0], explicitBounds: [10, 20] }), [10, 19, 500, null])
})

test('exponential histograms are merged at the coarser scale, and interpolated by it', async (t) => {
  const { send, data } = storeAt()
  const times = { start: NOW_MS - 10 * S, time: NOW_MS }
  send([exponential([
    { ...times, scale: 0, count: 4, sum: 6, positive: { offset: 0, bucketCounts: [4] }, attributes: { n: 'a' } }, // (1, 2]
    { ...times, scale: 2, count: 8, sum: 40, positive: { offset: 8, bucketCounts: [2, 2, 2, 2] }, attributes: { n: 'b' } }, // (4, 8] in four
    { ...times, scale: 0, count: 3, sum: -9, zeroCount: 1, negative: { offset: 1, bucketCounts: [2] }, attributes: { n: 'c' } } // [-4, -2) and zero
  ], { temporality: DELTA })])
  const of = async (n) => (await data(`name=time&attr=n:${n}&points=1`)).series[0]
  t.ok(Math.abs((await of('a')).p50[0] - Math.SQRT2) < 1e-5, 'the middle of a bucket is its geometric one')
  t.ok(Math.abs((await of('b')).p50[0] - 4 * Math.SQRT2) < 1e-4)
  const c = await of('c')
  t.ok(c.p50[0] < -2 && c.p50[0] > -4 && c.max[0] === 0, JSON.stringify(c))
  const { series: [all] } = await data('name=time&points=1')
  t.match(all, { rate: [1.5], mean: [2.46667], max: [8] })
  t.ok(all.p95[0] > 7 && all.p95[0] <= 8)
})

test('cumulative exponential histograms are subtracted, also when their scale falls', async (t) => {
  const { send, course } = storeAt()
  const start = NOW_MS - 3600 * S
  send([exponential([{ start, time: NOW_MS, scale: 3, count: 2, sum: 3, positive: { offset: 0, bucketCounts: [1, 0, 1] } }])])
  send([exponential([{ start, time: NOW_MS + 10 * S, scale: 1, count: 12, sum: 1003, positive: { offset: 0, bucketCounts: [2, 0, 0, 0, 0, 0, 10] } }])], { atMs: NOW_MS + 10 * S })
  t.same(await course('name=time', 'rate'), [[0, 1]])
  t.same(await course('name=time', 'mean'), [[0, 100]])
  const [[, p50]] = await course('name=time', 'p50')
  t.ok(p50 > 8 && p50 < 11.4, String(p50))
})

test('an exponential histogram whose zero bucket widens is not reset', async (t) => {
  const start = NOW_MS - 3600 * S
  const narrow = { scale: 1, count: 31, zeroCount: 1, positive: { offset: -4, bucketCounts: [5, 5, 5, 5] }, negative: { offset: -4, bucketCounts: [5, 5] } } // from a quarter to 1
  const cases = {
    'at a bound': { scale: 1, zeroThreshold: 0.5, zeroCount: 24, positive: { offset: -2, bucketCounts: [6, 6] } },
    'and its scale falls': { scale: 0, zeroThreshold: 0.5, zeroCount: 24, positive: { offset: -1, bucketCounts: [12] } },
    'within a bucket': { scale: 1, zeroThreshold: 0.6, zeroCount: 29, positive: { offset: -2, bucketCounts: [1, 6] } },
    'beyond all buckets': { scale: 1, zeroThreshold: 8, zeroCount: 36 }
  }
  for (const [title, wide] of Object.entries(cases)) {
    const { send, course } = storeAt()
    const states = [[0, narrow], [10, { ...wide, count: 36 }], [20, { ...narrow, count: 41, zeroCount: 9, positive: { offset: -4, bucketCounts: [5, 5, 6, 6] } }]]
    for (const [at, values] of states) send([exponential([{ start, time: NOW_MS + at * S, ...values }])], { atMs: NOW_MS + at * S })
    t.same(await course('name=time', 'rate'), [[0, 0.5], [10, 0.5]], title)
  }
  const { send, course } = storeAt()
  for (const [at, count] of [[0, 30], [10, 20]]) send([exponential([{ start, time: NOW_MS + at * S, count, zeroThreshold: at, zeroCount: count }])], { atMs: NOW_MS + at * S })
  t.same(await course('name=time', 'rate'), [[0, 2]], 'it is if a count falls')
})

test('exponential histograms with other zero buckets are merged, and what is in them lies within them', async (t) => {
  const { send, data } = storeAt()
  const of = (resource, values) => send([exponential([{ start: NOW_MS - 10 * S, time: NOW_MS, scale: 0, ...values }], { temporality: DELTA })], { resource: { 'service.instance.id': resource } })
  of('a', { count: 20, sum: 30, zeroCount: 10, zeroThreshold: 1, positive: { offset: 0, bucketCounts: [10] } })
  t.match((await data('name=time&points=1')).series, [{ rate: [2], p50: [1], mean: [1.5], max: [2] }])
  of('b', { count: 20, sum: 10, zeroCount: 0, positive: { offset: -2, bucketCounts: [20] } }) // (0.25, 0.5]
  const { series: [{ rate, p50, p95, max }] } = await data('name=time&points=1')
  t.same([rate, p50, max], [[4], [0.5], [2]])
  t.ok(p95[0] > 1 && p95[0] < 2)
  of('c', { count: 10, sum: -1, zeroCount: 10, zeroThreshold: 0.25, min: -0.1, max: 0 })
  t.match((await data('name=time&points=1')).series, [{ rate: [5], max: [2] }])
  const negative = storeAt()
  negative.send([exponential([{ start: NOW_MS - 10 * S, time: NOW_MS, scale: 0, count: 20, zeroCount: 10, zeroThreshold: 1, negative: { offset: 0, bucketCounts: [10] } }], { temporality: DELTA })])
  t.match((await negative.data('name=time&points=1')).series, [{ p50: [-1], max: [1] }])
})

test('histograms whose bounds differ are merged too', async (t) => {
  const { send, data } = storeAt()
  const times = { start: NOW_MS - 10 * S, time: NOW_MS }
  send([histogram([
    { ...times, count: 10, sum: 5, explicitBounds: [1, 2], bucketCounts: [10, 0, 0], attributes: { v: '1' } },
    { ...times, count: 10, sum: 55, explicitBounds: [5, 6], bucketCounts: [0, 10, 0], attributes: { v: '2' } }
  ], { temporality: DELTA })])
  const { series: [one] } = await data('name=time&points=1')
  t.match(one, { rate: [2], p50: [1], mean: [3], max: [6] })
  t.ok(one.p95[0] > 5 && one.p95[0] < 6)
})

test('a summary has the quantiles that were sent', async (t) => {
  const { send, data, course } = storeAt()
  const of = (time, count) => ({ name: 'old', summary: { dataPoints: [{ start: NOW_MS - 3600 * S, time: NOW_MS + time * S, count, sum: count * 2, quantileValues: [{ quantile: 0.5, value: 1.5 }, { quantile: 0.99, value: 9 }] }] } })
  send([of(0, 10)])
  send([of(10, 30)], { atMs: NOW_MS + 10 * S })
  t.same(await course('name=old', 'rate'), [[0, 2]])
  t.match(await data('name=old&last=1m&points=1'), { kind: 'summary', series: [{ p50: [1.5], p95: [null], p99: [9], mean: [2] }] })
})

test('a wrong clock does not hide points', async (t) => {
  for (const offMs of [-86_400 * S, 3 * 3600 * S]) {
    const { send, course } = storeAt()
    for (const at of [0, 10, 20]) {
      send([counter([{ start: 1, time: NOW_MS + at * S + offMs, asInt: at }]), gauge([{ time: NOW_MS + at * S + offMs, asInt: at }])], { atMs: NOW_MS + at * S })
    }
    t.same(await course('name=count', 'rate'), [[0, 1], [10, 1]], `${offMs}`)
    t.same(await course('name=level', 'value'), [[0, 0], [10, 10], [20, 20]])
  }
  const { send, course } = storeAt()
  send([gauge([{ time: 0, asInt: 7 }])])
  t.same(await course('name=level', 'value'), [[0, 7]], 'no time')
})

test('a point far ahead of the clock does not silence its series', async (t) => {
  for (const aheadMs of [3600 * S, 60 * S]) {
    const { send, course } = storeAt()
    const of = (atMs, timeMs, asInt) => send([counter([{ start: NOW_MS - 100 * S, time: timeMs, asInt }])], { atMs })
    of(NOW_MS, NOW_MS, 100)
    of(NOW_MS + 10 * S, NOW_MS + 10 * S + aheadMs, 110)
    of(NOW_MS + 20 * S, NOW_MS + 20 * S, 120)
    of(NOW_MS + 30 * S, NOW_MS + 30 * S, 150)
    const values = new Map(await course('name=count', 'rate'))
    t.equal(values.get(20), 4, `${aheadMs}`)
    t.equal(await sumOf(course), 150, 'nothing is counted twice')
  }
  const { send, course } = storeAt()
  send([counter([{ start: NOW_MS - 100 * S, time: NOW_MS, asInt: 100 }])])
  send([counter([{ start: NOW_MS - 100 * S, time: NOW_MS - 10 * S, asInt: 95 }])])
  t.equal(await sumOf(course), 100, 'what comes late is in it')
  const late = storeAt()
  for (const [at, asInt] of [[0, 100], [-400, 50], [10, 110]]) late.send([counter([{ start: NOW_MS - 500 * S, time: NOW_MS + at * S, asInt }])], { atMs: NOW_MS + Math.max(0, at) * S })
  t.equal(await sumOf(late.course), 10, 'also if it comes very late')
})

async function sumOf (course) {
  return Math.round((await course('name=count', 'rate')).reduce((sum, [, rate]) => sum + rate * 10, 0))
}

test('a delta of a sum that falls and rises counts once, and not if the sum is infinite', async (t) => {
  const { send, course } = storeAt()
  const of = (start, value) => send([counter([{ start: NOW_MS + start * S, time: NOW_MS + (start + 10) * S, asDouble: value }], { temporality: DELTA, monotonic: false })], { atMs: NOW_MS + (start + 10) * S })
  of(0, 5)
  of(0, 5)
  t.same(await course('name=count', 'value'), [[10, 5]])
  of(10, 1.7e308)
  of(20, 1.7e308)
  of(30, -1.7e308)
  t.same((await course('name=count', 'value')).at(-1), [40, 0])
})

test('quantiles of summaries of several series are not known', async (t) => {
  const { send, data } = storeAt()
  const of = (i) => ({ start: NOW_MS - 10 * S, time: NOW_MS, attributes: { i }, count: 10, sum: 20, quantileValues: [{ quantile: 0.5, value: 1 + i }] })
  send([{ name: 'old', summary: { dataPoints: [of(1), of(2), of(3)] } }])
  t.match(await data('name=old&points=1'), { series: [{ p50: [null], mean: [2] }] })
  t.match((await data('name=old&points=1&by=i')).series.map(({ p50 }) => p50[0]).sort(), [2, 3, 4])
})

test('points that have no value, are not finite or break the rules are left out, and the sender is told', async (t) => {
  const { send, data, store } = storeAt()
  t.equal(send([gauge([{ asDouble: NaN }, { asDouble: Infinity, attributes: { a: 'b' } }, { asInt: 3, flags: 1 }])]), 2)
  t.equal(send([counter([{ asInt: -1, time: NOW_MS }], { temporality: DELTA })]), 1, 'a counter that falls')
  t.equal(send([histogram([{ count: 1, bucketCounts: [1, 2], explicitBounds: [1, 2] }, { count: 1, bucketCounts: [1, 0, 0], explicitBounds: [2, 1] }])]), 2)
  t.equal(send([exponential([{ scale: 21, count: 1, positive: { bucketCounts: [1] } }, { scale: -11, count: 1, positive: { bucketCounts: [1] } }])]), 2)
  t.equal(send([{ ...gauge([{ asInt: 1 }]), name: '' }]), 1)
  t.same(store.metrics.stats.dropped, { series: 0, malformed: 6, not_finite: 2, resource_too_large: 0, evicted: 0 })
  t.equal(await data('name=level'), null)
  const viewer = await startViewer(t)
  const body = bodyOf([gauge([{ asDouble: NaN }])])
  t.match(await (await viewer.post('/v1/metrics', JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics: [{ name: 'x', gauge: { dataPoints: [{ asDouble: 'NaN' }] } }] }] }] }), JSON_TYPE)).json(),
    { partialSuccess: { rejectedDataPoints: '1', errorMessage: /not finite/ } })
  const { opentelemetry: { proto } } = require('@opentelemetry/otlp-transformer/build/src/generated/root')
  const answer = Buffer.from(await (await viewer.post('/v1/metrics', body, PROTOBUF)).arrayBuffer())
  t.match(proto.collector.metrics.v1.ExportMetricsServiceResponse.toObject(proto.collector.metrics.v1.ExportMetricsServiceResponse.decode(answer), { longs: Number }), { partialSuccess: { rejectedDataPoints: 1 } })
  t.match((await viewer.json('/api/stats')).metrics, { series: 0, points: 0, dropped: { not_finite: 2 } })
})

test('an exemplar appears once and tells whether its trace is stored', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([{ trace: 7, id: 1 }])
  const now = Date.now()
  for (let i = 0; i < 3; i++) {
    await viewer.post('/v1/metrics', bodyOf([histogram([{
      start: now - 20_000, time: now - 2000 + i, count: i + 1, sum: 1, bucketCounts: [i + 1, 0], explicitBounds: [1], exemplars: [{ value: 0.25, trace: traceId(7) }, { value: 0.5, trace: traceId(8) }]
    }])]), PROTOBUF)
  }
  const { series: [{ exemplars }] } = await viewer.json('/api/metrics/data?name=time&last=5m')
  t.match(exemplars.sort((a, b) => a.value - b.value), [{ value: 0.25, traceId: traceId(7), spanId: '01'.repeat(8), held: true }, { value: 0.5, traceId: traceId(8), held: false }])
  t.equal(exemplars.length, 2)
})

test('the overview has each route with its rate, errors and percentiles, and the runtime\'s metrics by title', async (t) => {
  const { send, overview } = storeAt()
  const times = { start: NOW_MS - 10 * S, time: NOW_MS, explicitBounds: [0.1, 0.2] }
  const request = { 'http.request.method': 'GET', 'http.route': '/a' }
  send([
    histogram([
      { ...times, count: 90, sum: 4.5, bucketCounts: [90, 0, 0], attributes: { ...request, 'http.response.status_code': 200 }, exemplars: [{ value: 0.05, trace: traceId(3) }] },
      { ...times, count: 10, sum: 1.5, bucketCounts: [0, 10, 0], attributes: { ...request, 'http.response.status_code': 500, 'error.type': '500' } }
    ], { temporality: DELTA, name: 'http.server.request.duration' }),
    gauge([{ asDouble: 0.01 }], 'nodejs.eventloop.delay.p99'), gauge([{ asDouble: 0.01 }], 'nodejs.eventloop.delay.p50')
  ])
  send([histogram([{ ...times, explicitBounds: [10], count: 10, sum: 50, bucketCounts: [10, 0], attributes: { 'http.method': 'POST', 'http.status_code': 201 } }], { temporality: DELTA, name: 'http.server.duration', unit: 'ms' })], { service: 'old' })
  const { services, routes, runtime } = await overview('last=1m')
  t.same(services, ['old', 'shop'])
  t.match(routes, [
    { service: 'shop', route: 'GET /a', rate: 10, errorShare: 0.1, p50Ms: 55.5556, p95Ms: 150, exemplars: [{ traceId: traceId(3), held: false, value: 50 }] },
    { service: 'old', route: 'POST (no route)', rate: 1, errorShare: 0, p50Ms: 5 }
  ])
  t.equal(routes[0].series.errors.findLast((each) => each !== null), 1)
  t.match(runtime, [{ service: 'shop', title: 'Event loop delay', name: 'nodejs.eventloop.delay.p99', names: ['nodejs.eventloop.delay.p99', 'nodejs.eventloop.delay.p50'] }])
  t.same((await overview('service=old')).routes.map(({ service }) => service), ['old'])
})

test('requests count once in the overview and in one unit, also if a service sends the newer metric and the older one', async (t) => {
  const { send, overview } = storeAt()
  const of = (unitMs, atMs) => ({ start: atMs - 10 * S, time: atMs, count: 10, sum: 1500 / unitMs, explicitBounds: [100 / unitMs, 200 / unitMs], bucketCounts: [0, 10, 0], attributes: { 'http.route': '/a' } })
  const newer = (atMs, unit = 's') => histogram([of(unit === 's' ? 1000 : 1, atMs)], { temporality: DELTA, name: 'http.server.request.duration', unit })
  const older = (atMs) => histogram([of(1, atMs)], { temporality: DELTA, name: 'http.server.duration', unit: 'ms' })
  const expect = async (query, service) => t.match((await overview(query)).routes, [{ service, route: '/a', rate: 1, errorShare: 0, p50Ms: 150, p95Ms: 195 }], service)
  send([older(NOW_MS), newer(NOW_MS)], { service: 'both' })
  send([newer(NOW_MS)], { service: 'units' })
  send([newer(NOW_MS, 'ms')], { service: 'units' })
  send([older(NOW_MS)], { service: 'older' })
  send([newer(NOW_MS)], { service: 'set back' })
  send([older(NOW_MS + 100 * S)], { service: 'set back', atMs: NOW_MS + 100 * S })
  for (const service of ['both', 'units', 'older']) await expect(`service=${service}`, service)
  await expect('service=set+back&last=1m', 'set back')
  t.match((await overview('service=older&last=1m')).routes, [{ route: '/a', rate: 0 }], 'before this time')
})

test('instruments of one name are told apart by scope, unit and kind, also if the scope or the unit is empty', async (t) => {
  const { send, data } = storeAt()
  const levels = [['', '', 10], ['lib', '', 30], ['lib', 's', 7], ['', 's', 5]]
  for (const [scope, unit, asInt] of levels) send([{ ...gauge([{ asInt }], 'x'), unit }], { scope })
  send([{ ...counter([{ start: NOW_MS - 10 * S, asInt: 50 }], { temporality: DELTA, name: 'x' }), unit: 's' }], { scope: 'lib' })
  for (const [scope, unit, value] of levels) {
    const { series, ...answer } = await data({ name: 'x', scope, unit, kind: 'gauge', points: '1' })
    t.match([answer.unit, series.map(({ value: [each] }) => each)], [unit, [value]])
  }
  t.match(await data('name=x&scope=lib&unit=s&kind=counter&points=1'), { kind: 'sum', unit: 's', series: [{ rate: [5] }] })
  t.match(await data('name=x&unit=&kind=gauge&points=1'), { series: [{ value: [20] }] }, 'of every scope')
  t.equal(await data('name=x&scope=&kind=counter'), null)
  t.equal(await data('name=x&unit=By'), null)
})

test('parameters of the API are checked, and an unknown metric is not found', async (t) => {
  const viewer = await startViewer(t)
  for (const query of ['', 'name=', 'name=x&last=1d', 'name=x&points=0', 'name=x&points=1001', `name=x&by=${'a,'.repeat(11)}`, 'name=x&from=5&to=4']) {
    const response = await viewer.get(`/api/metrics/data?${query}`)
    t.equal(response.status, 400, query)
    t.match(await response.json(), { error: /^(name|last|points|by|from): / })
  }
  t.equal((await viewer.get('/api/metrics/data?name=x')).status, 404)
  t.equal((await viewer.get('/api/metrics/overview?last=x')).status, 400)
  t.match(await viewer.json('/api/metrics'), { instruments: [], series: 0, bytes: 0, slotMs: 10_000 })
  t.same((await viewer.json('/api/metrics/overview')).routes, [])
  t.equal((await viewer.get('/api/metrics', { method: 'POST' })).status, 405)
})

test('an interval in the past and one in the future are answered', async (t) => {
  const { send, data } = storeAt()
  for (const at of [0, 10, 20, 30]) send([gauge([{ time: NOW_MS + at * S, asInt: at }])], { atMs: NOW_MS + at * S })
  const { atMs, series } = await data(`name=level&from=${NOW_MS + 10 * S}&to=${NOW_MS + 25 * S}`)
  t.same(atMs, [NOW_MS + 10 * S, NOW_MS + 20 * S])
  t.same(series[0].value, [10, 20])
  t.match(await data(`name=level&from=${NOW_MS + 3600 * S}`), { atMs: [] })
  t.match(await data('name=level&last=999999h'), { atMs: { length: 360 } })
})
