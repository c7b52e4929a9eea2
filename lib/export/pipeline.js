'use strict'

// Where ended spans go, with what all of them share: limits, resource, scope and the counts. The sink is
// one of: the OTLP encoder, SDK processors, the console, nothing.

const { SAMPLED } = require('../context/trace-context')
const { OWN_MAX } = require('../span/recording-span')

class Pipeline {
  /**
   * @param {{ limits, redactor, resource, scope, stats, report, rootTracestate: string, sink: { accept (span) } }} options
   */
  constructor ({ limits, redactor, resource, scope, stats, report, rootTracestate, sink }) {
    this.limits = limits
    // No template fits a span whose own attributes may be too many, or a longer url.
    this.templateUrlLengthMax = limits.attributes < OWN_MAX ? -1 : limits.attributeValueLength
    this.redactor = redactor
    this.rootTracestate = rootTracestate // what the sampler says of each trace that starts here, where it is always the same
    this.resource = resource
    this.scope = scope
    this.stats = stats
    this.report = report
    this.sink = sink
    this.closed = false
    /** Whether the sink wants to see spans when they start. */
    this.wantsStart = sink.started !== undefined
    /** And just before they end. */
    this.wantsEnding = sink.ending !== undefined
  }

  started (span, context) {
    if (this.wantsStart) this.sink.started(span, context)
  }

  attributeCut () {
    this.report.once('LT_WARN_ATTRIBUTE', 'an attribute was cut: its key is longer than 1024 characters, or its value has more than 1024 members, 64 levels or a member that is no value; spans count it as dropped')
  }

  /** Called while the span still records, where somebody wants it. */
  ending (span) {
    this.sink.ending(span)
  }

  // HOT, once per recorded span.
  ended (span) {
    if ((span.flags & SAMPLED) === 0) this.endedUnsampled(span)
    else this.accept(span)
  }

  accept (span) {
    const { stats } = this
    stats.accepted++
    if (this.closed) stats.drop('after_shutdown', 1)
    else this.sink.accept(span)
  }

  // Recorded for a sampler that said RECORD, or for `keep`, which decides when the request has ended: a
  // child that waits for that has not ended for the counts.
  endedUnsampled (span) {
    const root = span.localRoot
    if (root === null) this.discard(span)
    else if (root === span) this.resolveKept(span, span.kept, root.release())
    else if (!root.takeChild()) this.discard(span)
    else if (!root.ended) root.held.push(span)
    else this.resolveKeptChild(root, span, root.kept)
  }

  resolveKept (root, why, children) {
    if (why === '') this.discard(root)
    else this.accept(root)
    for (const child of children) this.resolveKeptChild(root, child, why)
  }

  resolveKeptChild (root, child, why) {
    child.localRoot = null // lets go of the request's span
    if (why === '') {
      this.discard(child)
      return
    }
    root.markChild(child, why)
    this.accept(child)
  }

  discard (span) {
    this.stats.unsampled++
    if (this.sink.discarded !== undefined) this.sink.discarded(span)
  }
}

module.exports = { Pipeline }
