'use strict'

// GET /api/traces/overview: how many traces started in each slot of time, and how many of them failed.

const { interval } = require('../store/parameters')
const { Search, filterOf } = require('../store/search')
const { startOf } = require('../store/summary')

const SLOTS_MAX = 120
const SIZES_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000]
const SHORTEST_MS = 60_000
const LONGEST_MS = 86_400_000 // without a given start, because a sender's clock may be years off
const SEARCH_MAX_MS = 2000

/** @param {URLSearchParams} query the parameters of GET /api/traces @throws BadParameter */
async function overviewOf (store, query, nowMs = Date.now()) {
  const search = new Search(store, filterOf(query, nowMs), { maxMs: SEARCH_MAX_MS })
  const starts = []
  const failures = []
  for await (const trace of search) {
    starts.push(startOf(trace))
    failures.push(trace.failed)
  }
  const { fromMs, toMs } = rangeOf(starts, interval(query, nowMs), query.get('last') ? nowMs : undefined, nowMs)
  const slotMs = sizeOf(toMs - fromMs)
  const first = Math.floor(fromMs / slotMs)
  const slots = Math.floor(toMs / slotMs) - first + 1
  const result = { nowMs, fromMs, toMs, slotMs, atMs: Array.from({ length: slots }, (_, i) => (first + i) * slotMs), requests: new Array(slots).fill(0), failed: new Array(slots).fill(0), earlier: 0, later: 0 }
  for (const [index, startMs] of starts.entries()) {
    const slot = Math.floor(startMs / slotMs) - first
    if (slot < 0) result.earlier++
    else if (slot >= slots) result.later++
    else {
      result.requests[slot]++
      if (failures[index]) result.failed[slot]++
    }
  }
  return search.stoppedBefore === null ? result : { ...result, incomplete: true }
}

// What the interval leaves open reaches from the oldest to the newest start. A start in the future does not count if there are others.
function rangeOf (starts, within, end, nowMs) {
  let [oldest, newest, future] = [Infinity, -Infinity, -Infinity]
  for (const startMs of starts) {
    oldest = Math.min(oldest, startMs)
    if (startMs <= nowMs) newest = Math.max(newest, startMs)
    else future = Math.max(future, startMs)
  }
  if (newest === -Infinity) newest = future === -Infinity ? nowMs : future
  const toMs = Number.isFinite(within?.toMs) ? within.toMs : Math.max(end ?? newest, within?.fromMs ?? 0)
  if (within !== null && within.fromMs > 0) return { fromMs: within.fromMs, toMs }
  return { fromMs: Math.max(0, Math.min(toMs - SHORTEST_MS, Math.max(oldest, toMs - LONGEST_MS))), toMs }
}

function sizeOf (ms) {
  let size = SIZES_MS.find((each) => ms / each < SLOTS_MAX) ?? LONGEST_MS
  while (ms / size >= SLOTS_MAX) size *= 2
  return size
}

module.exports = { overviewOf }
