'use strict'

// What a series has gained since it was last delivered. A series itself only ever grows: a pull is always
// cumulative. So a delta is the difference between now and a copy of what the backend has, and a copy takes
// the place of the last one when the backend has it. What could not be delivered is in the next difference.

const { mergeBuckets } = require('./exponential-histogram')

/** What a backend has of a series, once it is delivered. */
class Delivered {
  constructor (state, atMs) {
    this.state = state
    this.atMs = atMs
  }
}

/** One difference on its way: what the encoder writes, and what counts as delivered afterwards. */
class Delta {
  constructor (series, point, state, atMs) {
    this.series = series
    this.point = point // has the members of a series that the encoder reads
    this.state = state
    this.atMs = atMs
  }

  delivered () {
    this.series.delivered = new Delivered(this.state, this.atMs)
  }

  /** Minimum and maximum are the interval's, which goes on. */
  failed () {
    const { series, point } = this
    if (series.resetExtremes !== undefined) series.resetExtremes(Math.min(series.min, point.min), Math.max(series.max, point.max))
  }
}

const TAKERS = { histogram: takeHistogram, exponentialHistogram: takeExponential, sum: takeSum }

/** Whether the backend has all that is in a series. */
function isQuiet (kind, { delivered, touched, value, count }) {
  if (delivered === null) return false
  if (kind === 'sum') return !touched && delivered.state === value
  return count === delivered.state.count
}

/** The difference of a series, or null where nothing was recorded since. `nowMs` is the time of the collection. */
function takeDelta (kind, series, nowMs) {
  return TAKERS[kind](series, nowMs)
}

function takeSum (series, nowMs) {
  if (!series.touched) return null
  series.touched = false
  const { value, exemplars } = series
  return new SumDelta(series, { value: value - (series.delivered?.state ?? 0), exemplars }, value, nowMs)
}

class SumDelta extends Delta {
  failed () {
    this.series.touched = true
  }
}

function takeHistogram (series, nowMs) {
  const { bounds, cells, base, sum, min, max, exemplars } = series
  const state = { cells: cells.slice(base, base + bounds.length), count: series.count, sum }
  const before = series.delivered?.state
  if (state.count === (before?.count ?? 0)) return null
  const point = { bounds, cells: state.cells, base: 0, count: state.count, sum, min, max, exemplars }
  if (before !== undefined) {
    point.cells = state.cells.map((count, bucket) => count - before.cells[bucket])
    point.count -= before.count
    point.sum -= before.sum
  }
  series.resetExtremes()
  return new Delta(series, point, state, nowMs)
}

function takeExponential (series, nowMs) {
  const { scale, zeroCount, count, sum, min, max, exemplars } = series
  const { offset, counts } = series.buckets()
  const state = { scale, offset, counts, zeroCount, count, sum }
  const before = series.delivered?.state
  if (count === (before?.count ?? 0)) return null
  const point = { scale, zeroCount, count, sum, min, max, exemplars, buckets: () => ({ offset, counts }) }
  if (before !== undefined) {
    point.zeroCount -= before.zeroCount
    point.count -= before.count
    point.sum -= before.sum
    const gained = without({ offset, counts }, mergeBuckets(before, before.scale - scale))
    point.buckets = () => gained
  }
  series.resetExtremes()
  return new Delta(series, point, state, nowMs)
}

/** The buckets without what was there before, which lies within them. */
function without ({ offset, counts }, before) {
  const gained = counts.slice()
  for (let i = 0; i < before.counts.length; i++) gained[before.offset - offset + i] -= before.counts[i]
  const first = gained.findIndex((count) => count !== 0)
  if (first === -1) return { offset: 0, counts: [] }
  return { offset: offset + first, counts: gained.slice(first, gained.findLastIndex((count) => count !== 0) + 1) }
}

module.exports = { takeDelta, isQuiet }
