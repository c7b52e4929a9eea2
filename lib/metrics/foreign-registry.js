'use strict'

// A registered MeterProvider of another package, as a registry: what light-trace measures is recorded through it, and
// light-trace exports nothing, or every request would be counted twice.

const { toObject } = require('../span/attributes')
const { INT } = require('./instruments')

// How an instrument is made, and what it records with.
const METHODS = {
  histogram: ['createHistogram', 'record'],
  counter: ['createCounter', 'add'],
  upDownCounter: ['createUpDownCounter', 'add']
}
const DOUBLE = 1

class ForeignRegistry {
  #provider
  #own

  /**
   * @param {MeterProvider} provider of the API
   * @param {MetricRegistry} own logs what fails
   */
  constructor (provider, own) {
    this.#provider = provider
    this.#own = own
    this.exemplarFlags = { mask: 0, set: 0 } // exemplars are the provider's own affair
  }

  metric (scope, instrument, { name, description, unit, isInteger = false, bounds }) {
    const options = { description, unit, valueType: isInteger ? INT : DOUBLE }
    if (bounds !== undefined) options.advice = { explicitBucketBoundaries: bounds }
    const [create, method] = METHODS[instrument]
    const target = this.#guarded(() => this.#provider.getMeter(scope.name, scope.version)[create](name, options))
    const of = (list) => {
      const attributes = toObject(list)
      const record = (value) => {
        this.#guarded(() => target?.[method](value, attributes))
        return 0
      }
      return { isForgotten: false, record }
    }
    // As many series as a metric of ours has, of which none is forgotten.
    return { seriesMax: 2000, attributeLengthMax: 1024, sweeps: 0, isOverflow: () => false, of }
  }

  /** Some of it is called where nothing catches: when a response closes. */
  #guarded (fn) {
    try {
      return fn()
    } catch (error) {
      this.#own.failed(error)
    }
  }
}

module.exports = { ForeignRegistry }
