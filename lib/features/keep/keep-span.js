'use strict'

// The spans of requests where `keep` is set. Requests that fail or take too long are exported, sampled or not, with a threshold
// that says so where spans are counted by their probability: see keep.js.
//
// The span of a request that is not sampled is recorded all the same. It holds a bounded number of the children that ended before
// it, and so does that of a sampled one: what a child says of its probability is known at the end of its request. Services
// downstream see only what the sampler has decided: the headers have left long before the end.

const { OPEN, SAMPLED } = require('../../context/trace-context.js')
const { thresholdOf, withThreshold, withoutThreshold } = require('../../context/tracestate.js')
const { now } = require('../../runtime/timers.js')
const { cut, setClean } = require('../../span/attributes.js')
const { ServerSpan } = require('../../span/server-span.js')

// On every span of a request that was kept, so that a reader can tell that services downstream left theirs out.
const KEPT = 'light_trace.kept'
const MARK = Object.freeze([KEPT, ''])
const REASON_LENGTH_MAX = 64
const KEPT_CHILDREN_MAX = 64 // that wait for the end of their request, as objects

class KeepServerSpan extends ServerSpan {
  constructor (pipeline, start, route, peer, url, keep) {
    super(pipeline, start, route, peer, url)
    this.keep = keep
    this.asked = '' // why the application wants it to be kept
    this.kept = '' // why it is exported whatever the sampler said, once it has ended
    this.localRoot = this
    this.held = [] // the children that ended before it
    this.heldCount = 0
    this.recordedSince = -1 // where in the ring of the recorder the first of its children is, -1: there is none
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

  /** Whether one more child may be held, or kept after the end. */
  takeChild () {
    if (this.heldCount >= KEPT_CHILDREN_MAX) return false
    this.heldCount++
    return true
  }

  /** Decides about a span that has ended, itself or a child: a child that waits is decided about with its request. */
  decide (span) {
    const { recorder } = this.keep
    const hasEnded = this.endedAt !== OPEN
    if (span === this) this.decideAll()
    else if (recorder !== null && (span.flags & SAMPLED) === 0) {
      if (hasEnded && this.isKept) return this.letGo(span, this.takeChild())
      if (hasEnded) span.localRoot = null // else what is started under it asks for it
      recorder.record(span, this)
    } else if (!this.takeChild()) {
      span.localRoot = null
      this.pipeline.exportOrDiscard(span) // if it is sampled it stands for as many as the sampler said: it would be there whether or not this fails
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
    child.localRoot = null // lets go of this
    if (this.isKept) {
      this.markChild(child, isCounted)
      this.pipeline.accept(child)
    } else this.pipeline.exportOrDiscard(child)
  }

  /** A child of a kept request stands for as many as its request: wherever that is exported, it is there too. */
  markChild (child, isCounted) {
    this.mark(child)
    const tracestate = this.tracestateOfChild(child.tracestate, isCounted)
    if (tracestate !== child.tracestate) child.exportWithTracestate(tracestate)
  }

  tracestateOfChild (tracestate, isCounted) {
    const threshold = isCounted ? thresholdOf(this.exportedTracestate) : ''
    return threshold === '' ? withoutThreshold(tracestate) : withThreshold(tracestate, threshold)
  }

  /** Sets the mark on what is not sampled, also past the limit of attributes and past the end of a span: it is not the user's. */
  mark (span) {
    if ((span.flags & SAMPLED) !== 0 || this.pipeline.shown(MARK).length === 0) return
    span.attributeList ??= []
    setClean(span.attributeList, KEPT, this.kept, Infinity, span)
  }
}

/** Why something is kept, as the application says it. */
function reasonOf (reason) {
  return typeof reason === 'string' && reason !== '' ? cut(reason, REASON_LENGTH_MAX) : 'application'
}

module.exports = { KeepServerSpan, KEPT, reasonOf }
