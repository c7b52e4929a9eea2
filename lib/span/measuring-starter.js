'use strict'

// Stands before the starter of spans where metrics are on: requests that get no span of ours get a record that
// knows when they began and which route they are on.

const { MeasuredSpan } = require('./measured-span')
const { RouteInfo } = require('./http-info')
const { ServerSpan } = require('./server-span')

/** Of requests that somebody else counts. */
const NOT_MEASURED = new RouteInfo('GET', '', '')
NOT_MEASURED.isMeasured = false

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

  // HOT, once per request where metrics are on. Budget: 1 object for one that is not sampled.
  startServer (incoming, route, peer, url, base) {
    const span = this.#starter.startServer(incoming, route, peer, url, base)
    if (span instanceof ServerSpan) return span
    return new MeasuredSpan(span, incoming.start, this.#isMeasuredElsewhere(span) ? NOT_MEASURED : route, peer)
  }

  startChild (name, options, context, scope) {
    return this.#starter.startChild(name, options, context, scope)
  }
}

module.exports = { MeasuringStarter }
