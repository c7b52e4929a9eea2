'use strict'

const { test } = require('tap')
const { SPAN_KEY } = require('../../lib/context/trace-context')
const { TraceContext, SAMPLED } = require('../../lib/context/trace-context')
const { MeterProvider } = require('../../lib/features/metrics/instruments')
const { snapshot } = require('../../lib/features/metrics/app-metrics')
const { newRegistry, newReport, newMeter, encodeAll } = require('./support')

test('observable instruments report only what their callbacks observed in this round', async (t) => {
  const registry = newRegistry()
  const meter = newMeter(registry)
  let rooms = { a: 1, b: 2 }
  const gauge = meter.createObservableGauge('temperature')
  gauge.addCallback((result) => { for (const room of Object.keys(rooms)) result.observe(rooms[room], { room }) })
  await registry.observe()
  t.match(encodeAll(registry).named('temperature').points, [{ value: 1 }, { value: 2 }])
  rooms = { b: 3 }
  await registry.observe()
  t.same(encodeAll(registry).named('temperature').points.map(({ attributes, value }) => [attributes.room, value]), [['b', 3]])
})

test('callbacks may be async, belong to several instruments, and be removed', async (t) => {
  const registry = newRegistry()
  const meter = newMeter(registry)
  const a = meter.createObservableCounter('a')
  const b = meter.createObservableUpDownCounter('b')
  const other = meter.createObservableGauge('other')
  const batch = async (result) => {
    await null
    result.observe(a, 5)
    result.observe(b, -1)
    result.observe(other, 1)
  }
  meter.addBatchObservableCallback(batch, [a, b])
  meter.addBatchObservableCallback(batch, [a, b])
  await registry.observe()
  t.match(encodeAll(registry).metrics.map(({ name, points }) => [name, points[0].value]), [['a', 5], ['b', -1]])
  meter.removeBatchObservableCallback(batch, [b, a])
  await registry.observe()
  t.equal(newestValue(registry, 'a'), undefined, 'a value that is no longer observed is not reported')
})

function newestValue (registry, name) {
  return snapshot(registry.scopes()).find((metric) => metric.name === name)?.points[0].value
}

test('a callback that throws or rejects is logged once and does not stop others', async (t) => {
  const report = newReport()
  const registry = newRegistry({}, report)
  const meter = newMeter(registry)
  meter.createObservableGauge('bad').addCallback(() => { throw new Error('broken') })
  meter.createObservableGauge('worse').addCallback(async () => { throw new Error('broken too') })
  meter.createObservableGauge('good').addCallback((result) => result.observe(1))
  await registry.observe()
  t.same(encodeAll(registry).metrics.map(({ name }) => name), ['good'])
  t.match(report.warnings, [/^LT_WARN_METRIC_CALLBACK the callback of the metric 'bad' failed: broken/, /^LT_WARN_METRIC_CALLBACK the callback of the metric 'worse' failed: broken too/])
})

test('two concurrent collections share one round', async (t) => {
  const registry = newRegistry()
  let calls = 0
  newMeter(registry).createObservableGauge('g').addCallback(async (result) => {
    calls++
    await null
    result.observe(calls)
  })
  await Promise.all([registry.observe(), registry.observe()])
  t.equal(calls, 1)
})

test('invalid values are left out and logged', async (t) => {
  const report = newReport()
  const registry = newRegistry({}, report)
  const meter = newMeter(registry)
  const counter = meter.createCounter('c')
  const histogram = meter.createHistogram('h')
  for (const value of [NaN, Infinity, -Infinity, -1, '1', undefined, null, 1n, {}]) {
    counter.add(value)
    histogram.record(value)
  }
  for (const value of [1e21, Number.MAX_VALUE, 2 ** 53]) meter.createCounter('whole', { valueType: 0 }).add(value)
  counter.add(1, { get bad () { throw new Error('no') } })
  counter.add(1, 'text')
  counter.add(1, null)
  counter.add(2, { a: { nested: 1 }, b: () => {}, c: NaN })
  histogram.record(0)
  const points = encodeAll(registry).named('c').points
  t.equal(points.reduce((sum, { value }) => sum + value, 0), 4)
  t.same(points.find(({ attributes }) => 'c' in attributes).attributes, { c: NaN })
  t.equal(encodeAll(registry).named('h').points[0].count, 1)
  t.equal(encodeAll(registry).named('whole'), undefined, 'beyond the largest integer')
  t.ok(report.warnings.some((warning) => warning.startsWith('LT_WARN_METRIC_VALUE')))
})

test('advice sets a histogram\'s buckets, and invalid advice is ignored', async (t) => {
  const registry = newRegistry()
  const meter = newMeter(registry)
  meter.createHistogram('a', { advice: { explicitBucketBoundaries: [1, 2] } }).record(1.5)
  meter.createHistogram('b', { advice: { explicitBucketBoundaries: [2, 1] } }).record(1.5)
  meter.createHistogram('c', { advice: { explicitBucketBoundaries: [] } }).record(1.5)
  const revoked = Proxy.revocable([], {})
  revoked.revoke()
  meter.createHistogram('d', { advice: { explicitBucketBoundaries: revoked.proxy } }).record(1.5)
  const read = encodeAll(registry)
  t.same(read.named('a').points[0].counts, [0, 1, 0])
  t.equal(read.named('d').points[0].bounds.length, 15)
  t.equal(read.named('b').points[0].bounds.length, 15)
  t.same(read.named('c').points[0].counts, [1])
})

