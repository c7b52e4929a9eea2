'use strict'

// The spans of requests where `keep` is set. Each request that fails or takes too long is exported, sampled or not, with a
// threshold of 0: it stands for itself alone where spans are counted by their probability.
//
// The span of a request that is not sampled is recorded all the same, and holds a bounded number of the children that ended
// before it. Services downstream see only what the sampler has decided: the headers have left long before the end.

const { withThreshold, withoutThreshold, ALWAYS } = require('../context/tracestate')
const { ServerSpan } = require('./server-span')
const { STATUS_ERROR } = require('./recording-span')
const { setClean } = require('./attributes')

// On every span of such a trace, so that a reader can tell that services downstream left theirs out.
const KEPT = 'light_trace.kept'

class KeepServerSpan extends ServerSpan {
  constructor (pipeline, start, route, peer, url, keep) {
    super(pipeline, start, route, peer, url)
    this.keep = keep
    this.kept = '' // why it is exported though it is not sampled, once it has ended
    this.held = null // its children, where it is not sampled
    this.heldCount = 0
  }

  /** Holds the children back that end before it: it is not sampled. */
  holdChildren () {
    this.localRoot = this
    this.held = []
    return this
  }

  finish (endedAt) {
    const why = this.keptBecause(endedAt)
    if (why !== '') {
      this.exportWithTracestate(withThreshold(this.tracestate, ALWAYS))
      if (this.held !== null) this.mark(this, why)
    }
    this.kept = why
    super.finish(endedAt)
  }

  /** 'error', 'slow', or '' where `keep` does not ask for it. */
  keptBecause (endedAt) {
    const { errors, slowerThanMs } = this.keep
    if (errors && this.details !== null && this.details.statusCode === STATUS_ERROR) return 'error'
    return endedAt - this.start > slowerThanMs ? 'slow' : ''
  }

  /** Whether one more child may be held, or kept after the end. */
  takeChild () {
    if (this.heldCount >= this.pipeline.limits.keptChildren) return false
    this.heldCount++
    return true
  }

  /** Hands out the children that ended before it, once. */
  release () {
    const { held } = this
    this.held = null
    return held
  }

  /** Marks a child of a kept request. It has no threshold: how many others were not kept, or too many to hold, is unknown. */
  markChild (child, why) {
    this.mark(child, why)
    const tracestate = withoutThreshold(child.tracestate)
    if (tracestate !== child.tracestate) child.exportWithTracestate(tracestate)
  }

  /** Sets the mark also past the limit of attributes and past the end of a span: it is not the user's. */
  mark (span, why) {
    span.attributeList ??= []
    setClean(span.attributeList, KEPT, why, Infinity, span)
  }
}

module.exports = { KeepServerSpan }
