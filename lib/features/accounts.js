'use strict'

// Explains slow requests: how long the thread waited for events, ran code, collected garbage, or was not scheduled while the request
// was open. Requests that failed or are kept are explained too. See docs/slow.md.
//
// A sample holds the clock, the event loop's idle time and the CPU time. A sample is taken when a recorded request starts, or an
// explained one ends, and the last sample is older than SPACING_MS. There is no timer, and no work while the process is idle. At the
// end of an explained request, the samples nearest to its start and end are subtracted.
//
// Reading the CPU time costs three times as much as reading the other two. It does not advance while the loop waits, so it is read
// after a certain amount of work, not of time: under a light load it would otherwise be read for each request. Work since the last
// reading counts as CPU time.

const { performance, PerformanceObserver } = require('node:perf_hooks')
const { guarded } = require('../runtime/process-state.js')
const { now, setImmediate } = require('../runtime/timers.js')
const { setClean } = require('../span/attributes.js')
const { GOOD } = require('../span/outcome.js')

const SPACING_MS = 5 // time between samples, and work between readings of the CPU time: at most 200 a second, 4 us each
const SAMPLES_MAX = 8192 // a busy process takes these in 40 s; requests that began earlier are not explained
const UNCERTAIN_SHARE_MAX = 0.1 // of a request's duration: above it, the request is not explained
const UNCERTAIN_MS_MAX = 3 * SPACING_MS // for short requests: one SPACING_MS each for the sample at the start, the sample at the end, and the unread CPU time

// Observing garbage collections costs 220,000 instructions for each one, which is 300 for each request of a busy hello world. So they
// are observed only for a minute after each explained request.
const GC_WATCHED_MS = 60_000
const PAUSES_MAX = 4096 // of the garbage collector that are remembered; before the first of them nothing is known

// For a shorter request, the uncertainty would be most of the result.
const EXPLAINED_AFTER_MS = 20

// In seconds.
const TIMES = [
  ['idle', 'light_trace.time.idle'], ['busy', 'light_trace.time.busy'], ['gc', 'light_trace.time.gc'],
  ['unscheduled', 'light_trace.time.unscheduled'], ['uncertainty', 'light_trace.time.uncertainty']
]

