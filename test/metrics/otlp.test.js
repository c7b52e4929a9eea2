'use strict'

const { test } = require('tap')
const { TraceContext, SAMPLED } = require('../../lib/context/trace-context')
const { keepExemplar } = require('../../lib/features/metrics/histograms')
const { HTTP_DURATION } = require('../../lib/features/metrics/histograms')
const { CallMetrics } = require('../../lib/features/metrics/call-metrics')
const { ServerMetrics } = require('../../lib/features/metrics/server-metrics')
const { RouteInfo } = require('../../lib/span/http-info')
const clock = require('../../lib/runtime/timers')
const { newRegistry, newMeter, encodeAll, scope } = require('./support')

const duration = { name: 'http.server.request.duration', unit: 's', description: 'Duration of HTTP server requests.', bounds: HTTP_DURATION }

function span (word) {
  return Object.assign(new TraceContext(), { t0: word, t1: 2, t2: 3, t3: -4, s0: -5, s1: word, flags: SAMPLED })
}

test('a histogram arrives with its buckets, bounds, sum, minimum and maximum', async (t) => {
  const before = Date.now()
  const registry = newRegistry()
  const metric = registry.metric(scope, 'histogram', duration)
  const series = metric.of(['http.request.method', 'GET', 'http.response.status_code', 200])
  for (const value of [0.001, 0.005, 0.0051, 10, 11, 0.3]) series.record(value)
  const { metrics: [read, ...others] } = encodeAll(registry)
  t.equal(others.length, 0)
  t.match(read, {
    name: 'http.server.request.duration',
    unit: 's',
    description: 'Duration of HTTP server requests.',
    kind: 'histogram',
    temporality: 'cumulative',
    scope: { name: 'light-trace', version: '1.2.3' },
    resource: { 'service.name': 'test' }
  })
  const [point] = read.points
  t.same(point.attributes, { 'http.request.method': 'GET', 'http.response.status_code': 200 })
  t.same(point.bounds, HTTP_DURATION)
  t.same(point.counts, [2, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1], 'a bound belongs to its own bucket')
  t.equal(point.min, 0.001)
  t.equal(point.max, 11)
  t.equal(point.sum, 0.001 + 0.005 + 0.0051 + 10 + 11 + 0.3)
  const [time, driftMs] = [Number(point.time / 1000000n), 50] // the anchor may differ by this much
  t.ok(time >= before - driftMs && time <= Date.now() + driftMs)
})

test('each cumulative series has its own start, which is constant', async (t) => {
  const registry = newRegistry()
  const metric = registry.metric(scope, 'histogram', duration)
  metric.of(['a', 1]).record(1)
  const first = encodeAll(registry).metrics[0].points[0]
  metric.of(['a', 2]).record(1)
  const [again, other] = encodeAll(registry).metrics[0].points
  t.equal(again.start, first.start)
  t.ok(again.time > first.time)
  t.ok(other.start > first.start)
})

test('sums and gauges of all kinds arrive, including negative and 64-bit values', async (t) => {
  const registry = newRegistry()
  const meter = newMeter(registry, 'shop', '9')
  const big = 2 ** 40 + 3
  meter.createCounter('orders', { valueType: 0 }).add(big, { kind: 'a' })
  meter.createUpDownCounter('open', { valueType: 0 }).add(-5)
  meter.createUpDownCounter('level').add(-0.5)
  meter.createGauge('temperature', { unit: 'Cel' }).record(-3.25, { room: ['a', 'b'] })
  const read = encodeAll(registry)
  t.match(read.named('orders'), { kind: 'sum', isMonotonic: true, temporality: 'cumulative', scope: { name: 'shop', version: '9' } })
  t.match(read.named('orders').points, [{ value: big, type: 'asInt', attributes: { kind: 'a' } }])
  t.match(read.named('open'), { isMonotonic: false, points: [{ value: -5, type: 'asInt' }] })
  t.match(read.named('level').points, [{ value: -0.5, type: 'asDouble' }])
  t.match(read.named('temperature'), { kind: 'gauge', unit: 'Cel', points: [{ value: -3.25, attributes: { room: ['a', 'b'] } }] })
  t.equal(read.named('temperature').points[0].start, 0n)
})

