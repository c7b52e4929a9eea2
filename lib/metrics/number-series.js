'use strict'

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
    this.encodedFrom = 0
    this.encodedEnd = 0
    this.encodedStartMs = 0
    this.labels = ''
    this.delivered = null
    this.isForgotten = false // see metric.js
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

module.exports = { NumberSeries, NumberFactory }
