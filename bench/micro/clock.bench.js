'use strict'

const assert = require('node:assert')
const bench = require('./harness')
const clock = require('../../lib/runtime/timers')

const view = new DataView(new ArrayBuffer(8))
clock.anchor()

bench('clock: now', {
  step: 1,
  check: () => assert.ok(Math.abs(clock.now() - performance.now()) < 1000),
  run (times) {
    let last = 0
    for (let i = 0; i < times; i++) last = clock.now()
    assert.ok(last > 0)
  }
})

bench('clock: write as nanoseconds', {
  check () {
    clock.writeNanos(view, 0, clock.now())
    const ms = Number(view.getBigUint64(0, true) / 1000000n)
    assert.ok(Math.abs(ms - Date.now()) < 1000)
  },
  run (times) {
    for (let i = 0; i < times; i++) clock.writeNanos(view, 0, 1000.25 + i)
  }
})
