'use strict'

// Callbacks whose promise does not settle. The test replaces the timers, so that the longest wait of a round takes no time.
// Alone in its process: the timers are replaced before light-trace reads them.

const { setTimeout } = globalThis
let holding = 0 // our timers that keep the process alive
globalThis.setTimeout = (fn, ms, ...args) => {
  const timer = setTimeout(fn, ms === 5000 ? 1 : ms, ...args)
  if (ms !== 5000) return timer
  holding++
  return { unref () { holding-- } } // nothing else keeps the process alive
}

const { test } = require('tap')
const { newRegistry, newMeter, encodeAll } = require('./support')

test('a pending callback is not called again before it has settled', async (t) => {
  const registry = newRegistry()
  const meter = newMeter(registry)
  let asked = 0
  let settle
  meter.createObservableGauge('stuck').addCallback(() => { asked++; return new Promise((resolve) => { settle = resolve }) })
  meter.createObservableGauge('well').addCallback(async (result) => { result.observe(1) })
  for (let round = 0; round < 3; round++) {
    await registry.observe()
    t.equal(encodeAll(registry).named('well').points.length, 1, 'others are called')
  }
  t.equal(asked, 1)
  t.equal(holding, 0, 'the process may exit meanwhile')
  settle()
  await new Promise(setImmediate)
  await registry.observe()
  t.equal(asked, 2)
})
