'use strict'

// The span of a request that is not sampled, recorded all the same because `keep` may want it: when it
// ends failed, or took too long. Until then it holds the children that ended before it, a bounded number.
//
// Outward nothing of this is seen: the flags say "not sampled", to services downstream and to the caller.

const { copyTrace } = require('../context/trace-context')
const { ServerSpan } = require('./server-span')
const { STATUS_ERROR } = require('./recording-span')

// On every span of such a trace, so that a reader can tell that services downstream left theirs out.
const KEPT = 'light_trace.kept'

class TailSampledServerSpan extends ServerSpan {
  constructor (pipeline, start, route, peer, url, keep) {
    super(pipeline, start, route, peer, url)
    this.keep = keep
    this.localRoot = this
    this.kept = '' // why, once it has ended: 'error' or 'slow'
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
    const { errors, slowerThanMs } = this.keep
    if (errors && this.details !== null && this.details.statusCode === STATUS_ERROR) this.kept = 'error'
    else if (endedAt - this.start > slowerThanMs) this.kept = 'slow'
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
}

/** Past the limit of attributes and past the end of a span: it is not the user's. */
function markKept (span, why) {
  if (span.attributeList === null) span.attributeList = []
  span.attributeList.push(KEPT, why)
}

module.exports = { TailSampledServerSpan, markKept, KEPT }
