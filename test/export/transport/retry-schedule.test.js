'use strict'

// When a collector is asked again, in virtual time: outages of every kind and length at every rate.

const { test } = require('tap')
const { RetrySchedule, backoffMs, WAIT_MAX_MS, WAIT_MIN_MS } = require('../../../lib/export/http/retry')
const { randomFrom } = require('../../support/fuzz')

// How a collector that is away fails an attempt: after how long, and by what.
const KINDS = {
  refuses: { takesMs: 1, outcome: { error: { code: 'ECONNREFUSED' }, retryAfterMs: -1 } },
  'has no name': { takesMs: 5, outcome: { error: { code: 'ENOTFOUND' }, retryAfterMs: -1 } },
  resets: { takesMs: 2, outcome: { error: { code: 'ECONNRESET' }, retryAfterMs: -1 } },
  'answers 503': { takesMs: 3, outcome: { error: null, retryAfterMs: -1 } },
  hangs: { takesMs: 10_000, outcome: { error: { code: 'ETIMEDOUT' }, retryAfterMs: -1 } }
}

// The sender over a collector that is away for `outageMs`: when each attempt begins, and the one that finds it back.
function simulate ({ kind, outageMs, random }) {
  const { takesMs, outcome } = KINDS[kind]
  const schedule = new RetrySchedule()
  const attempts = []
  let now = 0
  for (;;) {
    attempts.push(now)
    if (now >= outageMs) return { attempts, noticedAfterMs: now - outageMs }
    now = schedule.failed(outcome, now + takesMs, random())
  }
}

function most (attempts, withinMs) {
  let from = 0
  let max = 0
  attempts.forEach((at, to) => {
    while (attempts[from] <= at - withinMs) from++
    max = Math.max(max, to - from + 1)
  })
  return max
}

for (const kind of Object.keys(KINDS)) {
  test(`a collector that ${kind}: its return is noticed, and it is not run down`, async (t) => {
    const random = randomFrom(1)
    const { takesMs } = KINDS[kind]
    for (const outageMs of [1, 300, 3000, 30_000, 300_000]) {
      for (let n = 0; n < 30; n++) {
        const { attempts, noticedAfterMs } = simulate({ kind, outageMs: outageMs + random() * 1000, random })
        // Of an attempt that hangs the timeout comes first.
        if (noticedAfterMs > WAIT_MAX_MS + takesMs) t.fail(`${outageMs} ms: noticed after ${noticedAfterMs} ms`)
        const max = most(attempts, 1000)
        if (max > 5) t.fail(`${outageMs} ms: ${max} attempts in a second`)
      }
    }
    t.pass()
  })
}

test('an outage of five minutes takes some five hundred attempts', async (t) => {
  const { attempts } = simulate({ kind: 'refuses', outageMs: 300_000, random: () => 0.5 })
  t.ok(attempts.length < 900, `${attempts.length} in 300 s`)
})

test('Retry-After holds, and is over with the next failure that has none', async (t) => {
  const schedule = new RetrySchedule()
  for (const retryAfterMs of [WAIT_MIN_MS, 120_000]) {
    t.equal(schedule.failed({ error: null, retryAfterMs }, 1000, 0.5), 1000 + retryAfterMs)
    t.equal(schedule.isAsked, true)
  }
  const due = schedule.failed({ error: null, retryAfterMs: -1 }, 2000, 0.5)
  t.equal(schedule.isAsked, false)
  t.ok(due >= 2000 + WAIT_MIN_MS && due <= 2000 + WAIT_MAX_MS)
})

// T14
test('the wait grows, is spread over half of its range, and ends where a return must be noticed', async (t) => {
  for (const failures of [1, 2, 5, 10, 1000, Number.MAX_SAFE_INTEGER]) {
    const shortest = backoffMs(failures, 0)
    const longest = backoffMs(failures, 1 - Number.EPSILON)
    t.ok(shortest >= WAIT_MIN_MS && longest <= WAIT_MAX_MS && longest > 1.9 * shortest, `${failures}: ${shortest} to ${longest}`)
  }
  t.ok(backoffMs(1, 0.999) <= 200)
  t.equal(backoffMs(1000, 0), WAIT_MAX_MS / 2)
})
