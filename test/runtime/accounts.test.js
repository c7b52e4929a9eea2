'use strict'

// The calculation of what a request waited for, and the samples that it uses. test/slow tests it with real causes.

const { test } = require('tap')
const { now } = require('../../lib/runtime/timers')

const { SPACING_MS, takeDueSample, takeSample, account, settleNow, partsOf, spaceBy } = require('../../lib/features/accounts')

const SAMPLES_MAX = 8192 // that lib/features/accounts keeps

test('the parts add up to the whole, whatever the clocks return', async (t) => {
  for (const [wall, idle, cpu, gc, parts] of [
    [200, 200, 0, 0, { idle: 200, busy: 0, gc: 0, unscheduled: 0 }],
    [200, 50, 150, 0, { idle: 50, busy: 150, gc: 0, unscheduled: 0 }],
    [200, 50, 150, 100, { idle: 50, busy: 50, gc: 100, unscheduled: 0 }],
    [200, 50, 30, 0, { idle: 50, busy: 30, gc: 0, unscheduled: 120 }],
    // The CPU was away during a garbage collection. The time counts as the collection and not twice.
    [200, 0, 50, 200, { idle: 0, busy: 0, gc: 200, unscheduled: 0 }],
    [200, 0, 50, 100, { idle: 0, busy: 0, gc: 100, unscheduled: 100 }],
    // The CPU time is the process's. Other threads use it, too, and hide the time for which this thread was not running.
    [200, 0, 700, 0, { idle: 0, busy: 200, gc: 0, unscheduled: 0 }],
    [200, 201, 3, 1, { idle: 200, busy: 0, gc: 0, unscheduled: 0 }],
    [200, -1, 3, 250, { idle: 0, busy: 0, gc: 200, unscheduled: 0 }],
    [0, 0, 0, 0, { idle: 0, busy: 0, gc: 0, unscheduled: 0 }]
  ]) {
    const found = partsOf(wall, idle, cpu, gc)
    t.same(found, parts)
    t.equal(found.idle + found.busy + found.gc + found.unscheduled, wall)
  }
  const { gc, ...others } = partsOf(200, 50, 100, NaN)
  t.same(others, { idle: 50, busy: 100, unscheduled: 50 }, 'without collections these are part of busy')
  t.ok(Number.isNaN(gc))
})

test('a sample is taken if the last one is older than the spacing, and not before', async (t) => {
  t.teardown(() => spaceBy(SPACING_MS))
  await untilTheLoopHasWaited()
  spaceBy(1e9)
  const { at } = takeSample()
  const start = afterWaiting(t, at, 10 * SPACING_MS)
  takeDueSample(start)
  t.equal(account(start, start, () => {}), false, 'the last one is too old for this request')
  spaceBy(1e9) // makes the next sample due
  takeDueSample(start)
  t.equal(account(start, start, () => {}), true, 'this sample is recent enough')
})

test('the CPU time is read after enough work, and not for each sample', async (t) => {
  t.teardown(() => spaceBy(SPACING_MS))
  await untilTheLoopHasWaited()
  const reads = t.capture(process, 'cpuUsage', process.cpuUsage)
  const readsOf = (fn) => {
    reads()
    fn()
    return reads().length
  }
  const { at } = takeSample()
  spaceBy(-1, 1e9)
  t.equal(readsOf(() => { for (let i = 0; i < 100; i++) takeDueSample(at) }), 0)
  spaceBy(-1, -1)
  t.equal(readsOf(() => { for (let i = 0; i < 100; i++) takeDueSample(now()) }), 100)
  spaceBy(-1)
  work(SPACING_MS)
  t.equal(readsOf(() => takeDueSample(now())), 1)
  spaceBy(-1, 1e9)
  const later = afterWaiting(t, now(), 150)
  const isOfThread = process.threadCpuUsage !== undefined
  t.equal(readsOf(() => takeDueSample(later)), isOfThread ? 0 : 1, isOfThread ? 'waiting is no work' : 'other threads may have worked meanwhile')
})

