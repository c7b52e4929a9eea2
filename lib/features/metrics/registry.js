'use strict'

// All metrics of one application by scope, and the callbacks of observable instruments, which run before each collection.

const clock = require('../../runtime/timers.js')
const { parentIn, SAMPLED } = require('../../context/trace-context.js')
const { settleWithin } = require('../../export/exporter.js')
const { SERIES_MAX, attributeList, NumberSeries, SeriesIndex, own } = require('./series.js')
const { DEFAULT, searchable, ExplicitHistogram, ExponentialHistogram } = require('./histograms.js')

// A metric and its series, one for each set of attributes. The number of series is limited: attributes beyond the limit share one
// overflow series. Two kinds of series are forgotten to make room for new ones: with delta temporality, those that were delivered
// and not used since; of observables, those that the last round did not report. Code that holds a series checks `isForgotten` and
// then asks for the series again.
// https://opentelemetry.io/docs/specs/otel/metrics/sdk/#cardinality-limits

const ATTRIBUTES_MAX = 128
// The keys of all series of one metric: a thousand characters each.
const CHARS_MAX = 2_000_000
const EXPONENTIAL_BUCKETS_MAX = 160
const OVERFLOW = Object.freeze(['otel.metric.overflow', true])

class Metric {
  #series = new Map() // canonical text of the attributes -> series
  #chars = 0 // the length of all keys of #series
  #index // finds the series of an attributes object that the API was given
  #overflow = null
  #sweptAt = NaN // the interval or round of the last search for quiet series
  #observed = new Map() // series -> value, in the current round of an observable
  #roundMs // when the last round ended
  #overflowed = 0 // the value of an observable's overflow series in the last round
  #registry
  #omit

  constructor (descriptor, registry) {
    this.name = descriptor.name
    this.description = descriptor.description
    this.unit = descriptor.unit
    this.kind = descriptor.kind
    this.bounds = descriptor.bounds // of explicit buckets, or null
    this.isInteger = descriptor.isInteger
    this.isMonotonic = descriptor.isMonotonic
    this.isObservable = descriptor.isObservable
    this.isDelta = descriptor.isDelta
    this.seriesMax = registry.settings.seriesMax ?? SERIES_MAX
    this.attributeLengthMax = registry.settings.attributeLengthMax
    this.sweeps = 0 // how often series were forgotten
    this.deltaStartMs = -1 // the start of a new series' first interval
    this.openedMs = descriptor.openedMs // when measuring began
    this.#roundMs = descriptor.openedMs
    this.list = [] // the series that are exported
    this.#registry = registry
    this.#omit = registry.settings.omit ?? null
    this.#index = new SeriesIndex(this)
  }

  /** The series of an attributes object, created when the attributes are first seen. Throws only if a getter of theirs throws. */
  // HOT, once per recording through the API.
  at (attributes) {
    if (attributes === undefined || attributes === null) return this.of([])
    return this.#index.find(attributes) ?? this.#atNew(attributes)
  }

