'use strict'

// What the thread did while a slow request was open: waited for events, ran code, collected garbage, or did not run. One that failed
// or is kept is explained too. See docs/slow.md.
//
// A sample has what the clock, the loop's idle time and the CPU time were. One is taken where a recorded request starts or one that is
// explained ends and the last is older than SPACING_MS: no timer, and nothing while the process is idle. Two of them are subtracted
// at the end of such a request, those nearest to its start and end.
//
// The CPU time takes three times as much to read as the other two. While the loop waits it stands still, so it is read after so much
// work, not after so much time: a light load would read it for each request. Work that came after it counts as having had the CPU.

const { performance, PerformanceObserver } = require('node:perf_hooks')
const { guarded } = require('../runtime/process-state.js')
const { now, setImmediate } = require('../runtime/timers.js')
const { setClean } = require('../span/attributes.js')
const { GOOD } = require('../span/outcome.js')

const SPACING_MS = 5 // of time between samples, and of work between two that read the CPU time: at most 200 a second, 4 us each
const SAMPLES_MAX = 8192 // which a busy process takes in 40 s; what began before is not explained
const UNCERTAIN_SHARE_MAX = 0.1 // of a request: where less is known nothing is said
const UNCERTAIN_MS_MAX = 3 * SPACING_MS // of a short one: what its samples may be off at its start, at its end, and in work that was not read

// Each collection costs 220,000 instructions more while Node tells of it, 300 for each request of a busy hello world. So Node is
// asked for a minute after each request that wants to know.
const GC_WATCHED_MS = 60_000
const PAUSES_MAX = 4096 // of the collector, that are remembered; before the first of them nothing is known

// The accounts of a shorter request would be mostly their error.
const EXPLAINED_AFTER_MS = 20

// In seconds.
const TIMES = [
  ['idle', 'light_trace.time.idle'], ['busy', 'light_trace.time.busy'], ['gc', 'light_trace.time.gc'],
  ['unscheduled', 'light_trace.time.unscheduled'], ['uncertainty', 'light_trace.time.uncertainty']
]

/** An application's part. */
function attach (tracer) {
  const infos = [] // of routes without a measure of their own: the application's may change
  return {
    route (info) {
      if (tracer.output.sdkSpans !== null) return // what a provider's span waited for could not be seen
      if (info.slow === tracer.slow) infos.push(info)
      explainRoute(info)
    },
    slowChanged () { infos.forEach(explainRoute) },
    settle: settleNow
  }
}

function explainRoute (info) {
  const { afterMs } = info.slow
  const isExplained = afterMs !== Infinity
  info.explainer = isExplained ? new RouteAccounts(info.slow) : null
  info.explainedAfterMs = isExplained ? Math.min(afterMs, EXPLAINED_AFTER_MS) : Infinity
}

/** Explains the requests of a route. */
class RouteAccounts {
  constructor (slow) {
    this.slow = slow
  }

  // HOT, once per recorded request.
  started (start) { takeDueSample(start) }

  /** Takes a request that has ended, where there is something to explain. */
  takes (span, endedAt) {
    const isTaken = this.explains(span, endedAt - span.start)
    if (isTaken) explain(span, endedAt)
    return isTaken
  }

  explains (span, ms) { return ms >= this.slow.afterMs || span.isKept || span.outcome !== GOOD }
}

/** Hands it on once it is known what it waited for: when the event loop has turned, or at once. */
function explain (span, endedAt) {
  span.stop(endedAt)
  const isComing = account(span.start, endedAt, (parts) => {
    setTimes(span, parts)
    span.pipeline.ended(span)
  })
  if (!isComing) span.pipeline.ended(span)
}

/** The last of the user's attributes make room for them where the limit leaves none. */
function setTimes (span, parts) {
  span.attributeList ??= []
  span.makeRoom(TIMES.length + 1)
  for (const [name, key] of TIMES) {
    if (!Number.isNaN(parts[name])) setClean(span.attributeList, key, Math.round(parts[name] * 1000) / 1e6, Infinity, span)
  }
}

const { nodeTiming } = performance
const { threadCpuUsage } = process // from Node 22.19 on
// Bun and Deno have the names, and no figures behind them.
const isKnown = process.release?.name === 'node' && process.versions.bun === undefined && process.versions.deno === undefined &&
  typeof nodeTiming?.idleTime === 'number'

// Where only the process's CPU time is known, its other threads compute while this one waits.
const READ_AGAIN_MS = threadCpuUsage === undefined ? 100 : Infinity

// The last samples, in a ring, each of [at, idle, cpu, unread]; unread: how much of `cpu` is work that it was not read for. Objects that
// live so long would be copied by the collector, which takes more than to make them.
const FIELDS = 4
const samples = new Float64Array(SAMPLES_MAX * FIELDS)
let taken = 0
let spacingMs = SPACING_MS
let workMs = SPACING_MS
let dueAt = isKnown ? -Infinity : Infinity // of the next one
const lastRead = { at: -Infinity, active: -Infinity, cpu: 0 } // active: how long the loop had not waited

/** Samples are taken at most so often from now on, and the CPU time is read after so much work: the bench's clock runs slower. */
function spaceBy (ms, work = SPACING_MS) {
  spacingMs = ms
  workMs = work
  dueAt = isKnown ? -Infinity : Infinity
}

