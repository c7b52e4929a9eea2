'use strict'

// `sampler: { perSecond }`: so many traces a second, shared over routes by fair-rate.js.

const { HeadSampler, samplerName, DROP, RECORD_AND_SAMPLE } = require('./head-samplers')
const { HIGH_BITS } = require('./ratio-sampler')
const { FairRate, RouteRate } = require('./fair-rate')

/** Callers that have decided are followed, and not counted. */
class PerSecond extends HeadSampler {
  constructor (perSecond) {
    super(true)
    this.rate = new FairRate(perSecond)
    this.elsewhere = new RouteRate() // traces that no request has started
  }

  decideRoot (context, now, route) {
    const routeRate = route === undefined ? this.elsewhere : route.rate === null ? (route.rate = new RouteRate()) : route.rate
    const tracestate = this.rate.take(routeRate, context.t2 & HIGH_BITS, now)
    if (tracestate === '') return DROP
    context.tracestate = tracestate
    return RECORD_AND_SAMPLE
  }

  toString () { return samplerName(`PerSecond{${this.rate.perSecond}}`, this) }
}

module.exports = { PerSecond }
