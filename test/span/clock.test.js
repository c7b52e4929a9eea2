'use strict'

// Spans are timed with the clock of performance.now().

const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { test } = require('tap')

const CLOCK = path.join(__dirname, '../../lib/runtime/timers')

test('now() is performance.now(), even if a test replaces it later', async (t) => {
  const script = `
    const { performance } = require('node:perf_hooks')
    const { now } = require(${JSON.stringify(CLOCK)})
    const real = performance.now.bind(performance)
    performance.now = () => -1
    const times = []
    for (let i = 0; i < 1000; i++) times.push(real(), now())
    times.push(real())
    console.log(JSON.stringify({ ascends: times.every((time, i) => i === 0 || time >= times[i - 1]), type: typeof now() }))`
  t.same(JSON.parse(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' })), { ascends: true, type: 'number' })
})