/** An application's part. */
function attach (tracer) {
  const infos = [] // of routes without their own `slow`: the application's may change
  return {
    route (info) {
      if (tracer.output.sdkSpans !== null) return // the spans of an SDK's provider cannot be explained
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

  /** Takes an ended request if it is to be explained. */
  takes (span, endedAt) {
    const isTaken = this.explains(span, endedAt - span.start)
    if (isTaken) explain(span, endedAt)
    return isTaken
  }

  explains (span, ms) { return ms >= this.slow.afterMs || span.isKept || span.outcome !== GOOD }
}

/** Passes the span on once its times are known: in the next turn of the event loop, or at once. */
function explain (span, endedAt) {
  span.stop(endedAt)
  const isComing = account(span.start, endedAt, (parts) => {
    setTimes(span, parts)
    span.pipeline.ended(span)
  })
  if (!isComing) span.pipeline.ended(span)
}

/** If the attribute limit is reached, the user's last attributes are dropped to make room. */
function setTimes (span, parts) {
  span.attributeList ??= []
  span.makeRoom(TIMES.length + 1)
  for (const [name, key] of TIMES) {
    if (!Number.isNaN(parts[name])) setClean(span.attributeList, key, Math.round(parts[name] * 1000) / 1e6, Infinity, span)
  }
}

const { nodeTiming } = performance
const { threadCpuUsage } = process // from Node 22.19 on
// Bun and Deno have these properties, but without real values.
const isKnown = process.release?.name === 'node' && process.versions.bun === undefined && process.versions.deno === undefined &&
  typeof nodeTiming?.idleTime === 'number'

// If only the CPU time of the whole process is known, it advances while this thread waits, because other threads run.
const READ_AGAIN_MS = threadCpuUsage === undefined ? 100 : Infinity

// A ring of the last samples, each [at, idle, cpu, unread]; unread: the part of `cpu` that is assumed since the last reading. Not objects:
// they would live long enough for the garbage collector to copy them, which costs more than creating them.
const FIELDS = 4
const samples = new Float64Array(SAMPLES_MAX * FIELDS)
let taken = 0
let spacingMs = SPACING_MS
let workMs = SPACING_MS
let dueAt = isKnown ? -Infinity : Infinity // when the next sample is due
const lastRead = { at: -Infinity, active: -Infinity, cpu: 0 } // active: how long the loop had been busy in total

/** Sets the time between samples and the work between readings of the CPU time. For the bench, whose clock runs slower. */
function spaceBy (ms, work = SPACING_MS) {
  spacingMs = ms
  workMs = work
  dueAt = isKnown ? -Infinity : Infinity
}

/**
 * Takes a sample at a request's start if one is due.
 * @param {number} start milliseconds on the monotonic clock, of this turn of the event loop
 */
// HOT, once per recorded request. Budget: 0 objects; after SPACING_MS of work those of `process.cpuUsage`.
function takeDueSample (start) {
  if (start > dueAt) keepSample(start, false)
}

/** Takes a sample and reads the CPU time now. */
function takeSample () {
  keepSample(now(), true)
  return sampleOf(taken - 1)
}

// `at` is in this turn of the event loop. The idle time does not change within a turn.
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
  // Linux updates the thread's time at its ticks, every 1 to 10 ms, and when the process's time is read. So the process's is read first.
  let cpu = process.cpuUsage()
  if (threadCpuUsage !== undefined) cpu = threadCpuUsage.call(process)
  lastRead.cpu = (cpu.user + cpu.system) / 1000
}

/** The sample nearest to a time on the monotonic clock; undefined without samples. */
function sampleAt (time) {
  const oldest = Math.max(0, taken - SAMPLES_MAX)
  let i = taken // the first sample at or after `time`
  while (i > oldest && samples[placeOf(i - 1)] >= time) i--
  const before = i > oldest ? sampleOf(i - 1) : undefined
  const after = i < taken ? sampleOf(i) : undefined
  return after === undefined || (before !== undefined && time - before.at < after.at - time) ? before : after
}

/**
 * Computes the accounts of a request that ends now. They are complete in the next turn of the event loop, because Node reports the
 * garbage collections of a turn only then.
 * @param {number} start milliseconds on the monotonic clock
 * @param {(accounts: Accounts) => void} done called once; synchronously if there are no collections to wait for
 * @returns {boolean} false: nothing is known, and `done` is not called
 *
 * @typedef {{ idle: number, busy: number, gc: number, unscheduled: number, uncertainty: number }} Accounts in milliseconds; gc: NaN if
 *   collections were not observed, and then they are part of `busy`; uncertainty: by how much each value may be wrong
 */
function account (start, end, done) {
  if (!isKnown) return false
  watchGc() // before the sample, which may be the first sample of the next request
  if (end > dueAt) keepSample(now(), false)
  const [first, final] = [sampleAt(start), sampleOf(taken - 1)]
  if (first === undefined) return false
  const uncertainty = Math.abs(start - first.at) + Math.abs(end - final.at) + Math.max(first.unread, final.unread)
  // For example, a slow hook ran before ours, or the application set the end time.
  if (uncertainty > Math.max(UNCERTAIN_MS_MAX, (end - start) * UNCERTAIN_SHARE_MAX)) return false
  // The loop has never waited, or an embedder does not let Node measure the idle time.
  if (final.idle === 0) return false
  const window = { first, final, uncertainty, done }
  if (first.at < watchedSince) settle(window, false)
  else if (waiting.push(window) === 1) setImmediate(settleNow, true) // Node's immediate that reports collections runs first
  return true
}

const waiting = [] // windows of requests that ended in this turn

/** Settles all waiting windows. `hasTurned` is false for a flush, which does not wait for this turn's collections. */
function settleNow (hasTurned = false) {
  if (hasTurned && observer !== null) remember(observer.takeRecords())
  for (const window of waiting.splice(0)) settle(window, hasTurned)
}

function settle ({ first, final, uncertainty, done }, hasTurned) {
  const gc = hasTurned && first.at >= watchedSince ? pausedMs(first.at, final.at) : NaN
  // Guarded: an uncaught exception here would end the process.
  guarded(done)({ ...partsOf(final.at - first.at, final.idle - first.idle, final.cpu - first.cpu, gc), uncertainty })
}

/**
 * Divides a time into parts that add up to it; a `gc` of NaN is left out. The thread is unscheduled while it neither waits nor uses the
 * CPU: it did not run, or was blocked in a system call. A garbage collection counts fully as `gc`, whichever thread uses the CPU.
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
