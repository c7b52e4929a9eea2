'use strict'

// A series holds the values of one metric for one set of attributes. It is never reset, so a pull is always cumulative. A delta is
// the difference between the series and a copy of the state that the backend has. The copy is replaced when a newer state has been
// delivered, so the next delta includes what could not be delivered.

const { setAttributes } = require('../../span/attributes.js')

/** The number of series of one metric, with the overflow series. */
const SERIES_MAX = 2000

class Series {
  /** @param {readonly any[]} attributes flat list @param {number} startMs monotonic */
  constructor (attributes, startMs) {
    this.attributes = attributes
    this.startMs = startMs
    this.startNanos = null // of a cumulative series, see lib/features/metrics/encoder.js
    this.exemplars = null // an array with a slot for each bucket, created with the first exemplar
    this.encoded = null // the attributes as bytes, see lib/features/metrics/encoder.js
    this.labels = '' // the attributes as Prometheus labels, see lib/features/metrics/prometheus.js
    this.delivered = null // the state that the backend has, if deltas are exported
    this.isForgotten = false // see Metric
    this.min = Infinity // of a histogram; with deltas, of the current interval
    this.max = -Infinity
  }
}

/** One number: a sum, or the last value. */
class NumberSeries extends Series {
  /** @param {boolean} isAdding whether values are summed; false: the last value counts */
  constructor (attributes, startMs, isAdding) {
    super(attributes, startMs)
    this.isAdding = isAdding
    this.value = 0
    this.count = 0 // recordings
  }

  // HOT. Returns the slot for an exemplar.
  record (value) {
    this.value = this.isAdding ? this.value + value : value
    this.count++
    return 0
  }

  get exemplarSlots () { return 1 }

  state () {
    const { value, count, exemplars } = this
    return { value, count, exemplars }
  }

  since (before, state) {
    // A value that fell is a counter that was reset.
    return { ...state, value: state.value < before.value ? state.value : state.value - before.value }
  }
}

/**
 * The delta of a series, or null if nothing was recorded since the last delivery. `atMs` is the time of the collection. `point` has
 * the values to write; `state` is what the backend has once they are delivered.
 */
function takeDelta (series, atMs) {
  const before = series.delivered
  if (series.count === (before === null ? 0 : before.count)) return null
  const state = { ...series.state(), atMs }
  series.min = Infinity
  series.max = -Infinity
  return { series, point: before === null ? state : series.since(before, state), state }
}

// Finds the series of an attributes object without creating a string. It is a tree of maps, with one level for each key and one for
// each value. Objects that the same code creates have their keys in the same order, so they take the same branch.
//
//   { method: 'GET', status: 200 }    root -method-> -'GET'-> -status-> -200-> series
//
// The tree is only an index: the metric owns the series. The same attributes in a different order take a different branch to the
// same series.

// Many orders or values must not grow the tree without limit: beyond this many branches it is cleared.
const BRANCHES_PER_SERIES = 8
// Longer texts get no branch, so that the tree's memory is bounded too.
const BRANCH_CHARS_MAX = 256

class Branch {
  series = null
  children = null // key -> Map of value -> Branch

  child (key, value) {
    return this.children === null ? undefined : this.children.get(key)?.get(value)
  }
}

class SeriesIndex {
  #metric
  #root
  #branches
  #sweeps

  /** @param {{ seriesMax: number, sweeps: number, isOverflow: Function }} metric whose series are found; `sweeps` changes when some are forgotten */
  constructor (metric) {
    this.#metric = metric
    this.#begin()
  }

  #begin () {
    this.#root = new Branch()
    this.#branches = 0
    this.#sweeps = this.#metric.sweeps
  }

  /** The series of `attributes`, or null if they are new in this order or the series was forgotten. HOT */
  find (attributes) {
    let branch = this.#root
    for (const key in attributes) {
      const value = attributes[key]
      if (value === undefined || value === null) continue
      branch = branch.child(key, value)
      if (branch === undefined) return null
    }
    return branch.series?.isForgotten === false ? branch.series : null
  }

  /** The same for a flat list; only the keys in `keys` count. HOT */
  findList (list, keys) {
    let branch = this.#root
    for (let i = 0; i < list.length; i += 2) {
      if (!keys.has(list[i])) continue
      branch = branch.child(list[i], list[i + 1])
      if (branch === undefined) return null
    }
    return branch.series?.isForgotten === false ? branch.series : null
  }

  /** Adds the series of an attributes object. */
  add (attributes, series) {
    const list = []
    for (const key in attributes) {
      const value = attributes[key]
      if (value !== undefined && value !== null) list.push(key, value)
    }
    this.addList(list, series)
  }

  /**
   * Adds the series of a flat list. Lists with an array value get no branch, because arrays are compared by their items. Lists that
   * go to the overflow series get none either, because their number is unlimited.
   */
  addList (list, series) {
    if (this.#metric.isOverflow(series)) return
    const { seriesMax, sweeps } = this.#metric
    // Clears the tree after a sweep, so that the indexes of a hundred routes do not keep forgotten series in memory.
    if (this.#sweeps !== sweeps || this.#branches > seriesMax * BRANCHES_PER_SERIES) this.#begin()
    let branch = this.#root
    for (let i = 0; i < list.length; i += 2) {
      const value = list[i + 1]
      if (typeof value === 'object' || value.length > BRANCH_CHARS_MAX || list[i].length > BRANCH_CHARS_MAX) return
      branch = branch.child(list[i], value) ?? this.#grow(branch, own(list[i]), own(value))
    }
    branch.series = series
  }

  #grow (branch, key, value) {
    this.#branches++
    const child = new Branch()
    branch.children ??= new Map()
    if (!branch.children.has(key)) branch.children.set(key, new Map())
    branch.children.get(key).set(value, child)
    return child
  }
}

/**
 * Converts a user's attributes to the flat list that a series keeps. Maps and bytes, which spans may have, are left out: no metrics
 * backend supports them. It throws only if a getter of the user's throws.
 */
function attributeList (attributes, countMax, lengthMax) {
  const all = []
  setAttributes(all, attributes, countMax, lengthMax)
  const list = []
  for (let i = 0; i < all.length; i += 2) if (isPlain(all[i + 1])) list.push(all[i], all[i + 1])
  return list
}

// A substring of this length or more keeps the whole string in memory; V8 copies shorter ones.
const SLICE_CHARS_MIN = 13

function own (value) {
  return typeof value === 'string' && value.length >= SLICE_CHARS_MIN ? Buffer.from(value, 'utf16le').toString('utf16le') : value
}

function isPlain (value) {
  return typeof value !== 'object' || (Array.isArray(value) && value.every((item) => item === null || typeof item !== 'object'))
}

module.exports = { SERIES_MAX, Series, NumberSeries, takeDelta, SeriesIndex, attributeList, own }
