'use strict'

// Spans that are not recorded: the methods of a recording span, with ids and without work.

const { TraceContext, callerTracestate, copyTrace, SAMPLED, IncomingContext } = require('../context/trace-context')
const { parseTraceparent } = require('../context/traceparent')

class NonRecordingSpan extends TraceContext {
  isRecording () { return false }
  setAttribute () { return this }
  setAttributes () { return this }
  addEvent () { return this }
  addLink () { return this }
  addLinks () { return this }
  setStatus () { return this }
  updateName () { return this }
  recordException () {}
  end () {}

  // As a request's record, see lib/fastify/request-start.js.
  get apiSpan () { return this }
  get isTraced () { return this.isRecording() }
  fail (_error) {}
  recordFailure (error) { this.fail(error) }
  close () {}
}

/** A caller's span, known by its ids alone. */
class RemoteSpan extends NonRecordingSpan {
  /**
   * @param {{ t0, t1, t2, t3, p0, p1, flags, tracestate }} incoming
   * @param {boolean} [remote] false for a parent in this process, as inject() may have one
   */
  constructor (incoming, remote = true) {
    super()
    copyTrace(incoming, this)
    this.s0 = incoming.p0
    this.s1 = incoming.p1
    this.remote = remote
  }

  spanContext () {
    const context = super.spanContext()
    if (this.remote) context.isRemote = true
    return context
  }
}

/** The span of requests without a trace: switched off, ignored, or before our hook. Its ids are all zero. */
const INVALID_SPAN = Object.freeze(new NonRecordingSpan())

/** An unsampled span in the trace of `parent`, without a span id. */
function unsampledIn (parent) {
  const span = new NonRecordingSpan()
  span.t0 = parent.t0
  span.t1 = parent.t1
  span.t2 = parent.t2
  span.t3 = parent.t3
  span.flags = parent.flags & ~SAMPLED
  span.tracestate = parent.tracestate
  return span
}

/** A span that records nothing and stands for `parent`, where there is one. */
function wrapSpanContext (parent) {
  if (parent === undefined) return INVALID_SPAN
  const span = unsampledIn(parent)
  span.s0 = parent.s0
  span.s1 = parent.s1
  span.flags = parent.flags
  return span
}

/** The caller's span of W3C header texts; null where they are not valid. */
function remoteSpanOf ({ traceparent, tracestate }) {
  const incoming = new IncomingContext()
  if (typeof traceparent !== 'string' || !parseTraceparent(traceparent, incoming)) return null
  incoming.tracestate = callerTracestate(tracestate, incoming)
  return new RemoteSpan(incoming)
}

module.exports = { NonRecordingSpan, RemoteSpan, INVALID_SPAN, unsampledIn, wrapSpanContext, remoteSpanOf }
