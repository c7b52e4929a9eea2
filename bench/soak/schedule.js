'use strict'

// Decides what fails and when: a seeded sequence of healthy periods and faults.

const { randomFrom } = require('../../test/support/fuzz')

const HEALTHY_S = [3, 8]

// name → duration in seconds, and what the collector does (collector.js). `isDown`: it does not listen.
const FAULTS = {
  gone: { seconds: [2, 20], isDown: true },
  flapping: { seconds: [5, 10], flapEveryMs: 200 },
  hanging: { seconds: [2, 8], how: { hang: true } },
  'answering 503': { seconds: [2, 8], how: { status: 503 } },
  'answering 429 with Retry-After': { seconds: [2, 6], how: { status: 429, headers: { 'retry-after': '1' } } },
  'answering 400': { seconds: [1, 3], how: { status: 400 } },
  'rejecting some': { seconds: [2, 4], how: { reject: 2 } },
  'reading slowly': { seconds: [3, 8], how: { slowly: true } },
  'resetting while we send': { seconds: [2, 6], how: { resetAt: 20_000 } },
  'resetting after we sent': { seconds: [2, 4], how: { resetAfterUpload: true } },
  'answering early and closing': { seconds: [2, 5], how: { status: 503, early: true } },
  'answering without end': { seconds: [2, 5], how: { trickle: true } },
  'closing each connection': { seconds: [2, 6], how: { headers: { connection: 'close' } } }
}

// → [{ name, seconds, … }], at least `seconds` long in total. Every fault occurs once before any occurs again.
function makeSchedule (seconds, seed, healthy) {
  const random = randomFrom(seed)
  const between = ([least, most]) => least + random() * (most - least)
  const schedule = []
  let left = []
  for (let total = 0; total < seconds;) {
    const { name, how } = healthy[Math.floor(random() * healthy.length)]
    if (left.length === 0) left = Object.keys(FAULTS)
    const [fault] = left.splice(Math.floor(random() * left.length), 1)
    const stretch = { name, how, seconds: between(HEALTHY_S) }
    const failing = { name: fault, ...FAULTS[fault], seconds: between(FAULTS[fault].seconds) }
    schedule.push(stretch, failing)
    total += stretch.seconds + failing.seconds
  }
  return schedule
}

module.exports = { makeSchedule }