test('an exemplar has its trace, and is sent once', async (t) => {
  const registry = newRegistry()
  const series = registry.metric(scope, 'histogram', duration).of([])
  keepExemplar(series, series.record(0.003), 0.003, 100, span(1))
  keepExemplar(series, series.record(0.004), 0.004, 200, span(7))
  keepExemplar(series, series.record(3), 3, 300, span(9))
  const [point] = encodeAll(registry, { sinceMs: 99 }).metrics[0].points
  t.match(point.exemplars, [
    { value: 0.004, traceId: '000000070000000200000003fffffffc', spanId: 'fffffffb00000007' },
    { value: 3, spanId: 'fffffffb00000009' }
  ])
  t.equal(point.exemplars.length, 2, 'the last of each bucket')
  t.equal(point.exemplars[1].time - point.exemplars[0].time, 100000000n)
  t.equal(encodeAll(registry, { sinceMs: 200 }).metrics[0].points[0].exemplars.length, 1)
})

test('an exponential histogram keeps every value within its bounds', async (t) => {
  const registry = newRegistry({ histograms: 'exponential' })
  const series = registry.metric(scope, 'histogram', duration).of([])
  const values = [0.001, 0.0011, 0.5, 1, 2, 100, 64, 0, 1e-9]
  for (const value of values) series.record(value)
  const [metric] = encodeAll(registry).metrics
  t.equal(metric.kind, 'exponentialHistogram')
  const [{ scale, zeroCount, positive, count, min, max }] = metric.points
  t.equal(count, values.length)
  t.equal(zeroCount, 1)
  t.equal(min, 0)
  t.equal(max, 100)
  t.ok(positive.counts.length <= 160)
  t.ok(positive.counts.length > 80, 'the scale is no smaller than necessary')
  for (const value of values.filter((value) => value > 0)) {
    const index = positive.counts.findIndex((count, i) => count > 0 && within(value, positive.offset + i, scale))
    t.not(index, -1, `${value} has a bucket`)
    positive.counts[index]--
  }
  t.ok(positive.counts.every((count) => count === 0), 'and no other')
})

function within (value, index, scale) {
  const base = 2 ** (2 ** -scale)
  return value > base ** index * (1 - 1e-12) && value <= base ** (index + 1) * (1 + 1e-12)
}

test('exponential buckets hold upper-inclusive powers of two at any scale', async (t) => {
  const { ExponentialHistogram } = require('../../lib/features/metrics/histograms')
  for (const value of [1, 2, 4, 1024, 0.5, 2 ** -30]) {
    const series = new ExponentialHistogram([], 160, 0)
    series.record(value)
    const { offset } = series.buckets()
    t.equal((offset + 1) / 2 ** 20, Math.log2(value), `${value} is the upper bound of its bucket`)
  }
})

test('a delta has the values since the last delivery, including those that failed', async (t) => {
  const registry = newRegistry({ temporality: 'delta' })
  const metric = registry.metric(scope, 'histogram', duration)
  const orders = newMeter(registry).createCounter('orders')
  const level = newMeter(registry).createUpDownCounter('level')
  const series = metric.of(['a', 1])
  series.record(0.001)
  series.record(4)
  orders.add(2)
  level.add(3)
  const first = encodeAll(registry)
  t.match(first.named('http.server.request.duration'), { temporality: 'delta', points: [{ count: 2, sum: 4.001, min: 0.001, max: 4 }] })
  t.match(first.named('orders'), { temporality: 'delta', points: [{ value: 2 }] })
  t.match(first.named('level'), { temporality: 'cumulative', points: [{ value: 3 }] })
  first.failed()
  series.record(0.5)
  orders.add(1)
  const second = encodeAll(registry)
  t.match(second.named('http.server.request.duration').points, [{ count: 3, sum: 4.501, min: 0.001, max: 4 }])
  t.equal(second.named('http.server.request.duration').points[0].start, first.named('http.server.request.duration').points[0].start)
  t.match(second.named('orders').points, [{ value: 3 }])
  second.delivered()
  const third = encodeAll(registry)
  t.same(third.metrics.map(({ name }) => name), ['level'], 'without new values only cumulative metrics are sent')
  series.record(0.02)
  const fourth = encodeAll(registry)
  const [point] = fourth.metrics[0].points
  t.match(point, { count: 1, sum: 4.521 - 4.501, min: 0.02, max: 0.02, counts: [0, 0, 1] })
  t.equal(point.start, second.named('http.server.request.duration').points[0].time)
})

