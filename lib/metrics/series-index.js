'use strict'

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

module.exports = { SeriesIndex }
