'use strict'

// The API's instruments. An instrument looks up its metric when it records: it may be created before an application opens, or outlive
// one, and always records to the application that is open at that time.
// https://opentelemetry.io/docs/specs/otel/metrics/api/

const { describeValue } = require('../../config/checks.js')
const { perScope } = require('../../otel/api-facade.js')
const clock = require('../../runtime/timers.js')
const { elements, read, toObject } = require('../../span/attributes.js')
const { keepExemplar, areBounds } = require('./histograms.js')
const { SERIES_MAX, own } = require('./series.js')

// The API's ValueType.
const INT = 0
const DOUBLE = 1

const TEXT_LENGTH_MAX = 1024

class Instrument {
  #meter
  #type
  #options
  #registry = null
  #metric = null

  constructor (meter, type, name, options) {
    this.#meter = meter
    this.#type = type
    const given = elements(read(read(options, 'advice'), 'explicitBucketBoundaries'), null)
    this.#options = {
      name,
      description: textOf(read(options, 'description')),
      unit: textOf(read(options, 'unit')),
      isInteger: read(options, 'valueType') === INT,
      bounds: areBounds(given) ? given : undefined
    }
  }

  get name () { return this.#options.name }

  /** The metric that it currently records to, or null. HOT */
  get metric () {
    const registry = this.#meter.registry()
    if (registry !== this.#registry) {
      this.#registry = registry
      this.#metric = registry === null ? null : registry.metric(this.#meter.scope, this.#type, this.#options)
    }
    return this.#metric
  }

  /** Records a value. It never throws, because applications call it; getters of the attributes may throw. HOT */
  measure (value, attributes, context) {
    const { metric } = this
    if (metric === null || !this.#accepts(metric, value)) return
    try {
      const recorded = metric.isInteger ? Math.trunc(value) : value
      const series = metric.at(attributes)
      const slot = series.record(recorded)
      const span = this.#registry.exemplarSpan(context)
      if (span !== undefined) keepExemplar(series, slot, recorded, clock.now(), span)
    } catch (error) {
      this.#registry?.failed(error, this.name)
    }
  }

  /** Keeps one value for the current round of observations. It never throws either. */
  observe (value, attributes, round) {
    const { metric } = this
    if (metric === null || !round.isOpen || !this.#accepts(metric, value)) return
    this.#registry.attempt(() => metric.observe(metric.at(attributes), metric.isInteger ? Math.trunc(value) : value), this.name)
  }

  /** Whether `value` can be recorded. Other values are dropped and logged once. */
  #accepts ({ name, isMonotonic, isInteger }, value) {
    const max = isInteger ? Number.MAX_SAFE_INTEGER : Number.MAX_VALUE
    if (typeof value === 'number' && Math.abs(value) <= max && (value >= 0 || !isMonotonic)) return true
    this.#registry?.report.warn('LT_WARN_METRIC_VALUE', `the metric '${name}' cannot record ${describeValue(value)}`, name)
    return false
  }
}

class Adder extends Instrument {
  add (value, attributes, context) { this.measure(value, attributes, context) }
}

class Recorder extends Instrument {
  record (value, attributes, context) { this.measure(value, attributes, context) }
}

class Observable extends Instrument {
  #callbacks
  #entries = new Map() // the user's function -> Callback

  constructor (meter, type, name, options) {
    super(meter, type, name, options)
    this.#callbacks = meter.callbacks
  }

  /** Unlike `instanceof`, this does not trigger the traps of a proxy. */
  static is (value) { return typeof value === 'object' && value !== null && #callbacks in value }

  addCallback (callback) {
    if (typeof callback !== 'function' || this.#entries.has(callback)) return
    const entry = new Callback(this.name, (round) => callback({ observe: (value, attributes) => this.observe(value, attributes, round) }))
    this.#entries.set(callback, entry)
    this.#callbacks.add(entry)
  }

  removeCallback (callback) {
    this.#callbacks.delete(this.#entries.get(callback))
    this.#entries.delete(callback)
  }
}

/** A user's callback with the name of its instrument; for a batch, that of its first instrument. */
class Callback {
  constructor (name, ask) {
    this.name = name
    this.ask = ask
  }
}

function textOf (value) {
  return typeof value === 'string' ? value.slice(0, TEXT_LENGTH_MAX).toWellFormed() : ''
}

// The API's MeterProvider, which is behind `metrics.getMeter()`.

// The specification's syntax of instrument names.
const NAME = /^[A-Za-z][-\w./]{0,254}$/

class MeterProvider {
  #registry
  #meters = new Map()

  /** @param {() => MetricRegistry | null} registry returns the registry to record to; called at each recording */
  constructor (registry) {
    this.#registry = registry
    this.callbacks = new Set() // of observable instruments
  }

  getMeter (name, version, options) {
    return perScope(this.#meters, name, version, options, (scope) => new Meter(scope, this.#registry, this.callbacks))
  }

  /** Whether its instruments currently record to `registry`. */
  recordsTo (registry) { return this.#registry() === registry }
}

class Meter {
  constructor (scope, registry, callbacks) {
    this.scope = scope
    this.registry = registry
    this.callbacks = callbacks
  }

  createCounter (name, options) { return this.#create(Adder, 'counter', name, options) }
  createUpDownCounter (name, options) { return this.#create(Adder, 'upDownCounter', name, options) }
  createHistogram (name, options) { return this.#create(Recorder, 'histogram', name, options) }
  createGauge (name, options) { return this.#create(Recorder, 'gauge', name, options) }
  createObservableCounter (name, options) { return this.#create(Observable, 'observableCounter', name, options) }
  createObservableUpDownCounter (name, options) { return this.#create(Observable, 'observableUpDownCounter', name, options) }
  createObservableGauge (name, options) { return this.#create(Observable, 'observableGauge', name, options) }

  #create (Instrument, type, name, options) {
    if (typeof name === 'string' && NAME.test(name)) return new Instrument(this, type, name, options)
    this.registry()?.report.warn('LT_WARN_METRIC_NAME', `${describeValue(name)} is not a valid instrument name: nothing is recorded`)
    // An instrument that works as usual but records nothing.
    return new Instrument({ ...this, registry: () => null, callbacks: new Set() }, type, 'invalid', undefined)
  }

  #batches = [] // { callback, instruments, entry }: the user's function, its instruments, and the Callback

  addBatchObservableCallback (callback, observables) {
    const instruments = elements(observables).filter(Observable.is)
    if (typeof callback !== 'function' || instruments.length === 0 || this.#batchOf(callback, instruments) !== undefined) return
    const entry = new Callback(instruments[0].name, (round) => callback({
      observe (instrument, value, attributes) {
        if (instruments.includes(instrument)) instrument.observe(value, attributes, round)
      }
    }))
    this.#batches.push({ callback, instruments, entry })
    this.callbacks.add(entry)
  }

  removeBatchObservableCallback (callback, observables) {
    const batch = this.#batchOf(callback, elements(observables))
    if (batch === undefined) return
    this.callbacks.delete(batch.entry)
    this.#batches = this.#batches.filter((other) => other !== batch)
  }

  #batchOf (callback, observables) {
    return this.#batches.find((batch) => batch.callback === callback && batch.instruments.length === observables.length &&
      batch.instruments.every((instrument) => observables.includes(instrument)))
  }
}

// Adapts a registered MeterProvider of another package to the interface of a registry. light-trace then records its measurements
// through it and exports no metrics itself; otherwise every request would be counted twice.

/** @param {MeterProvider} provider the registered one @param {MetricRegistry} ours logs failures */
function foreignRegistry (provider, ours) {
  const metric = (scope, instrument, { name, description, unit, isInteger = false, bounds }) => {
    const [create, method] = instrument === 'histogram' ? ['createHistogram', 'record'] : ['createUpDownCounter', 'add'] // light-trace uses no others
    const advice = bounds !== undefined && { advice: { explicitBucketBoundaries: bounds } }
    const target = ours.attempt(() => provider.getMeter(scope.name, scope.version)[create](name, { description, unit, valueType: isInteger ? INT : DOUBLE, ...advice }))
    const of = (list) => {
      const { omit = null } = ours.settings
      const attributes = toObject((omit === null ? list : omit.strip(list)).map(own))
      const record = (value) => {
        ours.attempt(() => target?.[method](value, attributes)) // called when a response closes, where nothing would catch an error
        return 0
      }
      return { isForgotten: false, record }
    }
    // The same limit of series as our own metrics, but series are never forgotten.
    return { seriesMax: SERIES_MAX, attributeLengthMax: 1024, sweeps: 0, isOverflow: () => false, of }
  }
  return { metric, exemplarFlags: { mask: 0, set: 0 } } // the provider takes its own exemplars
}

module.exports = { MeterProvider, foreignRegistry }
