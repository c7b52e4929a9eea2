'use strict'

// Who calls: which trace a request continues, and whether its caller is trusted with that.

const { IncomingContext, copyTrace, PARENT_NONE, PARENT_LOCAL, PARENT_REMOTE, RANDOM } = require('../context/trace-context')
const { newTraceId } = require('../context/ids')
const { parentIn } = require('../context/parent')

// Loaded with the first request that has a caller; the last where its headers must be kept, and before there is a span: a file may
// not be readable just then.
let parseTraceparent = null
let cleanTracestate = null
let CallerHeaders = null

// Read again for every request and never kept.
const incoming = new IncomingContext()

class IncomingReader {
  constructor (tracer, callbacks) {
    this.tracer = tracer
    this.callbacks = callbacks
    this.trustsAll = tracer.settings.trustIncoming === true
    if (!this.trustsAll) loadCallerHeaders()
    this.extracted = undefined // of the request that is being read
    this.readsBaggage = tracer.settings.propagators.includes('baggage')
  }

  /**
   * Fills `incoming` with the caller's ids, or with new ones. HOT, once per request.
   * @param {http.IncomingMessage} raw
   * @param {object} headers of `raw`
   * @param {FastifyRequest} request for the user's `trustIncoming`
   * @param {number} start when the request came, milliseconds on the monotonic clock
   * @param {Context | null} base what was active before
   * @returns {IncomingContext}
   */
  read (raw, headers, request, start, base) {
    incoming.start = start
    incoming.isTrusted = this.trustsAll || this.isTrusted(headers, request)
    if (this.tracer.propagator !== null) this.readForeign(raw, headers, base)
    else if (incoming.isTrusted && headers.traceparent !== undefined && this.parse(headers.traceparent)) {
      incoming.tracestate = headers.tracestate === undefined ? '' : cleanTracestate(headers.tracestate)
      incoming.parentKind = PARENT_REMOTE
    } else this.begin(raw, headers)
    return incoming
  }

  /** HOT, once per request with a caller. */
  parse (traceparent) {
    if (parseTraceparent === null) {
      cleanTracestate = require('../context/tracestate').cleanTracestate
      parseTraceparent = require('../context/traceparent').parseTraceparent
    }
    return parseTraceparent(traceparent, incoming)
  }

  /**
   * For a request without a span: the trace that it hands on as it came, or null. No ids are made.
   * @returns {IncomingContext | null}
   */
  readPassedOn (raw, headers, request, base) {
    if (headers.traceparent === undefined && this.tracer.propagator === null) {
      incoming.isTrusted = this.trustsAll || this.isTrusted(headers, request)
      return null
    }
    return this.read(raw, headers, request, NaN, base).parentKind === PARENT_REMOTE ? incoming : null
  }

  /** Whether trace and baggage of this caller may go on: the user's function is asked once, and only where something came. */
  isTrusted (headers, request) {
    return (headers.traceparent !== undefined || headers.baggage !== undefined || this.tracer.propagator !== null) && this.callbacks.trusts(request)
  }

  /** By a propagator that is not ours. */
  readForeign (raw, headers, base) {
    loadCallerHeaders()
    this.extracted = incoming.isTrusted ? this.tracer.sdkInterop.extract(base, headers) : undefined
    const caller = parentIn(this.extracted)
    if (caller === undefined) this.begin(raw, headers)
    else this.adopt(caller, PARENT_REMOTE)
  }

  /** What is under the request's own context: `base`, or with a propagator that is not ours what that made of it. */
  contextUnder (base) {
    const { extracted } = this
    if (extracted === undefined) return base
    this.extracted = undefined
    return extracted
  }

  /** A trace of its own, or that of the request which calls `inject`. */
  begin (raw, headers) {
    incoming.tracestate = ''
    // Only inject() is called from inside a request on purpose; any other active context is a leftover.
    if (raw._lightMyRequest !== undefined && (headers.traceparent === undefined || this.tracer.propagator !== null) && this.adoptActive()) return
    newTraceId(incoming)
    incoming.flags = RANDOM
    incoming.parentKind = PARENT_NONE
  }

  adoptActive () {
    const span = parentIn(this.tracer.contextManager.active())
    if (span === undefined) return false
    // Of another process where a function's platform has said it, see serverless/flush-after.js.
    this.adopt(span, span.remote === true ? PARENT_REMOTE : PARENT_LOCAL)
    return true
  }

  adopt (span, parentKind) {
    copyTrace(span, incoming)
    incoming.p0 = span.s0
    incoming.p1 = span.s1
    incoming.parentKind = parentKind
  }

  /** What the caller sent, for calls that may have copied it. HOT, once per request. */
  callerOf (headers) {
    return incoming.isTrusted && this.tracer.propagator === null ? headers.traceparent : this.callerHeaders(headers)
  }

  /** The baggage of a caller that is trusted with it, for calls that go on. HOT, once per request. */
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

function loadCallerHeaders () {
  CallerHeaders ??= require('../context/caller-headers').CallerHeaders
}

function fieldsOf (propagator) {
  try {
    return propagator.fields().map((name) => String(name).toLowerCase())
  } catch {
    return []
  }
}

module.exports = { IncomingReader }
