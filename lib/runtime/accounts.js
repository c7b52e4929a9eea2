'use strict'

// What the thread did while a request was open: waited for events, ran code, collected garbage, or did not run.
//
// A ring holds samples of the clock, the loop's idle time, the CPU time and the pauses of the collector. One is taken where a
// recorded request starts or one that is explained ends and the last is older than SPACING_MS: no timer, and nothing while the process is
// idle. A request remembers the index of a sample. Two samples are subtracted where somebody asks, see lib/span/server-span.js.

const { performance, PerformanceObserver } = require('node:perf_hooks')
const { bug } = require('./process-state')
const { now, setImmediate } = require('./timers')

const SPACING_MS = 5 // so that at most 200 samples a second are taken, 4 us each
const SIZE = 8192 // samples, of which a busy process takes this many in 41 s; 256 KiB, of which a quiet one touches little
const FIELDS = 4
const ERROR_SHARE_MAX = 0.1 // of a request: where less is known nothing is said
const NONE = -1 // the index of a request that began at no sample

// Each collection costs 220,000 instructions more while Node tells of it, 300 for each request of a busy hello world. So Node is
// asked for a minute after each request that wants to know.
const GC_WATCHED_MS = 60_000

const { nodeTiming } = performance
const { threadCpuUsage } = process // from Node 22.19 on
// Bun and Deno have the names, and no figures behind them.
const isKnown = process.release?.name === 'node' && process.versions.bun === undefined && process.versions.deno === undefined &&
  typeof nodeTiming?.idleTime === 'number'

const ring = new Float64Array(isKnown ? SIZE * FIELDS : 0) // of each sample: time, idle, CPU and GC, in milliseconds
let spacingMs = SPACING_MS
let count = 0 // of all samples
let sampledAt = NaN
// Of the last sample: its index, and until when it is new enough. One object that stays, because it is read for each request.
const last = { index: NONE, until: isKnown ? -Infinity : Infinity }

/** Samples are taken at most so often from now on: the bench's clock runs slower. */
function spaceBy (ms) {
  spacingMs = ms
  if (isKnown) last.until = -Infinity
}

/**
 * The index of the sample at a request's start.
 * @param {number} start milliseconds on the monotonic clock, read just now
 */
// HOT, once per recorded request. Budget: 0 objects; where a sample is due, those of `process.cpuUsage`.
function mark (start) {
  if (start > last.until) sample()
  return last.index
}

function sample () {
  // Linux counts the thread's time at its ticks, each 1 to 10 ms, and when it is asked for the process's.
  let cpu = process.cpuUsage()
  if (threadCpuUsage !== undefined) cpu = threadCpuUsage.call(process)
  sampledAt = now()
  last.index = count
  last.until = sampledAt + spacingMs
  const place = at(count++)
  ring[place] = sampledAt
  ring[place + 1] = nodeTiming.idleTime
  ring[place + 2] = (cpu.user + cpu.system) / 1000
  ring[place + 3] = gcTotal
  if (observer !== null && sampledAt - wantedAt > GC_WATCHED_MS) unwatchGc()
}

/**
 * Asks for the accounts of a request that ends now. They are there when the event loop has turned: Node tells of a turn's
 * collections in the next one.
 * @param {number} first the index that `mark` gave
 * @param {number} start milliseconds on the monotonic clock
 * @param {number} end
 * @param {(accounts: Accounts | null) => void} done called once, at once where nothing is to come; null: nothing is known after all
 * @returns {boolean} false: nothing is known, and `done` is not called
 *
 * @typedef {{ idle: number, busy: number, gc: number, unscheduled: number, error: number }} Accounts in milliseconds; gc: NaN where
 *   Node was not asked, and then part of `busy`; error: by how much each may be wrong
 */
function account (first, start, end, done) {
  if (first === NONE) return false
  watchGc(end)
  if (end > last.until) sample()
  if (count - first > SIZE) return false
  const from = ring[at(first)]
  const error = Math.max(Math.abs(start - from), Math.abs(end - sampledAt))
  // A hook before ours that took its time, an end that the application has set.
  if (error > Math.max(2 * SPACING_MS, (end - start) * ERROR_SHARE_MAX)) return false
  // A loop that has never waited, or an embedder that does not let Node count it.
  if (ring[at(last.index) + 1] === 0) return false
  const window = { first, final: last.index, error, isWatched: observer !== null && from >= watchedSince, done }
  if (!window.isWatched) settle(window)
  else if (waiting.push(window) === 1) setImmediate(settleAll) // Node's own come before it
  return true
}

function at (index) {
  return (index % SIZE) * FIELDS
}

let waiting = [] // windows of requests that have ended in this turn

function settleAll () {
  if (observer !== null) observer.takeRecords().forEach(credit)
  settleWaiting()
}

function settleWaiting () {
  const windows = waiting
  waiting = []
  for (const window of windows) settle(window)
}

/** Calls what waits for the event loop to turn, without the collections of this turn: somebody wants all that has ended. */
function settleNow () {
  for (const window of waiting) window.isWatched = false
  settleWaiting()
}

function settle ({ first, final, error, isWatched, done }) {
  try {
    if (count - first > SIZE) return done(null)
    const [from, to] = [at(first), at(final)]
    const [wall, idle, cpu, gc] = [0, 1, 2, 3].map((field) => ring[to + field] - ring[from + field])
    done({ ...partsOf(wall, idle, cpu, isWatched ? gc : NaN), error })
  } catch (thrown) { // here it would end the process
    bug(thrown)
  }
}

/**
 * Divides a time into parts, whose sum it is, `gc` left out where it is NaN. What the thread neither waited nor computed it was not
 * run, or stood in a call of the system. A pause of the collector is one, whoever has the CPU meanwhile.
 */
function partsOf (wall, idleTime, cpu, gcTime) {
  const idle = Math.min(Math.max(idleTime, 0), wall)
  const active = wall - idle
  const gc = Math.min(gcTime, active)
  const rest = Number.isNaN(gc) ? active : active - gc
  const unscheduled = Math.min(Math.max(active - cpu, 0), rest)
  return { idle, busy: rest - unscheduled, gc, unscheduled }
}

let observer = null
let watchedSince = Infinity
let wantedAt = 0
let gcTotal = 0

function watchGc (at) {
  wantedAt = at
  if (observer !== null) return
  observer = new PerformanceObserver((list) => list.getEntries().forEach(credit))
  observer.observe({ entryTypes: ['gc'] })
  sample()
  watchedSince = sampledAt
}

function unwatchGc () {
  observer.disconnect()
  observer = null
}

/** Adds a pause to the samples that were taken since: Node tells of it later. */
function credit ({ startTime, duration }) {
  gcTotal += duration
  for (let i = count - 1; i >= 0 && i > count - SIZE && ring[at(i)] > startTime; i--) ring[at(i) + 3] += duration
}

module.exports = { NONE, SPACING_MS, mark, account, settleNow, partsOf, spaceBy }
