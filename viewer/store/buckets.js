'use strict'

// The buckets of a histogram: of a point, of what was observed in a slot, or merged from several series. Explicit buckets have bounds.
// Exponential buckets have a scale: bucket i is (base^i, base^(i + 1)] with base = 2^(2^-scale).
// https://opentelemetry.io/docs/specs/otel/metrics/data-model/#exponentialhistogram

const EXPONENTIAL_MAX = 160 // buckets on each side of zero, as OpenTelemetry's SDKs keep them
const CHAIN_MAX = 8

// The memory of an object and its list in addition to the counts, calibrated against the heap (test/viewer/metric-bounds.test.js).
const OVERHEAD_BYTES = 300

class Buckets {
  /**
   * @param {number[] | null} bounds of explicit buckets, ascending; null: exponential @param {number} scale
   * @param {Side} positive @param {Side | null} negative exponential buckets of negative values
   */
  constructor (bounds, scale, positive, negative, zero) {
    this.bounds = bounds
    this.scale = scale
    this.positive = positive
    this.negative = negative
    this.zero = zero // from -zeroThreshold to zeroThreshold
    this.zeroThreshold = 0
    this.count = total(positive) + total(negative) + zero
    this.sum = NaN // NaN: not known
    this.min = NaN // no value is below `min` or above `max`
    this.max = NaN
    this.quantiles = null // of a summary: [[quantile, value]]
    this.next = null // others with other bounds
    if (bounds === null) this.#toScale(this.#scaleFor(this))
  }

  get bytes () {
    return OVERHEAD_BYTES + 8 * (this.positive.counts.length + (this.negative?.counts.length ?? 0)) + 80 * (this.quantiles?.length ?? 0) + (this.next?.bytes ?? 0)
  }

  /** A copy with `share` of each count. */
  part (share) {
    const part = new Buckets(this.bounds, this.scale, shareOf(this.positive, share), this.negative === null ? null : shareOf(this.negative, share), this.zero * share)
    part.count = this.count * share // a summary has no buckets
    part.sum = this.sum * share
    part.zeroThreshold = this.zeroThreshold
    part.min = this.min
    part.max = this.max
    part.quantiles = this.quantiles
    part.next = this.next === null ? null : this.next.part(share)
    return part
  }

  /** Adds `share` of each count. @param {boolean} isSameSeries then the quantiles of a summary are those of `other`, which is newer */
  add (other, share = 1, isSameSeries = true) {
    for (let each = other; each !== null; each = each.next) this.#addOne(each, share, isSameSeries)
  }

