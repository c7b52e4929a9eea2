'use strict'

// Reads what a request waited for, which light-trace records on slow requests: see docs/slow.md. Any sender may have sent the span, so the
// values are not trusted.

const { WAITS } = require('../../lib/features/console')
const { readSomeAttributes } = require('../otlp/attributes')
const { KIND_SERVER } = require('../otlp/names')

const KEYS = WAITS.map(([key]) => key)
const WANTED = new Set(KEYS)
const SHORTEST_MS = 10 // shorter requests record no waits unless their route asks for it, so most spans need not be read
const SHARE_MIN = 0.01

/** @returns {number[] | undefined} milliseconds of each of WAITS */
function waitsOf (span) {
  if (span.kind !== KIND_SERVER || span.durationMs < SHORTEST_MS) return undefined
  const found = readSomeAttributes(span, WANTED)
  if (found.size === 0) return undefined
  const waits = KEYS.map((key) => {
    const seconds = found.get(key)
    return typeof seconds === 'number' && seconds > 0 && seconds < 1e9 ? seconds * 1000 : 0
  })
  return waits.some((ms) => ms > 0) ? waits : undefined
}

/** The index of the longest wait. */
function longestWait (waits) {
  return waits.indexOf(Math.max(...waits))
}

/** '1.2 s waiting, 300 ms busy event loop': the longest first. Waits below SHARE_MIN of the sum are left out. */
function waitText (waits, duration) {
  const least = waits.reduce((sum, ms) => sum + ms, 0) * SHARE_MIN
  return waits.map((ms, i) => ({ ms, name: WAITS[i][1] })).filter(({ ms }) => ms >= least).sort((a, b) => b.ms - a.ms)
    .map(({ ms, name }) => `${duration(ms)} ${name}`).join(', ')
}

/** '12 waiting, 3 busy event loop', or ''. @param {number[]} counts number of requests for each longest wait */
function reasonText (counts) {
  return counts.map((count, i) => ({ count, name: WAITS[i][1] })).filter(({ count }) => count > 0).sort((a, b) => b.count - a.count)
    .map(({ count, name }) => `${count} ${name}`).join(', ')
}

module.exports = { waitsOf, longestWait, waitText, reasonText, WAITS }
