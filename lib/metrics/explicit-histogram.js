'use strict'

// A histogram series with explicit buckets. Its numbers lie side by side in memory that many series share:
//
//   cells  … | count of each bucket | sum | min | max | …
//            base                   base + bounds.length

const SUM = 0
const MIN = 1
const MAX = 2
const BESIDE_BUCKETS = 3

const SERIES_PER_SLAB = 64

class ExplicitHistogram {
  /**
   * @param {Array} attributes flat list
   * @param {Float64Array} bounds ascending, the last one is Infinity
   * @param {Float64Array} cells
   * @param {number} base index of its first cell
   * @param {number} startMs monotonic
   */
  constructor (attributes, bounds, cells, base, startMs) {
    this.attributes = attributes
    this.bounds = bounds
    this.cells = cells
    this.base = base
    this.beside = base + bounds.length // of sum, min and max
    this.startMs = startMs
    this.exemplars = null // one slot for each bucket, made when the first exemplar comes
    this.encoded = null // its attributes and start as bytes, see otlp/metric-encoder.js
    this.encodedFrom = 0
    this.encodedEnd = 0
    this.encodedStartMs = 0
    this.labels = '' // its attributes as Prometheus labels, see prometheus.js
    this.delivered = null // what a delta export has delivered, see delta.js
    this.isForgotten = false // see metric.js
    cells[this.beside + MIN] = Infinity
    cells[this.beside + MAX] = -Infinity
  }

  // HOT, once per request. Budget: 0 objects. Answers the slot for an exemplar, which is the bucket.
  record (value) {
    const { cells, base, beside, bounds } = this
    let bucket = 0
    while (value > bounds[bucket]) bucket++
    cells[base + bucket]++
    cells[beside + SUM] += value
    if (value < cells[beside + MIN]) cells[beside + MIN] = value
    if (value > cells[beside + MAX]) cells[beside + MAX] = value
    return bucket
  }

  get exemplarSlots () { return this.bounds.length }
  get sum () { return this.cells[this.beside + SUM] }
  get min () { return this.cells[this.beside + MIN] }
  get max () { return this.cells[this.beside + MAX] }

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
    this.cells[this.beside + MIN] = min
    this.cells[this.beside + MAX] = max
  }
}

/** Gives the series of one metric their cells. */
class ExplicitHistogramFactory {
  #cells = null
  #used = 0

  /** @param {Float64Array} bounds */
  constructor (bounds) {
    this.bounds = bounds
    this.width = bounds.length + BESIDE_BUCKETS
    this.kind = 'histogram'
  }

  make (attributes, startMs) {
    if (this.#cells === null || this.#used + this.width > this.#cells.length) {
      // The first slab is for few: most instruments have a handful of series.
      this.#cells = new Float64Array(this.width * (this.#cells === null ? 8 : SERIES_PER_SLAB))
      this.#used = 0
    }
    const series = new ExplicitHistogram(attributes, this.bounds, this.#cells, this.#used, startMs)
    this.#used += this.width
    return series
  }
}

module.exports = { ExplicitHistogram, ExplicitHistogramFactory }