  #addOne (other, share, isSameSeries) {
    let mine = this
    for (let steps = 1; !mine.#fits(other); steps++, mine = mine.next) {
      if (steps === CHAIN_MAX) return
      if (mine.next !== null) continue
      const { next } = other
      other.next = null
      mine.next = other.part(share)
      other.next = next
      return
    }
    const scale = mine.bounds === null ? mine.#scaleFor(other) : 0
    mine.#toScale(scale)
    const steps = other.scale - scale
    mine.positive = addSides(mine.positive, coarser(other.positive, steps), share)
    if (other.negative !== null) mine.negative = addSides(mine.negative ?? EMPTY, coarser(other.negative, steps), share)
    mine.zero += other.zero * share
    mine.zeroThreshold = Math.max(mine.zeroThreshold, other.zeroThreshold)
    mine.count += other.count * share
    mine.sum += other.sum * share
    mine.min = Math.min(mine.min, other.min)
    mine.max = Math.max(mine.max, other.max)
    // Quantiles cannot be added up.
    if (mine.quantiles !== null) mine.quantiles = isSameSeries ? other.quantiles : []
  }

  // The highest scale at which the buckets of both are few enough. It is found before they are merged, because they may be far apart.
  #scaleFor (other) {
    let scale = Math.min(this.scale, other.scale)
    while (!fitsIn(this.positive, this.scale - scale, other.positive, other.scale - scale) ||
      !fitsIn(this.negative ?? EMPTY, this.scale - scale, other.negative ?? EMPTY, other.scale - scale)) scale--
    return scale
  }

  #fits (other) {
    return (this.quantiles === null) === (other.quantiles === null) && sameBounds(this.bounds, other.bounds)
  }

  /** What was observed since `before`. @returns {Buckets | null} null if a count fell: the histogram was reset */
  since (before) {
    if (!sameBounds(this.bounds, before.bounds)) return null
    const scale = Math.min(this.scale, before.scale)
    // A sender may have widened its zero bucket, so that it now has in it what was in other buckets.
    const first = this.zeroThreshold === before.zeroThreshold ? -Infinity : firstAbove(Math.max(this.zeroThreshold, before.zeroThreshold), scale)
    const [now, then] = [this.#from(first, scale), before.#from(first, scale)]
    const positive = lessSides(now.positive, then.positive)
    const negative = lessSides(now.negative, then.negative)
    if (positive === null || negative === null || now.zero < then.zero || this.count < before.count) return null
    const since = new Buckets(this.bounds, scale, positive, negative === EMPTY ? null : negative, now.zero - then.zero)
    since.count = this.count - before.count
    since.sum = this.sum - before.sum
    since.zeroThreshold = Math.max(this.zeroThreshold, before.zeroThreshold)
    since.min = this.min
    since.max = this.max
    since.quantiles = this.quantiles
    return since
  }

  /** At a scale, with the buckets before the first of them in the zero bucket. @returns {{ positive: Side, negative: Side, zero: number }} */
  #from (first, scale) {
    let { zero } = this
    const [positive, negative] = [this.positive, this.negative ?? EMPTY].map((each) => {
      const side = coarser(each, this.scale - scale)
      const below = Math.max(0, first - side.offset)
      if (below === 0) return side
      zero += total({ offset: side.offset, counts: side.counts.slice(0, below) })
      return sideOf(side.offset + below, side.counts.slice(below))
    })
    return { positive, negative, zero }
  }

  #toScale (scale) {
    if (scale >= this.scale) return
    this.positive = coarser(this.positive, this.scale - scale)
    if (this.negative !== null) this.negative = coarser(this.negative, this.scale - scale)
    this.scale = scale
  }

  /** null if it is not known. */
  get mean () {
    let [sum, count] = [0, 0]
    for (let each = this; each !== null; each = each.next) {
      sum += each.sum
      count += each.count
    }
    return count > 0 && Number.isFinite(sum) ? sum / count : null
  }

  /**
   * `percentiles`: the values below which these shares of the observations lie, interpolated within the bucket: evenly, and in an exponential
   * bucket by its scale. What lies beyond the last bound counts as the bound. `highest`: the highest value that may have been observed.
   * @param {number[]} shares ascending
   */
  figures (shares) {
    const filled = this.#filled()
    const highest = filled.some(({ isOpen }) => isOpen) ? NaN : filled.at(-1)?.to ?? NaN
    return { percentiles: this.#percentiles(filled, shares), highest: Number.isFinite(highest) ? highest : null }
  }

  #percentiles (filled, shares) {
    if (this.quantiles !== null) return shares.map((share) => this.next === null ? this.quantiles.find(([quantile]) => Math.abs(quantile - share) < 1e-6)?.[1] ?? null : null)
    const all = filled.reduce((sum, { count }) => sum + count, 0)
    if (all === 0 || filled.some(({ to }) => Number.isNaN(to))) return shares.map(() => null)
    let at = 0
    let below = 0
    return shares.map((share) => {
      while (at < filled.length - 1 && below + filled[at].count < share * all) below += filled[at++].count
      const { from, to, count, isLog } = filled[at]
      const rest = Math.min(1, Math.max(0, (share * all - below) / count))
      const value = isLog && from > 0 ? from * (to / from) ** rest : isLog && to < 0 ? from * (to / from) ** rest : from + (to - from) * rest
      return Number.isFinite(value) ? value : null
    })
  }

  /** The buckets that have counts, as { from, to, count, isLog, isOpen }, by their upper bound. `to` is NaN if a bucket has none. */
  #filled () {
    const filled = []
    for (let each = this; each !== null; each = each.next) {
      if (each.bounds === null) each.#exponential(filled)
      else each.#explicit(filled)
    }
    return filled.sort((a, b) => a.to - b.to)
  }

  #explicit (filled) {
    const { bounds, min, max, positive: { offset, counts } } = this
    for (const [i, count] of counts.entries()) {
      if (count <= 0) continue
      const at = offset + i
      const end = bounds[at] ?? Infinity
      const isOpen = end === Infinity && Number.isNaN(max)
      const from = at === 0 ? Number.isNaN(min) ? Math.min(0, bounds[0] ?? 0) : min : bounds[at - 1]
      this.#push(filled, from, isOpen ? bounds[at - 1] ?? NaN : end === Infinity ? max : end, count, false, isOpen)
    }
  }

  #exponential (filled) {
    const bound = (index) => 2 ** (index * 2 ** -this.scale)
    const { positive, negative, zero, zeroThreshold } = this
    for (const [i, count] of negative?.counts.entries() ?? []) if (count > 0) this.#push(filled, -bound(negative.offset + i + 1), -bound(negative.offset + i), count, true)
    if (zero > 0) this.#push(filled, negative === null && !(this.min < 0) ? 0 : -zeroThreshold, zeroThreshold, zero, false)
    for (const [i, count] of positive.counts.entries()) if (count > 0) this.#push(filled, bound(positive.offset + i), bound(positive.offset + i + 1), count, true)
  }

  // `min` and `max` may be wrong, because they come from the sender.
  #push (filled, from, to, count, isLog, isOpen = false) {
    to = Math.min(Number.MAX_VALUE, this.max >= from ? Math.min(to, this.max) : to)
    from = Math.max(-Number.MAX_VALUE, this.min <= to ? Math.max(from, this.min) : from)
    filled.push({ from: Math.min(from, to), to, count, isLog, isOpen })
  }
}