/**
 * Takes a sample at a request's start, where one is due.
 * @param {number} start milliseconds on the monotonic clock, of this turn of the event loop
 */
// HOT, once per recorded request. Budget: 0 objects; after SPACING_MS of work those of `process.cpuUsage`.
function takeDueSample (start) {
  if (start > dueAt) keepSample(start, false)
}

/** Takes one whose CPU time is read now. */
function takeSample () {
  keepSample(now(), true)
  return sampleOf(taken - 1)
}

// `at` is of this turn of the event loop, in which the idle time stands still.
function keepSample (at, isRead) {
  const idle = nodeTiming.idleTime
  let unread = at - idle - lastRead.active
  if (isRead || unread > workMs || at - lastRead.at > READ_AGAIN_MS) {
    readCpu()
    at = now()
    lastRead.at = at
    lastRead.active = at - idle
    unread = 0
  }
  const place = placeOf(taken++)
  samples[place] = at
  samples[place + 1] = idle
  samples[place + 2] = lastRead.cpu + unread
  samples[place + 3] = unread
  dueAt = at + spacingMs
  if (observer !== null && at - wantedAt > GC_WATCHED_MS) unwatchGc()
}

function placeOf (i) { return i % SAMPLES_MAX * FIELDS }

function sampleOf (i) {
  const [at, idle, cpu, unread] = samples.subarray(placeOf(i))
  return { at, idle, cpu, unread }
}

function readCpu () {
  // Linux counts the thread's time at its ticks, each 1 to 10 ms, and when it is asked for the process's.
  let cpu = process.cpuUsage()
  if (threadCpuUsage !== undefined) cpu = threadCpuUsage.call(process)
  lastRead.cpu = (cpu.user + cpu.system) / 1000
}

/** The sample nearest to a time on the monotonic clock; undefined where there is none. */
function sampleAt (time) {
  const oldest = Math.max(0, taken - SAMPLES_MAX)
  let i = taken // the first that is not before
  while (i > oldest && samples[placeOf(i - 1)] >= time) i--
  const before = i > oldest ? sampleOf(i - 1) : undefined
  const after = i < taken ? sampleOf(i) : undefined
  return after === undefined || (before !== undefined && time - before.at < after.at - time) ? before : after
}

/**
 * Asks for the accounts of a request that ends now. They are there when the event loop has turned: Node tells of a turn's
 * collections in the next one.
 * @param {number} start milliseconds on the monotonic clock
 * @param {(accounts: Accounts) => void} done called once, at once where nothing is to come
 * @returns {boolean} false: nothing is known, and `done` is not called
 *
 * @typedef {{ idle: number, busy: number, gc: number, unscheduled: number, uncertainty: number }} Accounts in milliseconds; gc: NaN where
 *   Node was not asked, and then part of `busy`; uncertainty: by how much each may be wrong
 */
function account (start, end, done) {
  if (!isKnown) return false
  watchGc() // before the sample, which may be the first one of the next request
  if (end > dueAt) keepSample(now(), false)
  const [first, final] = [sampleAt(start), sampleOf(taken - 1)]
  if (first === undefined) return false
  const uncertainty = Math.abs(start - first.at) + Math.abs(end - final.at) + Math.max(first.unread, final.unread)
  // A hook before ours that took its time, an end that the application has set.
  if (uncertainty > Math.max(UNCERTAIN_MS_MAX, (end - start) * UNCERTAIN_SHARE_MAX)) return false
  // A loop that has never waited, or an embedder that does not let Node count it.
  if (final.idle === 0) return false
  const window = { first, final, uncertainty, done }
  if (first.at < watchedSince) settle(window, false)
  else if (waiting.push(window) === 1) setImmediate(settleNow, true) // Node's own come before it
  return true
}

const waiting = [] // windows of requests that have ended in this turn

/** Calls what waits for the event loop to turn. Before it has, somebody wants all that has ended, without this turn's collections. */
function settleNow (hasTurned = false) {
  if (hasTurned && observer !== null) remember(observer.takeRecords())
  for (const window of waiting.splice(0)) settle(window, hasTurned)
}

function settle ({ first, final, uncertainty, done }, hasTurned) {
  const gc = hasTurned && first.at >= watchedSince ? pausedMs(first.at, final.at) : NaN
  // What it throws would end the process here.
  guarded(done)({ ...partsOf(final.at - first.at, final.idle - first.idle, final.cpu - first.cpu, gc), uncertainty })
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
let pauses = []

function watchGc () {
  wantedAt = now()
  if (observer !== null) return
  observer = new PerformanceObserver((list) => remember(list.getEntries()))
  observer.observe({ entryTypes: ['gc'] })
  watchedSince = now()
}

function unwatchGc () {
  observer.disconnect()
  observer = null
  watchedSince = Infinity
  pauses = []
}

function remember (entries) {
  for (const { startTime, duration } of entries) pauses.push({ startTime, duration })
  if (pauses.length > PAUSES_MAX) watchedSince = pauses.splice(0, pauses.length - PAUSES_MAX / 2).at(-1).startTime
}

function pausedMs (from, to) {
  return pauses.reduce((sum, { startTime, duration }) => startTime >= from && startTime < to ? sum + duration : sum, 0)
}

module.exports = { attach, SPACING_MS, takeDueSample, takeSample, account, settleNow, partsOf, spaceBy }
