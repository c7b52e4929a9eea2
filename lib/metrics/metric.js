'use strict'

// One metric: what it is called and measured in, how it is aggregated, and its series, each for one set of
// attributes. No metric has more series than its limit: what comes beyond goes into one series that says so.
// With delta temporality, a series that was delivered and then stayed quiet gives its place to a new one; whoever holds
// it sees `isForgotten` and asks for it again.
// https://opentelemetry.io/docs/specs/otel/metrics/sdk/#cardinality-limits

const clock = require('../span/clock')
const { attributeList } = require('./attribute-list')
const { isQuiet } = require('./delta')
const { SeriesIndex } = require('./series-index')

const ATTRIBUTES_MAX = 128
const OVERFLOW = Object.freeze(['otel.metric.overflow', true])

class Metric {
  #series = new Map() // canonical text of the attributes → series
  #index = null
  #overflow = null
  #sweptMs = NaN // the interval in which quiet series were last looked for
  #factory
  #onOverflow

  /**
   * @param {{ name: string, description: string, unit: string, isInteger: boolean, isMonotonic: boolean,
   *   isObservable: boolean, isDelta: boolean }} descriptor
   * @param {{ kind: string, make (attributes: Array, startMs: number): object }} factory of its series
   * @param {{ seriesMax: number, attributeLengthMax: number, onOverflow (metric: Metric): void }} limits
   */
  constructor (descriptor, factory, limits) {
    this.name = descriptor.name
    this.description = descriptor.description
    this.unit = descriptor.unit
    this.isInteger = descriptor.isInteger
    this.isMonotonic = descriptor.isMonotonic
    this.isObservable = descriptor.isObservable
    this.isDelta = descriptor.isDelta
    this.kind = factory.kind
    this.bounds = factory.bounds ?? null
    this.seriesMax = limits.seriesMax
    this.attributeLengthMax = limits.attributeLengthMax
    this.encodedHead = null // see otlp/metric-encoder.js
    this.prometheusName = '' // see prometheus.js
    this.bucketEnds = null // the same
    this.deltaStartMs = -1 // where the first interval of a new series begins, see delta.js
    this.openedMs = clock.now()
    this.list = [] // the series that a collection sees
    this.#factory = factory
    this.#onOverflow = limits.onOverflow
  }

  /** The series of an attributes object, made when it is first seen. Never throws. */
  // HOT, once per recording through the API.
  at (attributes) {
    if (attributes === undefined || attributes === null) return this.of([])
    if (this.#index === null) this.#index = new SeriesIndex(this.seriesMax)
    const series = this.#index.find(attributes)
    return series === null || series.isForgotten ? this.#add(attributes) : series
  }

  #add (attributes) {
    const series = this.of(attributeList(attributes, ATTRIBUTES_MAX, this.attributeLengthMax))
    // What overflows is without end, and so it is not remembered.
    if (series !== this.#overflow) this.#index.add(attributes, series)
    return series
  }

  /** The series of a flat list of checked attributes; the overflow series where there are too many. */
  of (list) {
    const key = canonical(list)
    const found = this.#series.get(key)
    if (found !== undefined) return found
    // The last place is the overflow's.
    if (this.list.length >= this.seriesMax - 1 && !this.#forgetQuiet()) return this.#overflowing()
    const series = this.#factory.make(Object.freeze(list), clock.now())
    this.#series.set(key, series)
    this.list.push(series)
    return series
  }

  #overflowing () {
    if (this.#overflow === null) {
      this.#overflow = this.#factory.make(OVERFLOW, clock.now())
      this.list.push(this.#overflow)
      this.#onOverflow(this)
    }
    return this.#overflow
  }

  /**
   * Makes room: forgets the series that have gained nothing since they were delivered. Once for each delivery, so that a
   * request does not look through thousands of series again and again. Cumulative series are exported for ever.
   */
  #forgetQuiet () {
    if (!this.isDelta || this.#sweptMs === this.deltaStartMs) return false
    this.#sweptMs = this.deltaStartMs
    for (const [key, series] of this.#series) {
      if (series === this.#overflow || !isQuiet(this.kind, series)) continue
      series.isForgotten = true
      this.#series.delete(key)
    }
    const { length } = this.list
    this.list = this.list.filter((series) => !series.isForgotten)
    return this.list.length < length
  }

  /** Where the interval of a delta begins: at the last delivery, or with the metric. */
  intervalStart (series) {
    if (this.deltaStartMs === -1) return series.delivered?.atMs ?? Math.min(this.openedMs, series.startMs)
    return Math.max(series.delivered?.atMs ?? -1, this.deltaStartMs)
  }

  /** Whether `series` is the one for all that is over the limit. */
  isOverflow (series) {
    return series === this.#overflow
  }

  /** Keeps a value for `round`. What overflows is added up; else the last value of a round counts. */
  observe (series, value, round) {
    const isFurther = series === this.#overflow && series.round === round && this.kind === 'sum'
    series.observed = isFurther ? series.observed + value : value
    series.round = round
  }

  /** Ends an observation round: its values count now, and what was not observed is gone. */
  endRound (round) {
    let gone = 0
    for (const series of this.list) {
      if (series.round === round) series.set(series.observed)
      else gone++
    }
    if (gone === 0) return
    this.list = this.list.filter((series) => series.round === round)
    for (const [key, series] of this.#series) if (series.round !== round) this.#series.delete(key)
    if (this.#overflow?.round !== round) this.#overflow = null
    this.#index?.clear()
  }
}

/** The same text for the same attributes in any order. JSON tells '1' from 1; NaN and infinities it does not know. */
function canonical (list) {
  if (list.length === 0) return ''
  const pairs = []
  for (let i = 0; i < list.length; i += 2) {
    const value = list[i + 1]
    pairs.push(`${JSON.stringify(list[i])}:${typeof value === 'number' ? value : JSON.stringify(value)}`)
  }
  return pairs.length === 1 ? pairs[0] : pairs.sort().join()
}

module.exports = { Metric, OVERFLOW }
