'use strict'

// Spans are timed by the clock of performance.now(), by whichever way it is read.

const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { test } = require('tap')

const CLOCK = path.join(__dirname, '../../lib/span/clock')

// What else may be in the place of Node's own entry, as code that runs before light-trace is loaded.
const PLACES = {
  'as Node has it': '',
  'without the entry': entryOf('undefined'),
  'an entry without a duration': entryOf('{}'),
  'a duration that is a number': entryOf('{ duration: 7 }'),
  'a duration that throws': entryOf('{ get duration () { throw new Error("no") } }'),
  'a duration that needs its entry': entryOf('{ get duration () { return performance.now() + this.offset }, offset: 0 }'),
  'a duration of another clock': entryOf('{ get duration () { return Date.now() } }'),
  'a duration that is none': entryOf('{ get duration () { return "7" } }')
}

for (const [name, before] of Object.entries(PLACES)) {
  test(`now() is performance.now(): ${name}`, async (t) => {
    const script = `
      const { performance } = require('node:perf_hooks')
      ${before}
      const { now } = require(${JSON.stringify(CLOCK)})
      const times = []
      for (let i = 0; i < 1000; i++) times.push(performance.now(), now())
      times.push(performance.now())
      console.log(JSON.stringify({ ascends: times.every((time, i) => i === 0 || time >= times[i - 1]), type: typeof now() }))`
    t.same(JSON.parse(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' })), { ascends: true, type: 'number' })
  })
}

function entryOf (value) {
  return `Object.defineProperty(performance, 'nodeTiming', { value: ${value}, configurable: true })`
}
