'use strict'

// A registered MeterProvider of another package, as a registry: what light-trace measures is recorded through it, and
// light-trace exports nothing, or every request would be counted twice. Its series keep their attributes as an
// object, which is made once.

const { toObject } = require('../span/attributes')

const CREATE = { histogram: 'createHistogram', upDownCounter: 'createUpDownCounter', counter: 'createCounter' }
// As many as a metric of ours has.
const SERIES_MAX = 2000
const INT = 0
const DOUBLE = 1

class ForeignRegistry {
  #provider
  #meters = new Map()

  /** @param {MeterProvider} provider of the API */
  constructor (provider) {
    this.#provider = provider
    this.exemplarFlags = { mask: 0, set: 0 } // exemplars are the provider's own affair
  }

  metric (scope, instrument, { name, description, unit, isInteger = false, bounds }) {
    const options = { description, unit, valueType: isInteger ? INT : DOUBLE }
    if (bounds !== undefined) options.advice = { explicitBucketBoundaries: bounds }
    return new ForeignMetric(this.meter(scope)[CREATE[instrument]](name, options))
  }

  meter (scope) {
    let meter = this.#meters.get(scope.key)
    if (meter === undefined) this.#meters.set(scope.key, meter = this.#provider.getMeter(scope.name, scope.version))
    return meter
  }
}

class ForeignMetric {
  #instrument

  constructor (instrument) {
    this.#instrument = instrument
    this.seriesMax = SERIES_MAX
    this.attributeLengthMax = 1024
  }

  of (list) {
    return new ForeignSeries(this.#instrument, toObject(list))
  }

  isOverflow () {
    return false
  }
}

class ForeignSeries {
  constructor (instrument, attributes) {
    this.instrument = instrument
    this.attributes = attributes
    this.isForgotten = false
  }

  record (value) {
    this.instrument.record(value, this.attributes)
    return 0
  }

  add (value) {
    this.instrument.add(value, this.attributes)
  }
}

module.exports = { ForeignRegistry, ForeignMetric }
