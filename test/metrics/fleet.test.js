'use strict'

// A thousand processes that start at the same time, in virtual time: how many of them export metrics in the same second.

const { test } = require('tap')
const { firstAfterMs } = require('../../lib/features/metrics/reader')
const { randomFrom } = require('../support/fuzz')

const PROCESSES = 1000
const HOUR_S = 3600

function exportsBySecond (intervalMs, firstMs) {
  const seconds = new Uint32Array(HOUR_S)
  for (let i = 0; i < PROCESSES; i++) {
    for (let at = firstMs(); at < HOUR_S * 1000; at += intervalMs) seconds[Math.floor(at / 1000)]++
  }
  return seconds
}

test('exports are spread over the whole interval, and stay spread', (t) => {
  for (const intervalMs of [60_000, 15_000, 1_000]) {
    const random = randomFrom(20261125)
    const mean = PROCESSES * Math.min(1, 1000 / intervalMs)
    const seconds = exportsBySecond(intervalMs, () => firstAfterMs(intervalMs, random())).slice(Math.ceil(1.5 * intervalMs / 1000))
    t.ok(Math.max(...seconds) < mean + 5 * Math.sqrt(mean), `${intervalMs}: ${Math.max(...seconds)} in the worst second, ${mean} in the mean`)
    t.ok(Math.min(...seconds) > mean - 5 * Math.sqrt(mean))
    t.equal(Math.max(...exportsBySecond(intervalMs, () => intervalMs)), PROCESSES, 'without the spread, all are in one second')
  }
  t.end()
})

test('no process exports before half of its interval or after one and a half', (t) => {
  t.equal(firstAfterMs(60_000, 0), 30_000)
  t.ok(firstAfterMs(60_000, 1 - 2 ** -53) < 90_001)
  t.end()
})
