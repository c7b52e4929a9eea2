'use strict'

// What travels with a request: trace id, span id, flags and tracestate. Spans extend it; nothing here
// knows what a span records.
//
// Ids are kept as signed 32-bit words, most significant first: V8 stores them in the object itself,
// comparing and copying them costs nothing, and hex is made only for those who ask.

const { hex, newSpanId } = require('./ids')

let formatTraceparent = null // loaded with the first call that carries one

const inspect = Symbol.for('nodejs.util.inspect.custom')

const SAMPLED = 0x01
const RANDOM = 0x02

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

  get traceId () {
    return hex(this.t0) + hex(this.t1) + hex(this.t2) + hex(this.t3)
  }

  get spanId () {
    return hex(this.s0) + hex(this.s1)
  }

  get valid () {
    return (this.s0 | this.s1) !== 0 && (this.t0 | this.t1 | this.t2 | this.t3) !== 0
  }

  /** The W3C `traceparent` of this context, version 00. */
  get traceparent () {
    formatTraceparent ??= require('./traceparent').formatTraceparent
    return formatTraceparent(this)
  }

  /** What a person wants to see of it. */
  [inspect] () {
    return `${this.constructor.name} ${this.traceparent}`
  }

  /** The API's SpanContext: a plain object, made on demand. */
  spanContext () {
    const context = { traceId: this.traceId, spanId: this.spanId, traceFlags: this.flags }
    if (this.tracestate !== '') context.traceState = stateOf(this.tracestate)
    return context
  }
}

/** The API's TraceState. Who has a state has loaded its file. */
function stateOf (tracestate) {
  const { TraceState } = require('./tracestate')
  return new TraceState(tracestate)
}

/** What is known of a request before its span: the trace, the caller's span as p0, p1, and when it came. Reused, never kept. */
class IncomingContext {
  constructor () {
    this.start = NaN // milliseconds on the monotonic clock, as spans keep it
    this.parentKind = PARENT_NONE
    this.isTrusted = false // whether the caller's trace and baggage may go on
    this.attributes = null // of the user's functions, where a sampler is asked with them: an object
    this.t0 = 0
    this.t1 = 0
    this.t2 = 0
    this.t3 = 0
    this.p0 = 0
    this.p1 = 0
    this.flags = 0
    this.tracestate = ''
  }
}

/**
 * Trace id, flags and tracestate: what all of one trace share. What runs once per request or call copies
 * them itself, because V8 knows the classes of one place better than those of all.
 */
function copyTrace (from, to) {
  to.t0 = from.t0
  to.t1 = from.t1
  to.t2 = from.t2
  to.t3 = from.t3
  to.flags = from.flags
  to.tracestate = from.tracestate
}

/** A context of the same trace under a new span id: what one outgoing call carries. */
function childContext (parent) {
  const child = new TraceContext()
  copyTrace(parent, child)
  newSpanId(child)
  return child
}

module.exports = { TraceContext, IncomingContext, copyTrace, childContext, stateOf, SAMPLED, RANDOM, PARENT_NONE, PARENT_LOCAL, PARENT_REMOTE }
