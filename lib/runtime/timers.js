'use strict'

// Clocks and timers, taken at load: fake ones of a test suite must neither stop our export nor see our timers among their own.

const { performance } = require('node:perf_hooks')
const { executionAsyncResource } = require('node:async_hooks')

// setTimeout takes a signed 32-bit number of milliseconds; above, it fires at once. 24.8 days stand for "no limit".
const DURATION_MAX_MS = 2 ** 31 - 1

const {
  setTimeout: startTimeout, clearTimeout, setInterval, clearInterval, setImmediate
} = /** @type {typeof globalThis} */ (areFake() ? require('./unfaked-timers.js') : globalThis)

/** Bounded here, after all arithmetic: a timer may fire before its time, and never at once. */
function setTimeout (fn, ms) { return startTimeout(fn, Math.min(ms, DURATION_MAX_MS)) }

// Jest installs its own before it loads anything. Node does not know of them.
function areFake () {
  const { setTimeout, clearTimeout, setImmediate, clearImmediate } = globalThis
  return isFake('Timeout', setTimeout, clearTimeout) || isFake('Immediate', setImmediate, clearImmediate)
}

function isFake (name, start, clear) {
  const active = () => process.getActiveResourcesInfo?.().filter((resource) => resource === name).length
  const before = active()
  if (before === undefined) return false // another runtime
  const timer = start(() => {}, 1)
  const isKnown = active() > before
  clear(timer)
  return !isKnown
}

// Keeps the record of one process.nextTick, so that the others stay cheap.
//
// Node makes these records by an object literal with computed keys. V8 holds their hidden classes weakly: a major garbage
// collection that finds no record alive forgets them, and from then on each request of a Fastify app, traced or not, costs some
// microseconds more for as long as the process lives (bench/upstream/README.md). One record that lives keeps them.

let isAsked = false
/** @type {{ callback?: Function } | null} */
let record = null

/** Keeps one record. Later calls do nothing. */
function retainTickRecord () {
  if (isAsked) return
  isAsked = true
  process.nextTick(onTick)
}

function onTick () {
  /** @type {{ callback?: Function }} */
  const resource = executionAsyncResource()
  if (resource.callback !== onTick) return // another nextTick, such as the fake timers of a test
  record = resource
  // Its async context, which may be a request's, must not live as long.
  for (const symbol of Object.getOwnPropertySymbols(record)) {
    if (typeof record[symbol] === 'object') record[symbol] = undefined
  }
}

// One monotonic clock for durations, and one anchor between it and the wall clock.
//
// A span keeps milliseconds of `performance.now()`. They become wall-clock nanoseconds when it is written, by the same anchor
// for start and end, so a step of the wall clock never bends a duration. Both are taken at load: fake timers must not reach us.

const now = performance.now.bind(performance)
const wallNow = Date.now

// Date.now() has whole milliseconds, and NTP slews; below this the finer origin of the process wins.
const DRIFT_MAX_MS = 50
const ANCHOR_INTERVAL_MS = 1000
const TWO_32 = 4294967296
// A number below is a value of performance.now(): no process has run for three years, no span is of 1973.
const EPOCH_MS_MIN = 1e11
const NANOS_MAX_MS = 18446744073709 // 2^64 ns, the end of OTLP's time

let anchoredAt = -Infinity // when the two clocks were last compared
let anchorMs = NaN // wall clock at performance.now() === 0, in milliseconds since the epoch
let anchorHigh = 0 // the same in nanoseconds, as two halves
let anchorLow = 0 // from 2^32 up, so that V8 keeps it and its sums as doubles

/** Compares anchor and wall clock, and corrects the anchor after a step. */
function anchor () {
  const wall = wallNow() - now()
  const current = Number.isNaN(anchorMs) ? performance.timeOrigin : anchorMs
  const next = Number.isFinite(wall) && Math.abs(wall - current) > DRIFT_MAX_MS ? wall : current
  if (next === anchorMs) return
  anchorMs = Math.min(Math.max(next, 0), NANOS_MAX_MS)
  // A double would round today's nanoseconds to 256 of them: whole milliseconds and the rest are multiplied apart.
  const whole = Math.floor(anchorMs)
  const nanos = BigInt(whole) * 1000000n + BigInt(Math.round((anchorMs - whole) * 1e6))
  anchorHigh = Number(nanos >> 32n) - 1
  anchorLow = Number(nanos & 0xffffffffn) + TWO_32
}

/** The same at most once a second, at a time that the caller has at hand. HOT */
function keepAnchored (nowMs) {
  if (nowMs - anchoredAt <= ANCHOR_INTERVAL_MS) return
  anchoredAt = Math.min(nowMs, now()) // a span's end may be the application's, and lie ahead
  anchor()
}

/** Writes monotonic `ms` as OTLP's fixed64 nanoseconds, little endian. HOT, twice per span. */
function writeNanos (view, position, ms) {
  const low = anchorLow + Math.round(ms * 1e6)
  const carry = Math.floor(low / TWO_32)
  // As int32: a call that has once been given another number is never inlined again.
  view.setInt32(position, (low - carry * TWO_32) | 0, true)
  view.setInt32(position + 4, (anchorHigh + carry) | 0, true)
}

/** Monotonic `ms` as nanoseconds since the epoch. */
function nanosOf (ms) {
  if (Number.isNaN(anchorMs)) anchor()
  return (BigInt(anchorHigh) << 32n) + BigInt(anchorLow) + BigInt(Math.round(ms * 1e6))
}

/** The same as the API's HrTime, [seconds, nanoseconds]. */
function toHrTime (ms) {
  const nanos = nanosOf(ms)
  return [Number(nanos / 1000000000n), Number(nanos % 1000000000n)]
}

/**
 * A time in any of the API's forms as monotonic milliseconds: a Date, [seconds, nanoseconds], milliseconds since the epoch, or
 * a value of performance.now(). Anything else, and what does not fit OTLP's range, is `fallback`.
 */
function fromTimeInput (input, fallback) {
  if (input === undefined || input === null) return fallback
  if (Number.isNaN(anchorMs)) anchor()
  try {
    const ms = monotonic(input)
    return ms >= -anchorMs && ms <= NANOS_MAX_MS - anchorMs ? ms : fallback
  } catch { // a BigInt, a revoked proxy, a broken Date
    return fallback
  }
}

function monotonic (input) {
  // The API compares with the process's origin, by which an hour ago would be the year 2083.
  if (typeof input === 'number') return input < EPOCH_MS_MIN || input <= now() ? input : input - anchorMs
  if (Array.isArray(input)) return (input[0] * 1000 - anchorMs) + input[1] / 1e6
  return input instanceof Date ? input.getTime() - anchorMs : NaN
}

module.exports = {
  DURATION_MAX_MS,
  setTimeout,
  clearTimeout,
  setInterval,
  clearInterval,
  setImmediate,
  // For every deadline: the wall clock may be stepped by an hour while we wait.
  monotonicNow: now,
  // Only where the wall clock is what is asked for: the date in a Retry-After.
  wallNow,
  retainTickRecord,
  now,
  anchor,
  keepAnchored,
  writeNanos,
  nanosOf,
  toHrTime,
  fromTimeInput
}
