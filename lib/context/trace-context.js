'use strict'

// What is propagated with a request: trace id, span id, flags and tracestate. Spans extend this class.
//
// Ids are signed 32-bit words, most significant first. V8 stores them in the object itself. Hex is made on demand.

const { hex } = require('./ids.js')
const { formatTraceparent, parseTraceparent } = require('./traceparent.js')
const { TraceState, cleanTracestate, hadOt, thresholdOf, randomnessOf, withoutThreshold } = require('./tracestate.js')

const inspect = Symbol.for('nodejs.util.inspect.custom')

// The context keys of the OpenTelemetry API and SDK. In every version, `createContextKey` returns `Symbol.for` of the description.
const SPAN_KEY = Symbol.for('OpenTelemetry Context Key SPAN')
const BAGGAGE_KEY = Symbol.for('OpenTelemetry Baggage Key')
const SUPPRESS_KEY = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING')
const RPC_KEY = Symbol.for('OpenTelemetry SDK Context Key RPC_METADATA')

// Symbol.for, so that two copies of this package in one process see the same request.
const REQUEST_KEY = Symbol.for('light-trace.request')

const SAMPLED = 0x01
const RANDOM = 0x02

const OPEN = -1 // the `endedAt` of a span that has not ended

const PARENT_NONE = 0
const PARENT_LOCAL = 1
const PARENT_REMOTE = 2

class TraceContext {
  constructor () {
    this.t0 = 0
    this.t1 = 0
    this.t2 = 0
    this.t3 = 0
    this.s0 = 0
    this.s1 = 0
    this.flags = 0
    this.tracestate = ''
  }

  get traceId () { return hex(this.t0) + hex(this.t1) + hex(this.t2) + hex(this.t3) }
  get spanId () { return hex(this.s0) + hex(this.s1) }
  get valid () { return (this.s0 | this.s1) !== 0 && (this.t0 | this.t1 | this.t2 | this.t3) !== 0 }
  /** The W3C `traceparent` of this context, version 00. */
  get traceparent () { return formatTraceparent(this) }
  /** The span that the application and contexts get. */
  get apiSpan () { return this }
  [inspect] () { return `${this.constructor.name} ${this.traceparent}` }

  /** The API's SpanContext: a plain object, made on demand. */
  spanContext () {
    const context = { traceId: this.traceId, spanId: this.spanId, traceFlags: this.flags }
    if (this.tracestate !== '') context.traceState = new TraceState(this.tracestate)
    if (this.remote) context.isRemote = true
    return context
  }
}

// Whether the span belongs to another process. A default on the prototype, because only remote spans have a field of their own.
TraceContext.prototype.remote = false
// Only recording spans have calls. The default hides a `calls` that other code puts on Object.prototype.
TraceContext.prototype.calls = undefined
// The span of the request that contains this span, if it is one of ours.
TraceContext.prototype.request = null

/** A request before its span exists: the trace, the caller's span id as p0 and p1, and the start time. Reused for each request, never kept. */
class IncomingContext extends TraceContext {
  constructor () {
    super()
    this.p0 = 0
    this.p1 = 0
    this.start = NaN // milliseconds on the monotonic clock, like a span's start
    this.parentKind = PARENT_NONE
    this.isTrusted = false // whether the caller's trace and baggage are passed on
    this.attributes = null // an object with the attributes of the user's functions, if a sampler needs them
  }
}

/**
 * Copies trace id, flags and tracestate, which all spans of a trace share. Hot functions copy them inline instead: each inline copy sees
 * only a few classes, which V8 optimises better than one call site that sees all.
 */
function copyTrace (from, to) {
  to.t0 = from.t0
  to.t1 = from.t1
  to.t2 = from.t2
  to.t3 = from.t3
  to.flags = from.flags
  to.tracestate = from.tracestate
}

/** Copies trace id, span id, flags and tracestate. */
function copyIds (from, to) {
  copyTrace(from, to)
  to.s0 = from.s0
  to.s1 = from.s1
}

/**
 * What to propagate of a caller's `tracestate`: everything except a threshold that is invalid, occurs twice, or contradicts the caller's
 * own decision. A trace is sampled if its randomness is at least the threshold. Without this check, any client could make one span
 * represent 10^15 requests.
 * https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/
 */
function callerTracestate (header, { t2, t3, flags }) {
  const tracestate = cleanTracestate(header)
  if (!hadOt()) return tracestate
  const threshold = thresholdOf(tracestate)
  if (threshold === '') return withoutThreshold(tracestate)
  const randomness = randomnessOf(tracestate) || hex(t2).slice(2) + hex(t3)
  const isSampled = (flags & SAMPLED) !== 0
  return isSampled === (randomness >= threshold.padEnd(14, '0')) ? tracestate : withoutThreshold(tracestate)
}

/**
 * HOT. The span of a context as a TraceContext, whichever library created it.
 * @param {Context | undefined} context
 * @returns {TraceContext | undefined} undefined if the context has no valid span
 */
function parentIn (context) {
  const span = context === undefined || context === null ? undefined : context.getValue(SPAN_KEY)
  return span === undefined || span === null ? undefined : traceOf(span)
}

/** The span as a TraceContext, or undefined if it is invalid. The span may be a proxy that throws. */
function traceOf (span) {
  try {
    if (span instanceof TraceContext) return span.valid ? span : undefined
  } catch {
    return undefined
  }
  return readSpanContext(span)
}

/** Reads another library's span. Undefined if that throws; a span that cannot be read is not used as a parent. */
function readSpanContext (span) {
  return readContext(() => span.spanContext())
}

/** Reads the SpanContext that `get` returns. Undefined if it is invalid or throws. If only the trace state throws, only that is lost. */
function readContext (get) {
  const read = new IncomingContext()
  try {
    const { traceId, spanId, traceFlags, traceState, isRemote } = get()
    if (!parseTraceparent(`00-${traceId}-${spanId}-00`, read)) return undefined
    read.s0 = read.p0
    read.s1 = read.p1
    read.flags = typeof traceFlags === 'number' ? traceFlags & (SAMPLED | RANDOM) : 0
    read.remote = isRemote === true
    try {
      read.tracestate = cleanTracestate(traceState?.serialize())
    } catch {}
    return read
  } catch {
    return undefined
  }
}

module.exports = { SPAN_KEY, BAGGAGE_KEY, SUPPRESS_KEY, RPC_KEY, REQUEST_KEY, TraceContext, IncomingContext, copyTrace, copyIds, SAMPLED, RANDOM, OPEN, PARENT_NONE, PARENT_LOCAL, PARENT_REMOTE, callerTracestate, parentIn, traceOf, readSpanContext, readContext }
