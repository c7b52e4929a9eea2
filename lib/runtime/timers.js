'use strict'

// Clocks and timers, captured when this file loads: a test suite's fake timers must not stop our export or contain our timers.

const { performance } = require('node:perf_hooks')
const { executionAsyncResource } = require('node:async_hooks')

// setTimeout takes a signed 32-bit number of milliseconds. Above it, the timer fires immediately. 24.8 days serve as "no limit".
const DURATION_MAX_MS = 2 ** 31 - 1

const {
  setTimeout: startTimeout, clearTimeout, setInterval, clearInterval, setImmediate
} = /** @type {typeof globalThis} */ (areFake() ? require('./unfaked-timers.js') : globalThis)

/** Limits `ms` here, after all arithmetic: a timer may fire too early after 24.8 days, but never immediately. */
function setTimeout (fn, ms) { return startTimeout(fn, Math.min(ms, DURATION_MAX_MS)) }

// Jest installs fake timers before it loads any module. They are not among Node's active resources.
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

// Keeps the record of one process.nextTick alive, so that the others stay cheap.
//
// Node creates these records with an object literal that has computed keys. V8 holds their hidden classes weakly. A major garbage
// collection that finds no live record drops them. From then on each request of a Fastify app, traced or not, costs some microseconds
// more until the process ends (bench/upstream/README.md). One live record keeps the hidden classes.

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
  if (resource.callback !== onTick) return // a replaced nextTick, such as a test's fake timers
  record = resource
  // Its async context may belong to a request, which must not be kept alive.
  for (const symbol of Object.getOwnPropertySymbols(record)) {
    if (typeof record[symbol] === 'object') record[symbol] = undefined
  }
}

// One monotonic clock for durations, and one anchor that relates it to the wall clock.
//
// A span stores milliseconds of `performance.now()`. When it is written, they become wall-clock nanoseconds, with the same anchor for
// start and end, so that a step of the wall clock never changes a duration. Both clocks are captured at load, before fake timers.

const now = performance.now.bind(performance)
const wallNow = Date.now

// Date.now() has whole milliseconds, and NTP slews the clock. A smaller drift is ignored in favor of the process's more precise origin.
const DRIFT_MAX_MS = 50
const ANCHOR_INTERVAL_MS = 1000
const TWO_32 = 4294967296
// A smaller number is a value of performance.now(): no process runs for three years, and no span is from 1973.
const EPOCH_MS_MIN = 1e11
const NANOS_MAX_MS = 18446744073709 // 2^64 ns, the end of OTLP's time

let anchoredAt = -Infinity // when the two clocks were last compared
let anchorMs = NaN // wall clock at performance.now() === 0, in milliseconds since the epoch
let anchorHigh = 0 // the same in nanoseconds, in two halves
let anchorLow = 0 // at least 2^32, so that V8 stores it and its sums as doubles

/** Compares the anchor with the wall clock, and corrects it after a step. */
function anchor () {
  const wall = wallNow() - now()
  const current = Number.isNaN(anchorMs) ? performance.timeOrigin : anchorMs
  const next = Number.isFinite(wall) && Math.abs(wall - current) > DRIFT_MAX_MS ? wall : current
  if (next === anchorMs) return
  anchorMs = Math.min(Math.max(next, 0), NANOS_MAX_MS)
  // A double would round today's nanoseconds to multiples of 256, so whole milliseconds and the rest are multiplied separately.
  const whole = Math.floor(anchorMs)
  const nanos = BigInt(whole) * 1000000n + BigInt(Math.round((anchorMs - whole) * 1e6))
  anchorHigh = Number(nanos >> 32n) - 1
  anchorLow = Number(nanos & 0xffffffffn) + TWO_32
}

/** Calls `anchor` at most once a second. `nowMs` is a time that the caller already has. HOT */
function keepAnchored (nowMs) {
  if (nowMs - anchoredAt <= ANCHOR_INTERVAL_MS) return
  anchoredAt = Math.min(nowMs, now()) // the application may have set a span's end, in the future
  anchor()
}

/** Writes monotonic `ms` as OTLP's fixed64 nanoseconds, little endian. HOT, twice per span. */
function writeNanos (view, position, ms) {
  const low = anchorLow + Math.round(ms * 1e6)
  const carry = Math.floor(low / TWO_32)
  // As int32: V8 never inlines this call again once it has seen another kind of number.
  view.setInt32(position, (low - carry * TWO_32) | 0, true)
  view.setInt32(position + 4, (anchorHigh + carry) | 0, true)
}

/** Converts monotonic `ms` to nanoseconds since the epoch. */
function nanosOf (ms) {
  if (Number.isNaN(anchorMs)) anchor()
  return (BigInt(anchorHigh) << 32n) + BigInt(anchorLow) + BigInt(Math.round(ms * 1e6))
}

/** Converts monotonic `ms` to the API's HrTime, [seconds, nanoseconds]. */
function toHrTime (ms) {
  const nanos = nanosOf(ms)
  return [Number(nanos / 1000000000n), Number(nanos % 1000000000n)]
}

/**
 * Converts a time in any form of the API to monotonic milliseconds: a Date, [seconds, nanoseconds], milliseconds since the epoch, or a
 * value of performance.now(). Returns `fallback` for anything else and for times outside OTLP's range.
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
  // The API compares with the process's origin. By that rule an epoch time of an hour ago would mean the year 2083.
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
  // Only for dates, as in a Retry-After.
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