test('a delta of an exponential histogram survives a change of scale', async (t) => {
  const registry = newRegistry({ temporality: 'delta', histograms: 'exponential' })
  const series = registry.metric(scope, 'histogram', duration).of([])
  for (const value of [1, 1.0001, 1.5]) series.record(value)
  const first = encodeAll(registry)
  first.delivered()
  for (const value of [1000, 0.0001, 1.2]) series.record(value)
  const { points: [point] } = encodeAll(registry).metrics[0]
  t.equal(point.count, 3)
  t.equal(point.min, 0.0001)
  t.equal(point.max, 1000)
  t.ok(point.scale < first.metrics[0].points[0].scale)
  for (const value of [1000, 0.0001, 1.2]) {
    t.ok(point.positive.counts.some((count, i) => count === 1 && within(value, point.positive.offset + i, point.scale)), String(value))
  }
})

test('lowmemory: observable counters stay cumulative', async (t) => {
  const registry = newRegistry({ temporality: 'lowmemory' })
  const meter = newMeter(registry)
  meter.createObservableCounter('seen').addCallback((result) => result.observe(7))
  meter.createCounter('added').add(1)
  await registry.observe()
  const read = encodeAll(registry)
  t.equal(read.named('seen').temporality, 'cumulative')
  t.equal(read.named('added').temporality, 'delta')
})

test('a metric has at most 2,000 series, and the rest is counted together without loss', async (t) => {
  const registry = newRegistry()
  const counter = newMeter(registry).createCounter('orders', { valueType: 0 })
  for (let i = 0; i < 2500; i++) {
    counter.add(1, { user: i })
    counter.add(1, { user: 1 })
  }
  const { points } = encodeAll(registry).metrics[0]
  t.equal(points.length, 2000)
  const overflow = points.find(({ attributes }) => attributes['otel.metric.overflow'] === true)
  t.same(overflow.attributes, { 'otel.metric.overflow': true })
  t.equal(overflow.value, 501)
  t.equal(points.reduce((sum, { value }) => sum + value, 0), 5000)
  t.equal(points.find(({ attributes }) => attributes.user === 1).value, 2501, 'existing series continue')
})

test('with delta, an idle delivered series makes space for a new one without loss', async (t) => {
  for (const histograms of ['explicit', 'exponential']) {
    const registry = newRegistry({ temporality: 'delta', seriesMax: 4, histograms })
    const counter = newMeter(registry).createCounter('orders', { valueType: 0 })
    const histogram = newMeter(registry).createHistogram('took')
    const record = (...users) => users.forEach((user) => { counter.add(1, { user }); histogram.record(2, { user }) })
    const collect = () => {
      const read = encodeAll(registry)
      for (const { metrics } of registry.scopes()) for (const metric of metrics) metric.deltaStartMs = clock.now()
      read.delivered()
      const found = ['orders', 'took'].map((name) => Object.fromEntries(read.named(name).points.map(({ attributes, value, count }) =>
        [attributes.user ?? 'overflow', value ?? count])))
      t.same(found[0], found[1], 'the same for all kinds')
      return found[0]
    }
    record('a', 'b', 'c')
    record('d', 'd')
    t.same(collect(), { a: 1, b: 1, c: 1, overflow: 2 }, 'nothing is delivered yet, so every series stays')
    record('a')
    t.same(collect(), { a: 1 })
    record('c', 'd', 'e', 'f')
    t.same(collect(), { c: 1, d: 1, e: 1, overflow: 1 }, 'a and b were idle; c has undelivered values')
    record('b', 'b', 'a')
    t.same(collect(), { b: 2, a: 1 }, 'a series that returns starts again')
  }
})

