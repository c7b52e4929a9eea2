'use strict'

// Starters where metrics are on: requests that get no span of ours get a record that knows when they began and which
// route they are on.

const { MeasuredSpan, unsampledRecord } = require('./measured-span')
const { RouteInfo } = require('./http-info')
const { ServerSpan } = require('./server-span')
const { FastStarter, UNDECIDED } = require('./span-starter')

/** Of requests that somebody else counts. */
const NOT_MEASURED = new RouteInfo('GET', '', '')
NOT_MEASURED.isMeasured = false

/** Where ids and flags alone decide: nothing is done for a request that is sampled. */
class MeasuringFastStarter extends FastStarter {
  // HOT, once per unsampled request where metrics are on. Budget: 1 object.
  startDropped (incoming, route, peer) {
    this.stats.started++
    this.stats.unsampled++
    return unsampledRecord(incoming, route, peer)
  }

  startAsked (incoming, route, peer, url, base) {
    return measured(super.startAsked(incoming, route, peer, url, base), incoming, route, peer)
  }
}

/** Stands before any other. */
class MeasuringStarter {
  #starter
  #isMeasuredElsewhere

  /**
   * @param {SpanStarter} starter
   * @param {(span: Span) => boolean} isMeasuredElsewhere whether who made this span counts its request too
   */
  constructor (starter, isMeasuredElsewhere) {
    this.#starter = starter
    this.#isMeasuredElsewhere = isMeasuredElsewhere
  }

  decideServer () {
    return UNDECIDED
  }

  startServer (incoming, route, peer, url, base) {
    const span = this.#starter.startServer(incoming, route, peer, url, base)
    return measured(span, incoming, this.#isMeasuredElsewhere(span) ? NOT_MEASURED : route, peer)
  }

  startChild (name, options, context, scope) {
    return this.#starter.startChild(name, options, context, scope)
  }
}

function measured (span, { start }, route, peer) {
  return span instanceof ServerSpan ? span : new MeasuredSpan(span, start, route, peer)
}

module.exports = { MeasuringFastStarter, MeasuringStarter }
