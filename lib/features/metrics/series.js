'use strict'

// A series is what one metric holds for one set of attributes. It only ever grows, so that a pull is always cumulative. A delta
// is the difference between now and a copy of what the backend has, and a newer copy takes its place when the backend has
// that. What could not be delivered is in the next difference.

const { setAttributes } = require('../../span/attributes.js')

class Series {
  /** @param {readonly any[]} attributes flat list @param {number} startMs monotonic */
  constructor (attributes, startMs) {
    this.attributes = attributes
    this.startMs = startMs
    this.startNanos = null // of a cumulative one, see lib/features/metrics/encoder.js
    this.exemplars = null // an array with a slot for each bucket, made when the first exemplar comes
    this.encoded = null // its attributes as bytes, see lib/features/metrics/encoder.js
    this.labels = '' // its attributes as Prometheus labels, see lib/features/metrics/prometheus.js
    this.delivered = null // the state that the backend has, where differences are exported
    this.isForgotten = false // see Metric
    this.min = Infinity // of a histogram; of a delta those of its interval
    this.max = -Infinity
  }
}

/** One number: the sum of what was added, or the last value that was seen. */
class NumberSeries extends Series {
  /** @param {boolean} isAdding false: the last value counts */
  constructor (attributes, startMs, isAdding) {
    super(attributes, startMs)
    this.isAdding = isAdding
    this.value = 0
    this.count = 0 // of recordings
  }

  // HOT. Answers the slot for an exemplar.
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
    // One that falls is a counter that has begun anew.
    return { ...state, value: state.value < before.value ? state.value : state.value - before.value }
  }
}

/**
 * The difference of a series, or null where nothing was recorded since. `atMs` is the time of the collection. `point` has the
 * members of a series that are written, `state` is what the backend has when it is delivered.
 */
function takeDelta (series, atMs) {
  const before = series.delivered
  if (series.count === (before === null ? 0 : before.count)) return null
  const state = { ...series.state(), atMs }
  series.min = Infinity
  series.max = -Infinity
  return { series, point: before === null ? state : series.since(before, state), state }
}

// From an attributes object to its series without making a string: a tree of maps, one level for each key and one for each
// value. Objects that are built by the same code have their keys in the same order, so they take the same branch.
//
//   { method: 'GET', status: 200 }    root -method-> -'GET'-> -status-> -200-> series
//
// The tree only finds. Which series there are is the metric's to say: the same attributes in another order
// take another branch to the same series.

// Many orders or values must not grow the tree without end: beyond this many branches it begins anew.
const BRANCHES_PER_SERIES = 8
// Longer texts have no branch, so that its memory is bounded too.
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

  /** The series of `attributes`, or null where they were not seen yet in this order, or it was forgotten. HOT */
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

  /** The same for a flat list, by those of its keys that are in `keys`. HOT */
  findList (list, keys) {
    let branch = this.#root
    for (let i = 0; i < list.length; i += 2) {
      if (!keys.has(list[i])) continue
      branch = branch.child(list[i], list[i + 1])
      if (branch === undefined) return null
    }
    return branch.series?.isForgotten === false ? branch.series : null
  }

  /** Remembers the series of an attributes object. */
  add (attributes, series) {
    const list = []
    for (const key in attributes) {
      const value = attributes[key]
      if (value !== undefined && value !== null) list.push(key, value)
    }
    this.addList(list, series)
  }

  /** Remembers the series of a flat list. Arrays are compared by what is in them, so they have no branch; what overflows is without end. */
  addList (list, series) {
    if (this.#metric.isOverflow(series)) return
    const { seriesMax, sweeps } = this.#metric
    // What is forgotten is not held in memory, by the indexes of a hundred routes.
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
 * Attributes as a user gives them, as the flat list that a series keeps. Maps and bytes, which spans may have, name no series:
 * no backend of metrics knows them. Never throws but for what a getter of the user's throws.
 */
function attributeList (attributes, countMax, lengthMax) {
  const all = []
  setAttributes(all, attributes, countMax, lengthMax)
  const list = []
  for (let i = 0; i < all.length; i += 2) if (isPlain(all[i + 1])) list.push(all[i], all[i + 1])
  return list
}

// A part of a longer text would keep all of it in memory; V8 copies shorter ones.
const SLICE_CHARS_MIN = 13

function own (value) {
  return typeof value === 'string' && value.length >= SLICE_CHARS_MIN ? Buffer.from(value, 'utf16le').toString('utf16le') : value
}

function isPlain (value) {
  return typeof value !== 'object' || (Array.isArray(value) && value.every((item) => item === null || typeof item !== 'object'))
}

module.exports = { Series, NumberSeries, takeDelta, SeriesIndex, attributeList, own }