test('with delta, a route keeps counting after its series was replaced', async (t) => {
  const registry = newRegistry({ temporality: 'delta', seriesMax: 3 })
  const server = new ServerMetrics(registry, scope, { buckets: null, attributes: null })
  const routes = ['/a', '/b', '/c'].map((route) => new RouteInfo('GET', '', route))
  const peer = { scheme: 'http', protocolVersion: '1.1' }
  const request = (index) => server.ended({ route: routes[index], peer, httpStatus: 200, errorType: '', start: 0, endedAt: 1, flags: 0 })
  const collect = () => {
    const read = encodeAll(registry)
    server.duration.deltaStartMs = clock.now()
    read.delivered()
    return Object.fromEntries(read.metrics[0].points.map(({ attributes, count }) => [attributes['http.route'] ?? 'overflow', count]))
  }
  request(0)
  request(1)
  t.same(collect(), { '/a': 1, '/b': 1 })
  request(2)
  t.same(collect(), { '/c': 1 })
  request(0)
  request(0)
  request(2)
  t.same(collect(), { '/a': 2, '/c': 1 })
})

test('without delta, no series is replaced', async (t) => {
  const registry = newRegistry({ seriesMax: 3 })
  const counter = newMeter(registry).createCounter('orders')
  for (const user of ['a', 'b', 'c']) {
    counter.add(1, { user })
    encodeAll(registry).delivered()
  }
  t.same(encodeAll(registry).metrics[0].points.map(({ attributes }) => attributes.user), ['a', 'b', undefined])
})

test('attributes in another order are the same series, and of another type a different one', async (t) => {
  const registry = newRegistry()
  const counter = newMeter(registry).createCounter('orders')
  counter.add(1, { a: 1, b: 'x' })
  counter.add(1, { b: 'x', a: 1 })
  counter.add(1, { b: 'x', a: 1, c: undefined })
  counter.add(1, { a: '1', b: 'x' })
  t.match(encodeAll(registry).metrics[0].points, [
    { attributes: { a: 1, b: 'x' }, value: 3 },
    { attributes: { a: '1', b: 'x' }, value: 1 }
  ])
})

test('many series are written in steps, in batches that are complete requests', async (t) => {
  const registry = newRegistry({ seriesMax: 9000 })
  const metric = registry.metric(scope, 'histogram', duration)
  for (let i = 0; i < 8000; i++) metric.of(['http.route', `/a/${i}`]).record(i / 1000)
  const { MetricEncoder } = require('../../lib/features/metrics/encoder')
  const steps = [...new MetricEncoder().encode(registry.scopes(), 1, 0)]
  t.ok(steps.filter((step) => step === null).length >= 30)
  const { batches, metrics } = encodeAll(registry)
  t.ok(batches.length > 1)
  t.ok(batches.every(({ body }) => body.length < 2.2 * 1024 * 1024))
  const routes = new Set(metrics.flatMap(({ points }) => points.map(({ attributes }) => attributes['http.route'])))
  t.equal(routes.size, 8000)
  t.equal(batches.reduce((sum, { points }) => sum + points, 0), 8000)
})

test('a collection that fails halfway leaves nothing in the next one', async (t) => {
  const { MetricEncoder } = require('../../lib/features/metrics/encoder')
  const encoder = new MetricEncoder()
  const registry = newRegistry()
  const metric = registry.metric(scope, 'histogram', duration)
  metric.of(['http.route', '/a']).record(1)
  const other = metric.of(['http.route', '/b'])
  other.record(1)
  const { attributes } = other
  let failing = true
  Object.defineProperty(other, 'attributes', { get () { if (failing) throw new RangeError('Array buffer allocation failed'); return attributes } })
  t.throws(() => encodeAll(registry, { encoder }), /allocation/)
  failing = false
  t.same(encodeAll(registry, { encoder }).metrics.map(({ name, points }) => [name, points.length]), [[duration.name, 2]])
})

test('a call that ends twice, or before its start, counts once with no negative duration', async (t) => {
  const registry = newRegistry()
  const calls = new CallMetrics(registry, scope)
  const ends = []
  const inner = { spanContext: () => ({ traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1 }), end: (time) => ends.push(time) }
  const span = calls.measured(inner, clock.now(), ['db.system.name', 'redis'])
  t.ok(span.isRecording())
  span.end(1)
  span.end()
  t.notOk(span.isRecording())
  t.same(ends, [1])
  t.match(encodeAll(registry).named('db.client.operation.duration').points, [{ count: 1, sum: 0 }])
})
