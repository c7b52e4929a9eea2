'use strict'

// A histogram series with explicit buckets. The counts of its buckets lie side by side in memory that many series share.

const SERIES_PER_SLAB = 64

class ExplicitHistogram {
  /**
   * @param {Array} attributes flat list
   * @param {Float64Array} bounds ascending, the last one is Infinity
   * @param {Float64Array} cells counts of buckets, also of other series
   * @param {number} base index of its first one
   * @param {number} startMs monotonic
   */
  constructor (attributes, bounds, cells, base, startMs) {
    this.attributes = attributes
    this.bounds = bounds
    this.cells = cells
    this.base = base
    this.sum = -0 // not 0, which V8 would take for a small integer, and give up what it has compiled at the first fraction
    this.min = Infinity
    this.max = -Infinity
    this.startMs = startMs
    this.exemplars = null // one slot for each bucket, made when the first exemplar comes
    this.encoded = null // its attributes and start as bytes, see otlp/metric-encoder.js
    this.encodedFrom = 0
    this.encodedEnd = 0
    this.encodedStartMs = NaN // for the same reason
    this.labels = '' // its attributes as Prometheus labels, see prometheus.js
    this.delivered = null // what a delta export has delivered, see delta.js
    this.isForgotten = false // see metric.js
  }

  // HOT, once per request. Budget: 0 objects. Answers the slot for an exemplar, which is the bucket.
  record (value) {
    const { bounds } = this
    let bucket = 0
    while (value > bounds[bucket]) bucket++
    this.cells[this.base + bucket]++
    this.sum += value
    if (value < this.min) this.min = value
    if (value > this.max) this.max = value
    return bucket
  }

  get exemplarSlots () { return this.bounds.length }

  get count () {
    let count = 0
    for (let i = 0; i < this.bounds.length; i++) count += this.cells[this.base + i]
    return count
  }

  /** A copy of the counts, one for each bucket. */
  counts () {
    return Array.from(this.cells.subarray(this.base, this.base + this.bounds.length))
  }

  /** Begins minimum and maximum anew: those of a delta are the interval's. */
  resetExtremes (min = Infinity, max = -Infinity) {
    this.min = min
    this.max = max
  }
}

/** Gives the series of one metric their cells. */
class ExplicitHistogramFactory {
  #cells = null
  #used = 0

  /** @param {Float64Array} bounds */
  constructor (bounds) {
    this.bounds = bounds
    this.kind = 'histogram'
  }

  make (attributes, startMs) {
    const { length } = this.bounds
    if (this.#cells === null || this.#used + length > this.#cells.length) {
      // The first slab is for few: most instruments have a handful of series.
      this.#cells = new Float64Array(length * (this.#cells === null ? 8 : SERIES_PER_SLAB))
      this.#used = 0
    }
    const series = new ExplicitHistogram(attributes, this.bounds, this.#cells, this.#used, startMs)
    this.#used += length
    return series
  }
}

module.exports = { ExplicitHistogram, ExplicitHistogramFactory }