  #atNew (attributes) {
    const series = this.of(attributeList(attributes, ATTRIBUTES_MAX, this.attributeLengthMax))
    this.#index.add(attributes, series)
    return series
  }

  /** The series of a flat list of checked attributes, or the overflow series at the limit. */
  of (all) {
    const list = this.#omit === null ? all : this.#omit.strip(all)
    const key = canonical(list)
    const found = this.#series.get(key)
    if (found !== undefined) return found
    // The last place is reserved for the overflow series.
    const isFull = this.#series.size >= this.seriesMax - 1 || this.#chars + key.length > CHARS_MAX
    // Once an observable counter has reported in the overflow series, it stays there: a series of its own would count it twice.
    const stays = this.#overflow !== null && this.isObservable && this.isMonotonic
    if (stays || (isFull && !this.#forgetQuiet())) return this.#overflowing()
    const series = this.#add(Object.freeze(list.map(own)))
    this.#series.set(key, series)
    this.#chars += key.length
    return series
  }

  #overflowing () {
    if (this.#overflow === null) {
      this.#overflow = this.#add(OVERFLOW)
      this.#registry.overflowed.add(this.name)
      this.#registry.report.warn('LT_WARN_METRIC_OVERFLOW', `the metric '${this.name}' has ${this.seriesMax} series, the limit: further ones are aggregated as otel.metric.overflow. Use attributes with fewer values`, this.name)
    }
    return this.#overflow
  }

  #add (attributes) {
    if (this.isObservable) return new NumberSeries(attributes, this.#roundMs, false) // endRound() adds it to the list
    const series = this.#newSeries(attributes, clock.now())
    this.list.push(series)
    return series
  }

  #newSeries (attributes, startMs) {
    if (this.bounds !== null) return new ExplicitHistogram(attributes, this.bounds, startMs)
    if (this.kind === 'exponentialHistogram') return new ExponentialHistogram(attributes, EXPONENTIAL_BUCKETS_MAX, startMs)
    return new NumberSeries(attributes, startMs, this.kind === 'sum')
  }

  // Makes room for new series, at most once for each delivery or round, so that not every request searches thousands of series.
  // Cumulative series are never forgotten, except those of observables.
  #forgetQuiet () {
    const { isObservable } = this
    const now = isObservable ? this.#roundMs : this.deltaStartMs
    if ((!this.isDelta && !isObservable) || this.#sweptAt === now) return false
    this.#sweptAt = now
    this.sweeps++
    const { size } = this.#series
    const seen = new Set(isObservable ? [...this.list, ...this.#observed.keys()] : [])
    for (const [key, series] of this.#series) {
      series.isForgotten = isObservable ? !seen.has(series) : series.delivered?.count === series.count
      if (!series.isForgotten) continue
      this.#series.delete(key)
      this.#chars -= key.length
    }
    this.list = this.list.filter((series) => !series.isForgotten)
    return this.#series.size < size
  }

  /** The start of a delta's interval: the last delivery, or the start of the metric. */
  intervalStart (series) {
    if (this.deltaStartMs === -1) return series.delivered?.atMs ?? Math.min(this.openedMs, series.startMs)
    return Math.max(series.delivered?.atMs ?? -1, this.deltaStartMs)
  }

  /** Whether `series` is the overflow series. */
  isOverflow (series) { return series === this.#overflow }

  /** Keeps a value until the round ends. If several values share a series, sums are added up; otherwise the last value counts. */
  observe (series, value) {
    const isShared = series === this.#overflow || this.#omit !== null
    const before = isShared && this.kind === 'sum' ? this.#observed.get(series) ?? 0 : 0
    this.#observed.set(series, before + value)
  }

  /**
   * Ends a round of observations and records its values. A series that was not observed is not exported, but it is kept: its callback
   * may have failed, and its count must not be added again later.
   */
  endRound () {
    for (const [series, value] of this.#observed) {
      // The overflow of a counter grows by the increase of the sum. It does not fall when one of the counters disappears.
      const isGrowing = series === this.#overflow && this.isMonotonic
      series.record(isGrowing ? series.value + Math.max(0, value - this.#overflowed) : value)
      if (series === this.#overflow) this.#overflowed = value
    }
    this.list = [...this.#observed.keys()]
    this.#observed.clear()
    this.#roundMs = clock.now()
  }
}

/** The same text for the same attributes in any order. JSON distinguishes '1' from 1, but has no NaN or infinities. */
function canonical (list) {
  if (list.length === 0) return ''
  const pairs = []
  for (let i = 0; i < list.length; i += 2) {
    const value = list[i + 1]
    pairs.push([list[i], typeof value === 'number' && !Number.isFinite(value) ? { value: `${value}` } : value])
  }
  return JSON.stringify(pairs.sort(byKey))
}

function byKey ([a], [b]) { return a < b ? -1 : 1 }

// A limit for applications that put user data into instrument names.
const METRICS_MAX = 1000
// A callback that never settles must not stop all metrics.
const CALLBACKS_MS = 5000

// Which instruments report deltas: OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE.
const DELTA_INSTRUMENTS = {
  cumulative: [],
  delta: ['counter', 'observableCounter', 'histogram'],
  lowmemory: ['counter', 'histogram']
}

// OTEL_METRICS_EXEMPLAR_FILTER: which bits of a span's flags are checked, and which always count as set.
const EXEMPLAR_FLAGS = {
  trace_based: { mask: SAMPLED, set: 0 },
  always_on: { mask: SAMPLED, set: SAMPLED },
  always_off: { mask: 0, set: 0 }
}

const INSTRUMENTS = {
  counter: { kind: 'sum', isMonotonic: true, isObservable: false },
  upDownCounter: { kind: 'sum', isMonotonic: false, isObservable: false },
  histogram: { kind: 'histogram', isMonotonic: true, isObservable: false },
  gauge: { kind: 'gauge', isMonotonic: false, isObservable: false },
  observableCounter: { kind: 'sum', isMonotonic: true, isObservable: true },
  observableUpDownCounter: { kind: 'sum', isMonotonic: false, isObservable: true },
  observableGauge: { kind: 'gauge', isMonotonic: false, isObservable: true }
}

class MetricRegistry {
  #scopes = new Map() // scope key -> { scope, metrics }
  #metrics = new Map() // scope key, instrument, name ... -> metric
  #observables = [] // the metrics of observable instruments
  #providers = []
  #roundMs = clock.now() // when the last round of observations ended
  #running = null
  #unanswered = new Set() // callbacks whose promise has not settled
  #activeContext

  /**
   * @param {{ temporality: 'cumulative' | 'delta' | 'lowmemory', histograms: 'explicit' | 'exponential',
   *   exemplars: 'trace_based' | 'always_on' | 'always_off', seriesMax?: number, attributeLengthMax: number, ownScope?: string, omit?: import('../omit').Omission | null }} settings
   *   ownScope: the key of light-trace's own scope
   */
  constructor (settings, report, activeContext) {
    this.settings = settings
    this.exemplarFlags = EXEMPLAR_FLAGS[settings.exemplars]
    this.#activeContext = activeContext
    this.overflowed = new Set() // names of the metrics that have reached their limit
    /** @type {Report} */ this.report = report
  }

  /**
   * The metric of an instrument: the same one for the same scope, kind, name and unit.
   * @param {Scope} scope @param {string} instrument one of INSTRUMENTS
   * @param {{ name: string, description?: string, unit?: string, isInteger?: boolean, bounds?: number[] }} options
   * @returns {Metric | null} null at the limit of metrics
   */
  metric (scope, instrument, { name, description = '', unit = '', isInteger = false, bounds }) {
    const key = JSON.stringify([scope.key, instrument, name.toLowerCase(), unit])
    const found = this.#metrics.get(key)
    if (found !== undefined) return found
    // Our own metrics are few, and exempt from the limit.
    if (this.#metrics.size >= METRICS_MAX && scope.key !== this.settings.ownScope) {
      this.report.warn('LT_WARN_METRIC_LIMIT', `the limit of ${METRICS_MAX} metrics is reached: '${name}' and later ones are not recorded. Do not put data in metric names`)
      return null
    }
    const { kind, ...descriptor } = { ...INSTRUMENTS[instrument], name, description, unit, isInteger }
    const isDelta = DELTA_INSTRUMENTS[this.settings.temporality].includes(instrument)
    const openedMs = descriptor.isObservable ? this.#roundMs : clock.now()
    const metric = new Metric({ ...descriptor, isDelta, openedMs, ...this.#aggregation(kind, bounds) }, this)
    this.#metrics.set(key, metric)
    if (metric.isObservable) this.#observables.push(metric)
    this.#addTo(scope, metric, instrument)
    return metric
  }

  #aggregation (kind, bounds) {
    if (kind !== 'histogram') return { kind, bounds: null }
    if (this.settings.histograms === 'exponential') return { kind: 'exponentialHistogram', bounds: null }
    return { kind, bounds: searchable(bounds ?? DEFAULT) }
  }

  #addTo (scope, metric, instrument) {
    const { name, unit } = metric
    if (!this.#scopes.has(scope.key)) this.#scopes.set(scope.key, { scope, metrics: [] })
    const { metrics } = this.#scopes.get(scope.key)
    if (metrics.some((other) => other.name.toLowerCase() === name.toLowerCase())) {
      this.report.warn('LT_WARN_METRIC_CONFLICT', `the metric '${name}' already exists with another kind or unit; it is now also ${instrument} with unit '${unit}', and both are exported. Rename one`, name)
    }
    metrics.push(metric)
  }

  /** Calls the callbacks of `provider` at each collection, as long as it records to this registry. */
  addProvider (provider) { this.#providers.push(provider) }

  /** The span for the exemplar of a measurement in `context`, or undefined. */
  exemplarSpan (context) {
    const { mask, set } = this.exemplarFlags
    if (mask === 0) return undefined
    const span = parentIn(context ?? this.#activeContext())
    return span !== undefined && ((span.flags | set) & mask) !== 0 ? span : undefined
  }

  failed (error, name) { this.report.failed('LT_WARN_METRIC_CALLBACK', whatFailed(name), error) }

  /** Calls code that is not ours, and returns its result. If it throws, logs that and returns undefined. */
  attempt (fn, name) { return this.report.attempt('LT_WARN_METRIC_CALLBACK', whatFailed(name), fn) }

  /** All scopes with their metrics, in the order of their creation. */
  scopes () { return this.#scopes.values() }

  /** Everything recorded before `ms` was delivered, so the next deltas begin there. */
  startInterval (ms) {
    for (const metric of this.#metrics.values()) metric.deltaStartMs = ms
  }

  get seriesCount () {
    return Array.from(this.#metrics.values(), ({ list }) => list.length).reduce((all, count) => all + count, 0)
  }

  /** Runs the callbacks of observable instruments. Concurrent collections share one round, so that no callback runs twice at once. Never rejects. */
  observe () {
    clock.anchor()
    if (this.#running !== null) return this.#running
    const callbacks = this.#providers.flatMap((provider) => provider.recordsTo(this) ? [...provider.callbacks] : [])
    this.#running = this.#observe(callbacks).finally(() => { this.#running = null })
    return this.#running
  }

  async #observe (callbacks) {
    const round = { isOpen: true }
    const waiting = []
    for (const callback of callbacks) {
      if (this.#unanswered.has(callback)) continue // or every round would wait for it again
      this.attempt(() => {
        const answer = callback.ask(round)
        if (typeof answer?.then === 'function') waiting.push(this.#answered(callback, answer))
      }, callback.name)
    }
    const late = waiting.length > 0 ? await settleWithin(() => Promise.all(waiting), CALLBACKS_MS, false) : undefined
    for (const { name } of late === undefined ? [] : this.#unanswered) {
      this.report.warn('LT_WARN_METRIC_CALLBACK', `the callback of the metric '${name}' has not finished within ${CALLBACKS_MS} ms`, `${name}, late`)
    }
    round.isOpen = false
    for (const metric of this.#observables) metric.endRound()
    this.#roundMs = clock.now()
  }

  async #answered (callback, answer) {
    this.#unanswered.add(callback)
    await Promise.resolve(answer).catch((error) => this.failed(error, callback.name))
    this.#unanswered.delete(callback)
  }
}

/** @param {string} [name] of an application's metric; undefined if the provider itself failed */
function whatFailed (name) {
  return name === undefined ? 'a metric provider failed' : `the callback of the metric '${name}' failed`
}

module.exports = { Metric, MetricRegistry }