/** Counts of neighbouring buckets, of which the first has the index `offset`. @typedef {{ offset: number, counts: number[] }} Side */

/** @type {Side} never changed */
const EMPTY = { offset: 0, counts: [] }

/** Without the empty buckets at both ends. @returns {Side} */
function sideOf (offset, counts) {
  let from = 0
  let to = counts.length
  while (to > from && counts[to - 1] === 0) to--
  while (from < to && counts[from] === 0) from++
  return from === to ? EMPTY : { offset: offset + from, counts: counts.slice(from, to) }
}

/** Whether two sides, each coarser by steps, are at most EXPONENTIAL_MAX buckets together. */
function fitsIn (a, stepsOfA, b, stepsOfB) {
  const ranges = [[a, stepsOfA], [b, stepsOfB]].filter(([{ counts }]) => counts.length > 0)
  const first = Math.min(...ranges.map(([{ offset }, steps]) => Math.floor(offset / 2 ** steps)))
  const last = Math.max(...ranges.map(([{ offset, counts }, steps]) => Math.floor((offset + counts.length - 1) / 2 ** steps)))
  return ranges.length === 0 || last - first < EXPONENTIAL_MAX
}

function total (side) {
  return side === null ? 0 : side.counts.reduce((sum, count) => sum + count, 0)
}

function shareOf ({ offset, counts }, share) {
  return { offset, counts: share === 1 ? counts.slice() : counts.map((count) => count * share) }
}

function addSides (mine, other, share) {
  if (other.counts.length === 0) return mine
  if (mine.counts.length === 0) return shareOf(other, share)
  const offset = Math.min(mine.offset, other.offset)
  const end = Math.max(mine.offset + mine.counts.length, other.offset + other.counts.length)
  let { counts } = mine
  if (offset !== mine.offset || end - offset !== counts.length) {
    counts = new Array(end - offset).fill(0)
    for (let i = 0; i < mine.counts.length; i++) counts[mine.offset - offset + i] = mine.counts[i]
  }
  for (let i = 0; i < other.counts.length; i++) counts[other.offset - offset + i] += other.counts[i] * share
  return { offset, counts }
}

function lessSides (now, before) {
  if (before.counts.length === 0) return now
  if (before.offset < now.offset || before.offset + before.counts.length > now.offset + now.counts.length) return null
  const counts = now.counts.slice()
  for (let i = 0; i < before.counts.length; i++) {
    const at = before.offset - now.offset + i
    counts[at] -= before.counts[i]
    if (counts[at] < 0) return null
  }
  return sideOf(now.offset, counts)
}

// The bucket that begins at the threshold. A threshold within a bucket counts as the end of it, as OpenTelemetry merges zero buckets.
function firstAbove (zeroThreshold, scale) {
  return Math.ceil(Math.log2(zeroThreshold) * 2 ** scale - 1e-6) // a logarithm is not exact
}

function coarser (side, steps) {
  const { offset, counts } = side
  if (steps === 0 || counts.length === 0) return side
  const factor = 2 ** steps
  const first = Math.floor(offset / factor)
  const merged = new Array(Math.floor((offset + counts.length - 1) / factor) - first + 1).fill(0)
  for (let i = 0; i < counts.length; i++) merged[Math.floor((offset + i) / factor) - first] += counts[i]
  return { offset: first, counts: merged }
}

function sameBounds (a, b) {
  if (a === b) return true
  return a !== null && b !== null && a.length === b.length && a.every((bound, i) => bound === b[i])
}

module.exports = { Buckets, sideOf, EMPTY }
