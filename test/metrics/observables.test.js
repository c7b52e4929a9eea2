'use strict'

// What observable instruments count over many collections: the sum that a backend computes is what the callbacks reported, counted once.
// https://opentelemetry.io/docs/specs/otel/metrics/sdk/#asynchronous-instrument-cardinality-limits

const { test } = require('tap')
const clock = require('../../lib/runtime/timers')
const { newRegistry, newMeter, encodeAll } = require('./support')

/** Collects `rounds` of values by key one after the other. Returns for each round the exported values by key. */
async function collected (rounds, settings, create = 'createObservableCounter') {
  const registry = newRegistry({ temporality: 'delta', seriesMax: 10, ...settings })
  let values = {}
  newMeter(registry)[create]('seen').addCallback((result) => {
    if (values instanceof Error) throw values
    for (const [key, value] of Object.entries(values)) result.observe(value, { key })
  })
  const exported = []
  for (values of rounds) {
    await registry.observe()
    const read = encodeAll(registry)
    const points = read.named('seen')?.points ?? []
    exported.push(Object.fromEntries(points.map(({ attributes, value }) => [attributes.key ?? 'overflow', value])))
    read.delivered()
    registry.startInterval(clock.now())
  }
  return exported
}

function each (from, to, value) {
  return Object.fromEntries(Array.from({ length: to - from }, (_, i) => [`k${from + i}`, value]))
}

function total (exported) {
  return exported.flatMap((round) => Object.values(round)).reduce((sum, value) => sum + value, 0)
}

test('with delta, each value beyond the limit of series is counted once', async (t) => {
  const exported = await collected([each(0, 8, 100), each(0, 8, 100), each(0, 12, 100), each(0, 12, 100), each(0, 12, 107)])
  t.same(exported[2], { ...each(0, 8, 0), k8: 100, overflow: 300 })
  t.same(exported[3], { ...each(0, 9, 0), overflow: 0 })
  t.equal(total(exported), 12 * 107)
})

test('values counted in the overflow stay there, even if there is space again', async (t) => {
  const exported = await collected([each(0, 12, 100), each(3, 12, 110), each(3, 12, 120)])
  t.same(exported[2], { ...each(3, 9, 10), overflow: 30 })
  t.equal(total(exported), 3 * 100 + 9 * 120)
})

test('a sum of the overflow that falls is not a negative difference', async (t) => {
  const exported = await collected([each(0, 14, 100), each(0, 12, 100), each(0, 12, 101)])
  t.same(exported.map(({ overflow }) => overflow), [500, 0, 3])
  const cumulative = await collected([each(0, 14, 100), each(0, 12, 100), each(0, 12, 101)], { temporality: 'cumulative' })
  t.same(cumulative.map(({ overflow }) => overflow), [500, 500, 503])
  const upDown = await collected([each(0, 14, 100), each(0, 12, 100)], {}, 'createObservableUpDownCounter')
  t.same(upDown.map(({ overflow }) => overflow), [500, 300])
})

test('with delta, values that one collection missed are not counted again by the next', async (t) => {
  const exported = await collected([each(0, 8, 100), new Error('no connection'), each(0, 8, 105), {}, each(0, 8, 107)])
  t.same(exported, [each(0, 8, 100), {}, each(0, 8, 5), {}, each(0, 8, 2)])
})

test('series that are no longer observed make space for others', async (t) => {
  const rounds = Array.from({ length: 20 }, (_, i) => each(4 * i, 4 * i + 4, 100))
  for (const temporality of ['delta', 'cumulative']) {
    t.same(await collected(rounds, { temporality }), rounds)
    t.same(await collected(rounds, { temporality }, 'createObservableGauge'), rounds)
  }
})

test('a counter that restarts counts from zero', async (t) => {
  t.same(await collected([{ a: 100 }, { a: 30 }, { a: 35 }]), [{ a: 100 }, { a: 30 }, { a: 5 }])
})

test('a value that is seen first was counted since the previous collection, or since the start', async (t) => {
  const registry = newRegistry()
  const startMs = clock.now()
  const times = []
  let count = 0
  newMeter(registry).createObservableCounter('seen').addCallback((result) => {
    count++
    for (let i = 0; i < count; i++) result.observe(1, { i })
  })
  for (let round = 0; round < 2; round++) {
    await registry.observe()
    times.push(clock.now())
  }
  const [first, second] = encodeAll(registry).named('seen').points.map(({ start }) => Number(start) / 1e6)
  const epochMs = (ms) => { const [seconds, nanos] = clock.toHrTime(ms); return seconds * 1000 + nanos / 1e6 }
  t.ok(first <= epochMs(startMs), 'the first one since the start')
  t.ok(second > first && second <= epochMs(times[0]), 'the second one since the first collection')
})
