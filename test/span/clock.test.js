'use strict'

// Spans are timed by the clock of performance.now().

const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { test } = require('tap')

const CLOCK = path.join(__dirname, '../../lib/runtime/timers')

test('now() is performance.now(), also when a test puts another in its place later', async (t) => {
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

for (const [title, nodeTiming] of [['missing', 'undefined'], ['another clock', '{ get duration () { return 5 } }'], ['a getter that throws', '{ get duration () { throw new Error() } }']]) {
  test(`now() is performance.now() where Node's own timing of the process is ${title}`, async (t) => {
    const script = `
      Object.defineProperty(performance, 'nodeTiming', { value: ${nodeTiming} })
      const { now } = require(${JSON.stringify(CLOCK)})
      const times = [performance.now(), now(), performance.now()]
      console.log(JSON.stringify({ ascends: times[0] <= times[1] && times[1] <= times[2] }))`
    t.same(JSON.parse(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' })), { ascends: true })
  })
}
