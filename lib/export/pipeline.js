'use strict'

// Where ended spans go, with what all of them share: limits, resource, scope and the counts. The sink is
// one of: the OTLP encoder, SDK processors, the console, nothing.

const { SAMPLED } = require('../context/trace-context')

class Pipeline {
  /**
   * @param {{ limits, resource, scope, stats, sink: { accept (span) } }} options
   */
  constructor ({ limits, resource, scope, stats, sink }) {
    this.limits = limits
    this.resource = resource
    this.scope = scope
    this.stats = stats
    this.sink = sink
    this.closed = false
  }

  started (span, context) {
    if (this.sink.started !== undefined) this.sink.started(span, context)
  }

  /** Called while the span still records. */
  ending (span) {
    if (this.sink.ending !== undefined) this.sink.ending(span)
  }

  // HOT, once per recorded span.
  ended (span) {
    const { stats } = this
    stats.ended++
    if ((span.flags & SAMPLED) === 0) {
      stats.unsampled++
      return
    }
    stats.accepted++
    if (this.closed) stats.drop('after_shutdown', 1)
    else this.sink.accept(span)
  }
}

module.exports = { Pipeline }
