'use strict'

// The API's MeterProvider: what `metrics.getMeter()` comes from.

const { Scope } = require('../span/scope')
const { Adder, Histogram, Gauge, Observable, BatchObservableResult } = require('./instruments')

// Meters are named after packages. Names made of user data must not pile up.
const METERS_MAX = 256

// The specification's syntax of instrument names.
const NAME = /^[A-Za-z][-\w./]{0,254}$/

class MeterProvider {
  #registry
  #meters = new Map()

  /** @param {() => MetricRegistry | null} registry where instruments record to, asked at each recording */
  constructor (registry) {
    this.#registry = registry
    this.callbacks = new Set() // of observable instruments
  }

  getMeter (name, version, options) {
    const scope = new Scope(textOf(name) ?? '', textOf(version), textOf(options?.schemaUrl))
    const known = this.#meters.get(scope.key)
    if (known !== undefined) return known
    const meter = new Meter(scope, this.#registry, this.callbacks)
    if (this.#meters.size < METERS_MAX) this.#meters.set(scope.key, meter)
    return meter
  }

  /** Whether its instruments record to `registry` now. */
  recordsTo (registry) {
    return this.#registry() === registry
  }
}

class Meter {
  constructor (scope, registry, callbacks) {
    this.scope = scope
    this.registry = registry
    this.callbacks = callbacks
  }

  createCounter (name, options) { return this.#create(Adder, 'counter', name, options) }
  createUpDownCounter (name, options) { return this.#create(Adder, 'upDownCounter', name, options) }
  createHistogram (name, options) { return this.#create(Histogram, 'histogram', name, options) }
  createGauge (name, options) { return this.#create(Gauge, 'gauge', name, options) }
  createObservableCounter (name, options) { return this.#create(Observable, 'observableCounter', name, options) }
  createObservableUpDownCounter (name, options) { return this.#create(Observable, 'observableUpDownCounter', name, options) }
  createObservableGauge (name, options) { return this.#create(Observable, 'observableGauge', name, options) }

  #create (Instrument, type, name, options) {
    if (typeof name === 'string' && NAME.test(name)) return new Instrument(this, type, name, options)
    this.registry()?.badName(name)
    // It works as an instrument does, and records nothing.
    return new Instrument({ ...this, registry: () => null, callbacks: new Set() }, type, 'invalid', undefined)
  }

  #batches = new Map() // the user's function → [{ instruments, entry }]

  addBatchObservableCallback (callback, observables) {
    if (typeof callback !== 'function' || !Array.isArray(observables)) return
    const instruments = observables.filter((instrument) => instrument instanceof Observable)
    const registered = this.#batches.get(callback) ?? []
    if (instruments.length === 0 || registered.some((batch) => isSame(batch.instruments, instruments))) return
    const entry = (round) => callback(new BatchObservableResult(instruments, round))
    this.#batches.set(callback, [...registered, { instruments, entry }])
    this.callbacks.add(entry)
  }

  removeBatchObservableCallback (callback, observables) {
    const registered = this.#batches.get(callback) ?? []
    const batch = registered.find(({ instruments }) => Array.isArray(observables) && isSame(instruments, observables))
    if (batch === undefined) return
    this.callbacks.delete(batch.entry)
    const others = registered.filter((other) => other !== batch)
    if (others.length > 0) this.#batches.set(callback, others)
    else this.#batches.delete(callback)
  }
}

function isSame (some, others) {
  return some.length === others.length && some.every((item) => others.includes(item))
}

function textOf (value) {
  return typeof value === 'string' ? value.slice(0, 1024) : undefined
}

module.exports = { MeterProvider }
