'use strict'

// The span of a context as a TraceContext, whoever made it.

const { TraceContext, SAMPLED, RANDOM } = require('./trace-context')
const { SPAN_KEY } = require('./keys')

// Loaded with the first span that is not ours.
let parseTraceparent = null
let cleanTracestate = null

module.exports = { parentIn, readSpanContext }

/**
 * @param {Context | undefined} context
 * @returns {TraceContext | undefined} undefined where there is none, or none that is valid
 */
function parentIn (context) {
  const span = context === undefined || context === null ? undefined : context.getValue(SPAN_KEY)
  if (span === undefined || span === null) return undefined
  if (span instanceof TraceContext) return span.valid ? span : undefined
  return readSpanContext(span)
}

/** Somebody else's span may do as it likes: what cannot be read is no parent. */
function readSpanContext (span) {
  try {
    parseTraceparent ??= require('./traceparent').parseTraceparent
    cleanTracestate ??= require('./tracestate').cleanTracestate
    const { traceId, spanId, traceFlags, traceState, isRemote } = span.spanContext()
    const read = new TraceContext()
    if (!parseTraceparent(`00-${traceId}-${spanId}-00`, read)) return undefined
    read.s0 = read.p0
    read.s1 = read.p1
    read.flags = traceFlags & (SAMPLED | RANDOM)
    read.tracestate = traceState === undefined || traceState === null ? '' : cleanTracestate(traceState.serialize())
    read.remote = isRemote === true
    return read
  } catch {
    return undefined
  }
}
