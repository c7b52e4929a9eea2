'use strict'

// Histogram series, and the exemplars of all series.

const { TraceContext } = require('../../context/trace-context.js')
const { Series } = require('./series.js')

// The bounds of explicit buckets. A bucket counts values less than or equal to its bound.

// Semantic conventions, http.server.request.duration and http.client.request.duration, in seconds.
const HTTP_DURATION = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
// Semantic conventions, db.client.operation.duration, in seconds.
const DB_DURATION = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10]
// Semantic conventions, v8js.gc.duration, in seconds.
const GC_DURATION = [0.01, 0.1, 1, 10]
// The conventions define no bounds for bytes, and the SDK's default bounds are meant for milliseconds.
const BODY_SIZE = [0, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216]
// The SDK specification's default for instruments without advice, meant for milliseconds.
const DEFAULT = [0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000]

/** Ascending bounds with Infinity as the last one, so that a search always ends. */
function searchable (bounds) {
  const finite = bounds.at(-1) === Infinity ? bounds.slice(0, -1) : bounds
  return Float64Array.of(...finite, Infinity)
}

/** Whether `value` is an array of ascending numbers, as histogram bounds must be. */
function areBounds (value) {
  return Array.isArray(value) && value.every((bound, index) => typeof bound === 'number' && bound > -Infinity &&
    (index === 0 || bound > value[index - 1]))
}

/** One measurement with its time and its span's ids. It links a bucket, which keeps the latest one, to a trace. */
class Exemplar extends TraceContext {
  /** @param {number} timeMs monotonic */
  constructor (value, timeMs, span) {
    super()
    this.replace(value, timeMs, span)
  }

  // HOT, once per sampled request. Budget: 0 objects.
  replace (value, timeMs, span) {
    this.value = value
    this.timeMs = timeMs
    this.t0 = span.t0
    this.t1 = span.t1
    this.t2 = span.t2
    this.t3 = span.t3
    this.s0 = span.s0
    this.s1 = span.s1
  }
}

/** Stores the measurement in `slot` of the series' exemplars. HOT, once per sampled request. */
function keepExemplar (series, slot, value, timeMs, span) {
  if ((span.s0 | span.s1) === 0) return // an ignored request under the filter always_on: it has no trace
  if (series.exemplars === null) {
    series.exemplars = new Array(series.exemplarSlots).fill(null)
    if (timeMs < series.startMs) series.startMs = timeMs // the first measurement is older than its series
  }
  const { exemplars } = series
  if (exemplars[slot] === null) exemplars[slot] = new Exemplar(value, timeMs, span)
  else exemplars[slot].replace(value, timeMs, span)
}

const NO_SUM = -0 // a double. 0 is a small integer to V8, which would deoptimise at the first fraction

/** A histogram with explicit buckets. */
class ExplicitHistogram extends Series {
  /** @param {Float64Array} bounds ascending, the last one is Infinity */
  constructor (attributes, bounds, startMs) {
    super(attributes, startMs)
    this.sum = NO_SUM
    this.bounds = bounds
    this.counts = new Array(bounds.length).fill(0)
  }

  // HOT, once per request. Budget: 0 objects. Returns the slot for an exemplar, which is the bucket.
  record (value) {
    const { bounds } = this
    let bucket = 0
    while (value > bounds[bucket]) bucket++
    this.counts[bucket]++
    this.sum += value
    if (value < this.min) this.min = value
    if (value > this.max) this.max = value
    return bucket
  }

  get exemplarSlots () { return this.bounds.length }

  get count () { return this.counts.reduce((all, count) => all + count, 0) }

  state () {
    const { counts, count, sum, min, max, exemplars } = this
    return { counts: counts.slice(), count, sum, min, max, exemplars }
  }

  since (before, state) {
    const counts = state.counts.map((count, bucket) => count - before.counts[bucket])
    return { ...state, counts, count: state.count - before.count, sum: state.sum - before.sum }
  }
}

// A histogram with base-2 exponential buckets, which adapts its bounds to the values. With scale s, the bucket of index i counts
// base^i < value <= base^(i+1), where base = 2^(2^-s). When the values need more buckets than the maximum, the scale falls by one
// and each pair of neighbours is merged.
// https://opentelemetry.io/docs/specs/otel/metrics/data-model/#exponentialhistogram
//
// The counts are in a ring, at their index modulo the number of buckets, so the range grows at both ends without moving anything.

const SCALE_MAX = 20
const SCALE_MIN = -10
// The specification's reservoir: one slot for each bucket, at most this many.
const EXEMPLARS_MAX = 20

class ExponentialHistogram extends Series {
  constructor (attributes, bucketsMax, startMs) {
    super(attributes, startMs)
    this.sum = NO_SUM
    this.scale = SCALE_MAX
    this.factor = 2 ** SCALE_MAX
    this.bucketsMax = bucketsMax
    this.ring = new Float64Array(bucketsMax)
    this.lowest = 0 // index of the lowest bucket in use; meaningless while `count` equals `zeroCount`
    this.highest = -1
    this.zeroCount = 0
    this.count = 0
  }

  // HOT, once per request. Budget: 0 objects. Returns the slot for an exemplar.
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

  /** Extends the range to include `index`, with a smaller scale if needed; returns the index at that scale. */
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

  state () {
    const { scale, zeroCount, count, sum, min, max, exemplars } = this
    return { scale, zeroCount, count, sum, min, max, exemplars, buckets: this.buckets() }
  }

  since (before, state) {
    const buckets = without(state.buckets, mergeBuckets(before.buckets, before.scale - state.scale))
    return { ...state, buckets, zeroCount: state.zeroCount - before.zeroCount, count: state.count - before.count, sum: state.sum - before.sum }
  }
}

function modulo (index, length) {
  const rest = index % length
  return rest < 0 ? rest + length : rest
}

/** The same counts at a smaller scale: every `2^steps` neighbours are merged. */
function mergeBuckets ({ offset, counts }, steps) {
  if (steps === 0 || counts.length === 0) return { offset, counts }
  const lowest = offset >> steps
  const merged = new Array(((offset + counts.length - 1) >> steps) - lowest + 1).fill(0)
  for (let i = 0; i < counts.length; i++) merged[((offset + i) >> steps) - lowest] += counts[i]
  return { offset: lowest, counts: merged }
}

/** Subtracts the counts of `before`, whose range lies within that of the buckets. */
function without ({ offset, counts }, before) {
  const gained = counts.slice()
  for (let i = 0; i < before.counts.length; i++) gained[before.offset - offset + i] -= before.counts[i]
  const first = gained.findIndex((count) => count !== 0)
  if (first === -1) return { offset: 0, counts: [] }
  return { offset: offset + first, counts: gained.slice(first, gained.findLastIndex((count) => count !== 0) + 1) }
}

module.exports = { HTTP_DURATION, DB_DURATION, GC_DURATION, BODY_SIZE, DEFAULT, searchable, areBounds, keepExemplar, mergeBuckets, ExplicitHistogram, ExponentialHistogram }
