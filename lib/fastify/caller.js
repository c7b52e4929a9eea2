'use strict'

// Who calls: which trace a request continues, and whether its caller is trusted with that.

const { IncomingContext, callerTracestate, copyTrace, parentIn, PARENT_NONE, PARENT_LOCAL, PARENT_REMOTE, RANDOM } = require('../context/trace-context')
const { CallerHeaders } = require('../context/request-context')
const { newTraceId } = require('../context/ids')
const { parseTraceparent } = require('../context/traceparent')

// Read again for every request and never kept.
const incoming = new IncomingContext()

class IncomingReader {
  constructor (tracer, callbacks) {
    this.tracer = tracer
    this.callbacks = callbacks
    this.trustsAll = tracer.settings.trustIncoming === true
    this.extracted = undefined // of the request that is being read
    this.readsBaggage = tracer.settings.propagators.includes('baggage')
  }

  /**
   * Fills `incoming` with the caller's ids, or with new ones. HOT, once per request.
   * @param {number} start when the request came, milliseconds on the monotonic clock
   * @param {Context | null} base what was active before
   */
  read (raw, headers, request, start, base) {
    incoming.start = start
    incoming.isTrusted = this.trustsAll || this.isTrusted(headers, request)
    if (this.tracer.propagator !== null) this.readForeign(raw, headers, base)
    else if (incoming.isTrusted && headers.traceparent !== undefined && parseTraceparent(headers.traceparent, incoming)) {
      incoming.tracestate = headers.tracestate === undefined ? '' : callerTracestate(headers.tracestate, incoming)
      incoming.parentKind = PARENT_REMOTE
    } else this.begin(raw, headers)
    return incoming
  }

  /** The trace that a request without a span hands on as it came, or null. No ids are made. */
  readPassedOn (raw, headers, request, base) {
    if (headers.traceparent === undefined && this.tracer.propagator === null) {
      incoming.isTrusted = this.trustsAll || this.isTrusted(headers, request)
      return null
    }
    return this.read(raw, headers, request, NaN, base).parentKind === PARENT_REMOTE ? incoming : null
  }

  /** Whether trace and baggage of this caller, if there are any, may go on. */
  isTrusted (headers, request) {
    return (headers.traceparent !== undefined || headers.baggage !== undefined || this.tracer.propagator !== null) && this.callbacks.trusts(request)
  }

  /** Fills `incoming` by a propagator that is not ours. */
  readForeign (raw, headers, base) {
    this.extracted = incoming.isTrusted ? this.tracer.sdkInterop.extract(base, headers) : undefined
    const caller = parentIn(this.extracted)
    if (caller === undefined) this.begin(raw, headers)
    else this.adopt(caller, PARENT_REMOTE)
  }

  /** The context under the request's own: `base`, or what a propagator that is not ours made of it. */
  contextUnder (base) {
    const { extracted } = this
    this.extracted = undefined
    return extracted ?? base
  }

  /** Fills `incoming` with a new trace, or with that of the request which calls `app.inject`. */
  begin (raw, headers) {
    incoming.tracestate = ''
    // Only app.inject() is called from inside a request on purpose; any other active context is a leftover.
    if (raw._lightMyRequest !== undefined && (headers.traceparent === undefined || this.tracer.propagator !== null) && this.adoptActive()) return
    newTraceId(incoming)
    incoming.flags = RANDOM
    incoming.parentKind = PARENT_NONE
  }

  adoptActive () {
    const span = parentIn(this.tracer.contextManager.active())
    // A remote one is active where a platform of functions names it, see serverless/platforms.js.
    if (span !== undefined) this.adopt(span, span.remote === true ? PARENT_REMOTE : PARENT_LOCAL)
    return span !== undefined
  }

  adopt (span, parentKind) {
    copyTrace(span, incoming)
    incoming.p0 = span.s0
    incoming.p1 = span.s1
    incoming.parentKind = parentKind
  }

  /** The headers that came, for calls into which a proxy copies them. HOT, once per request. */
  callerOf (headers) {
    return incoming.isTrusted && this.tracer.propagator === null ? headers.traceparent : this.callerHeaders(headers)
  }

  /** The baggage of a trusted caller, for calls that hand it on. HOT, once per request. */
  baggageOf ({ baggage }) {
    return incoming.isTrusted && this.readsBaggage && typeof baggage === 'string' ? baggage : null
  }

  callerHeaders (headers) {
    const { propagator } = this.tracer
    if (propagator !== null) return new CallerHeaders(headers, fieldsOf(propagator), incoming.isTrusted)
    const isEmpty = headers.traceparent === undefined && headers.tracestate === undefined && headers.baggage === undefined
    return isEmpty ? undefined : new CallerHeaders(headers, [], false)
  }
}

function fieldsOf (propagator) {
  try {
    return propagator.fields().map((name) => String(name).toLowerCase())
  } catch {
    return []
  }
}

module.exports = { IncomingReader }
