'use strict'

// Attributes as a user gives them, as the flat list that a series keeps. Maps and bytes, which spans may have, name no
// series: no backend of metrics knows them.

const { setAttributes } = require('../span/attributes')
const { mergeBuckets } = require('./histograms')

/** Never throws but for what a getter of the user's throws. */
function attributeList (attributes, countMax, lengthMax) {
  const all = []
  setAttributes(all, attributes, countMax, lengthMax)
  const list = []
  for (let i = 0; i < all.length; i += 2) if (isPlain(all[i + 1])) list.push(all[i], all[i + 1])
  return list
}

function isPlain (value) {
  return typeof value !== 'object' || (Array.isArray(value) && value.every((item) => item === null || typeof item !== 'object'))
}

// A series of one number: the sum of what was added, or the last value that was seen.

class NumberSeries {
  /**
   * @param {Array} attributes flat list
   * @param {number} startMs monotonic
   */
  constructor (attributes, startMs) {
    this.attributes = attributes
    this.startMs = startMs
    this.value = 0
    this.touched = false // whether it was recorded to since it was last delivered as a delta
    this.observed = 0 // the value of an observation round that is not over
    this.round = 0 // the last observation round that it was seen in
    this.exemplars = null
    this.encoded = null
    this.encodedStartMs = NaN // not 0, which V8 would take for a small integer
    this.labels = ''
    this.delivered = null
    this.isForgotten = false // see Metric
  }

  // HOT
  add (value) {
    this.value += value
    this.touched = true
  }

  set (value) {
    this.value = value
    this.touched = true
  }

  get exemplarSlots () { return 1 }
}

class NumberFactory {
  /** @param {'sum' | 'gauge'} kind */
  constructor (kind) {
    this.kind = kind
  }

  make (attributes, startMs) {
    return new NumberSeries(attributes, startMs)
  }
}

// From an attributes object to its series without making a string: a tree of maps, one level for each key
// and one for each value. Objects that are built by the same code have their keys in the same order, so they
// take the same branch.
//
//   { method: 'GET', status: 200 }    root ─method→ ─'GET'→ ─status→ ─200→ series
//
// The tree only finds. Which series there are is the metric's to say: the same attributes in another order
// take another branch to the same series.

// Keys in many orders, or values in many kinds, must not grow the tree without end: beyond this many
// branches what is not in it is looked up by text.
const BRANCHES_PER_SERIES = 8

class Branch {
  constructor () {
    this.series = null
    this.children = null // key → Map of value → Branch
  }

  child (key, value) {
    return this.children === null ? undefined : this.children.get(key)?.get(value)
  }

  grow (key, value) {
    if (this.children === null) this.children = new Map()
    let values = this.children.get(key)
    if (values === undefined) this.children.set(key, values = new Map())
    const branch = new Branch()
    values.set(value, branch)
    return branch
  }
}

class SeriesIndex {
  #root = new Branch()
  #branches = 0
  #branchesMax

  constructor (seriesMax) {
    this.#branchesMax = seriesMax * BRANCHES_PER_SERIES
  }

  /** The series of `attributes`, or null where they were not seen yet in this order. HOT */
  find (attributes) {
    let branch = this.#root
    for (const key in attributes) {
      const value = attributes[key]
      if (value === undefined || value === null) continue
      branch = branch.child(key, value)
      if (branch === undefined) return null
    }
    return branch.series
  }

  /** Remembers the series. Arrays are compared by what is in them, so they have no branch. */
  add (attributes, series) {
    let branch = this.#root
    for (const key in attributes) {
      const value = attributes[key]
      if (value === undefined || value === null) continue
      if (typeof value === 'object') return
      branch = this.#grown(branch, key, value)
      if (branch === undefined) return
    }
    branch.series = series
  }

  /** The same for a flat list, by those of its keys that are in `keys`. HOT */
  findList (list, keys) {
    let branch = this.#root
    for (let i = 0; i < list.length; i += 2) {
      if (!keys.has(list[i])) continue
      branch = branch.child(list[i], list[i + 1])
      if (branch === undefined) return null
    }
    return branch.series
  }

  addList (list, series) {
    let branch = this.#root
    for (let i = 0; i < list.length; i += 2) {
      branch = this.#grown(branch, list[i], list[i + 1])
      if (branch === undefined) return
    }
    branch.series = series
  }

  #grown (branch, key, value) {
    const found = branch.child(key, value)
    if (found !== undefined || this.#branches >= this.#branchesMax) return found
    this.#branches++
    return branch.grow(key, value)
  }

  clear () {
    this.#root = new Branch()
    this.#branches = 0
  }
}

// What a series has gained since it was last delivered. A series itself only ever grows: a pull is always
// cumulative. So a delta is the difference between now and a copy of what the backend has, and a copy takes
// the place of the last one when the backend has it. What could not be delivered is in the next difference.

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

module.exports = { attributeList, NumberSeries, NumberFactory, SeriesIndex, takeDelta, isQuiet }
