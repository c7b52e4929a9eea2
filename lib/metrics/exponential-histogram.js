'use strict'

// A histogram series with base-2 exponential buckets: it finds its own bounds. With scale s a bucket of
// index i takes base^i < value <= base^(i+1), where base = 2^(2^-s). When the values need more buckets
// than there are, the scale falls by one and each two neighbours become one.
// https://opentelemetry.io/docs/specs/otel/metrics/data-model/#exponentialhistogram
//
// Counts lie in a ring: a bucket's place is its index modulo the number of buckets, so that the range may
// grow at both ends without moving anything.

const SCALE_MAX = 20
const SCALE_MIN = -10
const BUCKETS_MAX = 160
// The specification's reservoir: one slot for each bucket, at the most this many.
const EXEMPLARS_MAX = 20

class ExponentialHistogram {
  /**
   * @param {Array} attributes flat list
   * @param {number} bucketsMax
   * @param {number} startMs monotonic
   */
  constructor (attributes, bucketsMax, startMs) {
    this.attributes = attributes
    this.startMs = startMs
    this.scale = SCALE_MAX
    this.factor = 2 ** SCALE_MAX
    this.bucketsMax = bucketsMax
    this.ring = new Float64Array(bucketsMax)
    this.lowest = 0 // index of the lowest bucket in use; meaningless while `count` equals `zeroCount`
    this.highest = -1
    this.zeroCount = 0
    this.count = 0
    this.sum = -0 // not 0, which V8 would take for a small integer, and give up what it has compiled at the first fraction
    this.min = Infinity
    this.max = -Infinity
    this.exemplars = null
    this.encoded = null
    this.encodedFrom = 0
    this.encodedEnd = 0
    this.encodedStartMs = NaN // for the same reason
    this.labels = ''
    this.delivered = null
    this.isForgotten = false // see metric.js
  }

  // HOT, once per request. Budget: 0 objects. Answers the slot for an exemplar.
  record (value) {
    this.count++
    this.sum += value
    if (value < this.min) this.min = value
    if (value > this.max) this.max = value
    if (value <= 0) {
      this.zeroCount++
      return 0
    }
    let index = Math.ceil(Math.log2(value) * this.factor) - 1
    if (index < this.lowest || index > this.highest) index = this.#widen(index, value)
    this.ring[modulo(index, this.bucketsMax)]++
    return modulo(index, EXEMPLARS_MAX)
  }

  /** Makes the range include `index`, by a smaller scale where it must; answers the index at that scale. */
  #widen (index, value) {
    if (this.highest < this.lowest) {
      this.lowest = this.highest = index
      return index
    }
    while (Math.max(index, this.highest) - Math.min(index, this.lowest) >= this.bucketsMax && this.scale > SCALE_MIN) {
      this.#downscale()
      index = Math.ceil(Math.log2(value) * this.factor) - 1
    }
    if (index < this.lowest) this.lowest = index
    if (index > this.highest) this.highest = index
    return index
  }

  #downscale () {
    const ring = new Float64Array(this.bucketsMax)
    for (let index = this.lowest; index <= this.highest; index++) {
      ring[modulo(index >> 1, this.bucketsMax)] += this.ring[modulo(index, this.bucketsMax)]
    }
    this.ring = ring
    this.scale--
    this.factor = 2 ** this.scale
    this.lowest >>= 1
    this.highest >>= 1
  }

  get exemplarSlots () { return EXEMPLARS_MAX }

  /** @returns {{ offset: number, counts: number[] }} the buckets from the lowest to the highest in use */
  buckets () {
    const counts = []
    for (let index = this.lowest; index <= this.highest; index++) counts.push(this.ring[modulo(index, this.bucketsMax)])
    return { offset: this.lowest, counts }
  }

  resetExtremes (min = Infinity, max = -Infinity) {
    this.min = min
    this.max = max
  }
}

function modulo (index, length) {
  const rest = index % length
  return rest < 0 ? rest + length : rest
}

/**
 * The same counts at a smaller scale: each `2^steps` neighbours are one.
 * @param {{ offset: number, counts: number[] }} buckets
 */
function mergeBuckets ({ offset, counts }, steps) {
  if (steps === 0 || counts.length === 0) return { offset, counts }
  const lowest = offset >> steps
  const merged = new Array(((offset + counts.length - 1) >> steps) - lowest + 1).fill(0)
  for (let i = 0; i < counts.length; i++) merged[((offset + i) >> steps) - lowest] += counts[i]
  return { offset: lowest, counts: merged }
}

class ExponentialHistogramFactory {
  constructor (bucketsMax = BUCKETS_MAX) {
    this.kind = 'exponentialHistogram'
    this.bucketsMax = bucketsMax
  }

  make (attributes, startMs) {
    return new ExponentialHistogram(attributes, this.bucketsMax, startMs)
  }
}

module.exports = { ExponentialHistogram, ExponentialHistogramFactory, mergeBuckets }
