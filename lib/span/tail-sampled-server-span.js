'use strict'

// The spans of requests where `keep` is set. Each request that fails, or takes too long, is exported, sampled or not: its
// span says so by a threshold of 0, whatever the ratio was. Without that, those who count spans by their probability
// would count a failed request that the sampler took many times, and one that it did not take once more.
//
// The span of a request that is not sampled is recorded all the same, because `keep` may want it. Until it ends it holds
// the children that ended before it, a bounded number.
//
// Outward nothing of this is seen: trace state and flags are what the sampler said, to services downstream and to the
// caller. Headers have left long ago when it is known.

const { copyTrace } = require('../context/trace-context')
const { withThreshold, withoutThreshold, ALWAYS } = require('../context/ot-member')
const { ServerSpan } = require('./server-span')
const { STATUS_ERROR } = require('./recording-span')
const { setClean } = require('./attributes')

// On every span of such a trace, so that a reader can tell that services downstream left theirs out.
const KEPT = 'light_trace.kept'

/** Of a request that is sampled. */
class KeepServerSpan extends ServerSpan {
  constructor (pipeline, start, route, peer, url, keep) {
    super(pipeline, start, route, peer, url)
    this.keep = keep
  }

  finish (endedAt) {
    if (this.keptBecause(endedAt) !== '') this.exportWithTracestate(withThreshold(this.tracestate, ALWAYS))
    super.finish(endedAt)
  }

  /** 'error', 'slow', or '' where `keep` does not ask for it. */
  keptBecause (endedAt) {
    const { errors, slowerThanMs } = this.keep
    if (errors && this.details !== null && this.details.statusCode === STATUS_ERROR) return 'error'
    return endedAt - this.start > slowerThanMs ? 'slow' : ''
  }
}

/** Of one that is not. */
class TailSampledServerSpan extends KeepServerSpan {
  constructor (pipeline, start, route, peer, url, keep) {
    super(pipeline, start, route, peer, url, keep)
    this.localRoot = this
    this.kept = '' // why, once it has ended
    this.held = []
    this.heldCount = 0
  }

  /** Of the span of a request for which the sampler has decided: nothing has been recorded on it yet. */
  static from (span, keep) {
    const held = new TailSampledServerSpan(span.pipeline, span.start, span.route, span.peer, span.url, keep)
    copyTrace(span, held)
    held.s0 = span.s0
    held.s1 = span.s1
    held.p0 = span.p0
    held.p1 = span.p1
    held.parentKind = span.parentKind
    return held
  }

  finish (endedAt) {
    this.kept = this.keptBecause(endedAt)
    if (this.kept !== '') markKept(this, this.kept)
    super.finish(endedAt)
  }

  /** Whether one more child may be held, or kept after the end. */
  takeChild () {
    if (this.heldCount >= this.pipeline.limits.keptChildren) return false
    this.heldCount++
    return true
  }

  /** The children that ended before, once. */
  release () {
    const { held } = this
    this.held = null
    return held
  }

  /** A child of a kept request. How many others there were that were not kept, or were too many to hold, nobody knows. */
  markChild (child, why) {
    markKept(child, why)
    const tracestate = withoutThreshold(child.tracestate)
    if (tracestate !== child.tracestate) child.exportWithTracestate(tracestate)
  }
}

/** Past the limit of attributes and past the end of a span: it is not the user's. */
function markKept (span, why) {
  if (span.attributeList === null) span.attributeList = []
  setClean(span.attributeList, KEPT, why, Infinity, span)
}

module.exports = { KeepServerSpan, TailSampledServerSpan }