test('work without a reading of the CPU time counts as running, and is part of the error', async (t) => {
  t.teardown(() => spaceBy(SPACING_MS))
  await untilTheLoopHasWaited()
  spaceBy(-1, 1e9)
  const said = []
  const ask = () => {
    takeSample()
    const isUndisturbed = work(SPACING_MS)
    const start = now()
    takeDueSample(start)
    return account(start, now(), (parts) => said.push(parts)) && isUndisturbed
  }
  while (!ask()); // a busy machine had the CPU in between: then the CPU time is read again
  settleNow()
  const { unscheduled, uncertainty } = said.at(-1)
  t.ok(unscheduled < 1e-6, `${unscheduled} ms`)
  t.ok(uncertainty >= SPACING_MS, `${uncertainty} ms`)
  do takeSample()
  while (!work(3 * SPACING_MS))
  takeDueSample(now())
  t.equal(account(now(), now(), () => t.fail('the callback was called')), false, 'the error is too large')
})

/** @returns {boolean} whether it took little longer */
function work (ms) {
  const until = now() + ms
  while (now() <= until);
  return now() < until + SPACING_MS
}

test('a request whose first sample was overwritten records nothing', async (t) => {
  t.teardown(() => spaceBy(SPACING_MS))
  await untilTheLoopHasWaited()
  const { at: start } = takeSample()
  const end = afterWaiting(t, start, 10 * SPACING_MS)
  const takeSamples = (count) => {
    spaceBy(-1, 1e9) // a sample each time
    for (let i = 0; i < count - 1; i++) takeDueSample(end)
    spaceBy(1e9) // one more, and none when a request ends
    takeDueSample(end)
  }
  takeSamples(SAMPLES_MAX - 1)
  t.equal(account(start, end, () => {}), true)
  takeSamples(1)
  t.equal(account(start, end, () => t.fail('the callback was called')), false)
})

test('a request that began long before the first sample records nothing', async (t) => {
  t.teardown(() => spaceBy(SPACING_MS))
  spaceBy(-1)
  const start = now()
  takeDueSample(start)
  t.equal(account(start - 10_000, now(), () => t.fail('the callback was called')), false)
})

test('reading all ended requests returns them at once, without the collections of the turn', async (t) => {
  t.teardown(() => spaceBy(SPACING_MS))
  spaceBy(-1, -1)
  await untilTheLoopHasWaited()
  const said = []
  // If a busy machine stops this process between two of these lines, the result is unknown. Then the test repeats it.
  const ask = () => {
    const start = now()
    takeDueSample(start)
    if (!account(start, now(), (parts) => said.push(parts))) ask()
  }
  ask() // switches on the recording of garbage collections
  await new Promise((resolve) => setImmediate(resolve))
  const before = said.length
  ask()
  t.equal(said.length, before, 'the next turn reports the collections of this one')
  settleNow()
  t.equal(said.length, before + 1)
  t.ok(Number.isNaN(said.at(-1).gc))
  ask()
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(said.length, before + 2)
  t.type(said.at(-1).gc, 'number')
  t.notOk(Number.isNaN(said.at(-1).gc))
})

test('the samples closest to start and end are subtracted, and the request may differ by its uncertainty', async (t) => {
  t.teardown(() => spaceBy(SPACING_MS))
  await untilTheLoopHasWaited()
  const said = []
  takeSample()
  work(SPACING_MS)
  const first = takeSample()
  const final = afterWaiting(t, first.at, 4 * SPACING_MS)
  spaceBy(1e9)
  takeDueSample(final)
  // Both samples are outside of the request. It is shorter than the time between them, by its distance to each.
  const [start, end] = [first.at + 4, final - 3]
  t.equal(account(start, end, (parts) => said.push(parts)), true)
  settleNow()
  const [{ idle, busy, unscheduled, uncertainty }] = said
  for (const [found, expected] of [[idle, final - first.at], [busy, 0], [unscheduled, 0], [uncertainty, 7]]) {
    t.ok(Math.abs(found - expected) < 1e-6, `${found} ms of ${expected}`)
  }
})

/** The event loop waits only when nothing is due. Before it has waited, nothing can be reported. */
async function untilTheLoopHasWaited () {
  while (performance.nodeTiming.idleTime === 0) await new Promise((resolve) => setTimeout(resolve, 1))
}

/**
 * Lets the loop have waited since `at`. The test sets the clock, because a busy machine may stop this process between any two lines.
 * @returns {number} the time after it
 */
function afterWaiting (t, at, ms) {
  t.intercept(performance.nodeTiming, 'idleTime', { value: performance.nodeTiming.idleTime + ms })
  return at + ms
}
