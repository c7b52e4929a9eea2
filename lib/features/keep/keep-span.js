'use strict'

// The spans of requests if `keep` is set. Requests that fail or take too long are exported, whether sampled or not. Their sampling
// threshold is adjusted, for readers that count spans by their probability: see keep.js.
//
// The span of an unsampled request is recorded too. Like that of a sampled request, it holds a bounded number of the children that
// ended before it, because a child's sampling threshold is known only at the end of its request. Downstream services see only the
// sampler's decision, since the headers are sent long before the end.

const { OPEN, SAMPLED } = require('../../context/trace-context.js')
const { thresholdOf, withThreshold, withoutThreshold } = require('../../context/tracestate.js')
const { now } = require('../../runtime/timers.js')
const { cut, setClean } = require('../../span/attributes.js')
const { ServerSpan } = require('../../span/server-span.js')

// An attribute on every span of a kept request. It tells readers that the spans of downstream services are missing.
const KEPT = 'light_trace.kept'
const MARK = Object.freeze([KEPT, ''])
const REASON_LENGTH_MAX = 64
const KEPT_CHILDREN_MAX = 64 // held as objects until their request ends

class KeepServerSpan extends ServerSpan {
  constructor (pipeline, start, route, peer, url, keep) {
    super(pipeline, start, route, peer, url)
    this.keep = keep
    this.asked = '' // the application's reason to keep the request
    this.kept = '' // set at the end: the reason to export the request regardless of the sampler
    this.localRoot = this
    this.held = [] // children that ended before the request
    this.heldCount = 0
    this.recordedSince = -1 // the chunk of the recorder's ring with its first child; -1: no child is recorded
  }

  keepFor (reason) {
    if (this.endedAt === OPEN) this.asked = reasonOf(reason)
  }

  finish (endedAt) {
    const why = this.asked || this.keep.reasonFor(this.outcome, endedAt - this.start, this.route.slow.afterMs)
    const tracestate = why === '' ? null : this.keep.take(this, now())
    if (tracestate !== null) {
      this.kept = why
      if (tracestate !== this.tracestate) this.exportWithTracestate(tracestate)
      this.mark(this)
    }
    const { recorder } = this.keep
    if (recorder !== null && this.httpStatus >= 500) recorder.serverError(endedAt)
    super.finish(endedAt)
  }

  get isKept () { return this.kept !== '' }
  get exemplarFlags () { return this.kept === '' ? this.flags : this.flags | SAMPLED }

  /** Counts one more child that is held, or kept after the end. Returns false at the limit. */
  takeChild () {
    if (this.heldCount >= KEPT_CHILDREN_MAX) return false
    this.heldCount++
    return true
  }

  /** Decides what happens to an ended span, which is this request or a child. A held child is decided together with its request. */
  decide (span) {
    const { recorder } = this.keep
    const hasEnded = this.endedAt !== OPEN
    if (span === this) this.decideAll()
    else if (recorder !== null && (span.flags & SAMPLED) === 0) {
      if (hasEnded && this.isKept) return this.letGo(span, this.takeChild())
      if (hasEnded) span.localRoot = null // else spans that are started below this child need it
      recorder.record(span, this)
    } else if (!this.takeChild()) {
      span.localRoot = null
      this.pipeline.exportOrDiscard(span) // a sampled one keeps the sampler's threshold, since it is exported whether or not this request fails
    } else if (hasEnded) this.letGo(span)
    else this.held.push(span)
  }

  decideAll () {
    const { keep: { recorder }, pipeline, isKept, held } = this
    if (isKept) pipeline.accept(this)
    else if (recorder !== null && (this.flags & SAMPLED) === 0) recorder.record(this, this)
    else pipeline.exportOrDiscard(this)
    this.held = []
    for (const child of held) this.letGo(child)
    if (isKept && this.recordedSince !== -1) recorder.release(this)
  }

  letGo (child, isCounted = true) {
    child.localRoot = null // releases the reference to this request
    if (this.isKept) {
      this.markChild(child, isCounted)
      this.pipeline.accept(child)
    } else this.pipeline.exportOrDiscard(child)
  }

  /** A child of a kept request gets the threshold of the request, because they are always exported together. */
  markChild (child, isCounted) {
    this.mark(child)
    const tracestate = this.tracestateOfChild(child.tracestate, isCounted)
    if (tracestate !== child.tracestate) child.exportWithTracestate(tracestate)
  }

  tracestateOfChild (tracestate, isCounted) {
    const threshold = isCounted ? thresholdOf(this.exportedTracestate) : ''
    return threshold === '' ? withoutThreshold(tracestate) : withThreshold(tracestate, threshold)
  }

  /** Sets the mark on an unsampled span. The attribute limit and the end of the span do not apply, since it is not a user's attribute. */
  mark (span) {
    if ((span.flags & SAMPLED) !== 0 || this.pipeline.shown(MARK).length === 0) return
    span.attributeList ??= []
    setClean(span.attributeList, KEPT, this.kept, Infinity, span)
  }
}

/** The application's reason for keeping something, cut to a limit. */
function reasonOf (reason) {
  return typeof reason === 'string' && reason !== '' ? cut(reason, REASON_LENGTH_MAX) : 'application'
}

module.exports = { KeepServerSpan, KEPT, reasonOf }