test('an instrument records to the open application, even if it was created before', async (t) => {
  let registry = null
  const counter = new MeterProvider(() => registry).getMeter('shop').createCounter('orders')
  counter.add(1)
  const first = registry = newRegistry()
  counter.add(2)
  const second = registry = newRegistry()
  counter.add(4)
  t.equal(newestValue(first, 'orders'), 2)
  t.equal(newestValue(second, 'orders'), 4)
})

test('a measurement in a sampled span leaves an exemplar', async (t) => {
  const span = Object.assign(new TraceContext(), { t0: 1, t3: 1, s0: 2, s1: 3, flags: SAMPLED })
  const context = { getValue: (key) => key === SPAN_KEY ? span : undefined }
  const registry = newRegistry({}, newReport(), () => context)
  const meter = newMeter(registry)
  meter.createCounter('c', { valueType: 0 }).add(3)
  meter.createHistogram('h').record(7)
  span.flags = 0
  meter.createHistogram('h').record(9)
  const read = encodeAll(registry)
  t.match(read.named('c').points[0].exemplars, [{ value: 3, spanId: '0000000200000003' }])
  t.same(read.named('h').points[0].exemplars.map(({ value }) => value), [7])
})

test('two instruments with one name are the same, or a conflict', async (t) => {
  const report = newReport()
  const registry = newRegistry({}, report)
  newMeter(registry).createCounter('Orders').add(1)
  newMeter(registry).createCounter('orders').add(1)
  t.equal(newestValue(registry, 'Orders'), 2)
  t.same(report.warnings, [])
  newMeter(registry).createHistogram('orders').record(1)
  t.match(report.warnings, [/LT_WARN_METRIC_CONFLICT/])
})

test('instrument names made from data do not accumulate', async (t) => {
  const registry = newRegistry({}, newReport())
  const meter = newMeter(registry)
  for (let i = 0; i < 1500; i++) meter.createCounter(`c${i}`).add(1)
  t.equal(encodeAll(registry).metrics.length, 1000)
})

test('no value passed to a meter throws into the application', async (t) => {
  const fails = () => { throw new Error('mine') }
  const trap = new Proxy({}, { get: fails, has: fails, ownKeys: fails, getPrototypeOf: fails, getOwnPropertyDescriptor: fails })
  const list = new Proxy([1, 2], { get: fails })
  const revoked = Proxy.revocable([], {})
  revoked.revoke()
  const symbol = { message: Symbol('no text') }
  const hostile = [trap, list, new Proxy(() => {}, { get: fails, apply: fails }), { get description () { throw symbol } }, { unit: trap, valueType: trap, advice: list },
    { advice: { explicitBucketBoundaries: list } },
    { schemaUrl: trap }, revoked.proxy, Symbol('s'), 1n, NaN, null, Object.create(null), [], 'text', { toString: fails, valueOf: fails, [Symbol.toPrimitive]: fails }]
  const report = newReport()
  const registry = newRegistry({}, report)
  const provider = new MeterProvider(() => registry)
  registry.addProvider(provider)
  const instruments = (meter) => Object.getOwnPropertyNames(Object.getPrototypeOf(meter)).filter((name) => name.startsWith('create'))
  for (const odd of hostile) {
    for (const meter of [provider.getMeter(odd, odd, odd), provider.getMeter('shop', '1', odd)]) {
      for (const create of instruments(meter)) {
        meter[create](odd)
        const instrument = meter[create](`a_${create}`, odd)
        for (const method of ['add', 'record', 'addCallback', 'removeCallback']) instrument[method]?.(odd, odd, odd)
        for (const method of ['add', 'record']) instrument[method]?.(1, odd, odd)
        for (const key of ['a', '__proto__']) for (const method of ['add', 'record']) instrument[method]?.(1, Object.defineProperty({}, key, { value: odd, enumerable: true }), odd)
        instrument.addCallback?.((result) => { result.observe(odd, odd); result.observe(1, odd) })
        instrument.addCallback?.(() => { throw odd })
        instrument.addCallback?.(async () => { throw odd })
        meter.addBatchObservableCallback(odd, odd)
        meter.addBatchObservableCallback((result) => { result.observe(odd, odd, odd); result.observe(instrument, 1, odd) }, [odd, instrument])
        meter.addBatchObservableCallback(() => {}, odd)
        meter.removeBatchObservableCallback(odd, odd)
      }
    }
  }
  await registry.observe()
  t.ok(encodeAll(registry).metrics.length > 0)
  t.ok(report.warnings.every((warning) => warning.startsWith('LT_WARN_METRIC_')))
})
