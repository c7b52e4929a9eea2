'use strict'

// The times of retries, in virtual time: outages of every kind and length at every rate.

const { test } = require('tap')
const { RetrySchedule, backoffMs, WAIT_MAX_MS, WAIT_MIN_ANSWERED_MS } = require('../../../lib/export/http/retry')
const { WAIT_MIN_MS } = require('../../../lib/export/http/retry')
const { randomFrom } = require('../../support/fuzz')

const BUFFER = 8 * 1024 * 1024
const CHUNK = 256 * 1024

// How an unavailable collector fails an attempt: after how long, and with which outcome.
const KINDS = {
  refuses: { takesMs: 1, outcome: { error: { code: 'ECONNREFUSED' }, retryAfterMs: -1 } },
  'has no name': { takesMs: 5, outcome: { error: { code: 'ENOTFOUND' }, retryAfterMs: -1 } },
  resets: { takesMs: 2, outcome: { error: { code: 'ECONNRESET' }, retryAfterMs: -1 } },
  'answers 503': { takesMs: 3, outcome: { error: null, retryAfterMs: -1 } },
  hangs: { takesMs: 10_000, outcome: { error: { code: 'ETIMEDOUT' }, retryAfterMs: -1 } }
}

// Simulates the sender while the collector is down for `outageMs`. Returns the start of each attempt, and the one that succeeds.
function simulate ({ kind, outageMs, bytesPerSecond, random }) {
  const { takesMs, outcome } = KINDS[kind]
  const schedule = new RetrySchedule(BUFFER)
  const sealEveryMs = CHUNK / bytesPerSecond * 1000
  const written = (at) => Math.floor(at / sealEveryMs) * CHUNK
  const attempts = []
  let now = 0
  for (;;) {
    attempts.push(now)
    schedule.attempted(written(now))
    if (now >= outageMs) return { attempts, noticedAfterMs: now - outageMs }
    now += takesMs
    let due = schedule.failed(outcome, now, random())
    // Like the sender, asks again each time that a chunk is sealed.
    for (let seal = (Math.floor(now / sealEveryMs) + 1) * sealEveryMs; seal < due; seal += sealEveryMs) {
      const sooner = schedule.dueAt(written(seal + 0.001))
      if (sooner < due) due = Math.max(sooner, seal)
    }
    now = due
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
  test(`a collector that ${kind} is not flooded, and its return is noticed`, async (t) => {
    const random = randomFrom(1)
    const { takesMs } = KINDS[kind]
    for (const outageMs of [1, 300, 3000, 30_000, 300_000]) {
      for (const bytesPerSecond of [1, 1000, 100_000, 1e6, 1e7, 1e8]) {
        for (let n = 0; n < 5; n++) {
          const { attempts, noticedAfterMs } = simulate({ kind, outageMs: outageMs + random() * 1000, bytesPerSecond, random })
          const label = `${outageMs} ms at ${bytesPerSecond} bytes a second`
          // An attempt that hangs first has to time out.
          if (noticedAfterMs > WAIT_MAX_MS + takesMs) t.fail(`${label}: noticed after ${noticedAfterMs} ms`)
          const max = most(attempts, 1000)
          if (max > (kind === 'refuses' ? 11 : 5)) t.fail(`${label}: ${max} attempts in a second`)
        }
      }
    }
    t.pass()
  })
}

test('a collector that refuses connections is tried ten times a second if the buffer fills in half a second', async (t) => {
  const { noticedAfterMs, attempts } = simulate({ kind: 'refuses', outageMs: 30_000, bytesPerSecond: 2 * BUFFER, random: () => 0.999 })
  t.ok(noticedAfterMs <= 2 * WAIT_MIN_MS, `${noticedAfterMs}`)
  t.ok(attempts.length > 150)
})

test('and at most twice a second if few spans are written', async (t) => {
  const { attempts } = simulate({ kind: 'refuses', outageMs: 300_000, bytesPerSecond: 100, random: () => 0 })
  t.ok(attempts.length < 900, `${attempts.length} in 300 s`)
})

test('Retry-After is honoured, however fast the buffer fills', async (t) => {
  const schedule = new RetrySchedule(BUFFER)
  for (const retryAfterMs of [WAIT_MIN_MS, 120_000]) {
    schedule.attempted(0)
    t.equal(schedule.failed({ error: null, retryAfterMs }, 1000, 0.5), 1000 + retryAfterMs)
    t.equal(schedule.isAsked, true)
    t.equal(schedule.dueAt(100 * BUFFER), Infinity)
  }
  schedule.failed({ error: null, retryAfterMs: -1 }, 2000, 0.5)
  t.equal(schedule.isAsked, false)
  t.equal(schedule.dueAt(100 * BUFFER), 2000 + WAIT_MIN_ANSWERED_MS)
})

// T14
test('the wait grows, is spread over half of its range, and is limited so that a return is noticed', async (t) => {
  for (const failures of [1, 2, 5, 10, 1000, Number.MAX_SAFE_INTEGER]) {
    const shortest = backoffMs(failures, 0)
    const longest = backoffMs(failures, 1 - Number.EPSILON)
    t.ok(shortest >= WAIT_MIN_MS && longest <= WAIT_MAX_MS && longest > 1.9 * shortest, `${failures}: ${shortest} to ${longest}`)
  }
  t.ok(backoffMs(1, 0.999) <= 200)
  t.equal(backoffMs(1000, 0), WAIT_MAX_MS / 2)
})
