'use strict'

// The headers that an outgoing call carries: traceparent with the CLIENT span's id as the parent, tracestate
// and baggage. A header that the user set stays, except the caller's own traceparent that a proxy passes on
// as it came: the next service would hang beside our span instead of under it.

const { TraceContext } = require('../context/trace-context')
const { SPAN_KEY, REQUEST_KEY, BAGGAGE_KEY } = require('../context/keys')
const { serializeBaggage } = require('../context/baggage')
const { injectForeign } = require('../otel/injection')

/**
 * @param {Tracer} tracer
 * @param {Context} context of the calling code
 * @param {Span} span whose id the called service sees as its parent
 * @param {object} call
 * @param {(call, name: string) => string | undefined} read a header of the call
 * @param {(call, name: string, value: string) => void} write one; replaces
 */
// HOT, once per outgoing call. Budget: 1 string.
function propagate (tracer, context, span, call, read, write) {
  if (tracer.propagator !== null) {
    propagateForeign(tracer, context, span, call, read, write)
    return
  }
  writeTrace(context, span, call, read, write)
  writeBaggage(context, call, read, write)
}

/** By a propagator that is not ours: OTEL_PROPAGATORS, or the API's slot. */
function propagateForeign (tracer, context, span, call, read, write) {
  const caller = context.getValue(REQUEST_KEY)?.caller
  injectForeign(tracer, context.setValue(SPAN_KEY, span), call, {
    set (carrier, name, value) {
      const there = read(carrier, name.toLowerCase())
      if (there === undefined || there === caller) write(carrier, name.toLowerCase(), String(value))
    }
  })
}

function writeTrace (context, span, call, read, write) {
  const there = read(call, 'traceparent')
  if (there !== undefined && there !== context.getValue(REQUEST_KEY)?.caller) return
  if (!(span instanceof TraceContext)) {
    writeForeign(span, call, read, write)
    return
  }
  if (!span.valid) return
  write(call, 'traceparent', span.traceparent)
  if (span.tracestate !== '') write(call, 'tracestate', span.tracestate)
}

/** A span of an SDK. */
function writeForeign (span, call, read, write) {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext()
  if (/^0*$/.test(traceId)) return
  write(call, 'traceparent', `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`)
  const text = traceState === undefined || traceState === null ? '' : traceState.serialize()
  if (text !== '') write(call, 'tracestate', text)
}

function writeBaggage (context, call, read, write) {
  const baggage = context.getValue(BAGGAGE_KEY)
  if (baggage === undefined || baggage === null || read(call, 'baggage') !== undefined) return
  const text = serializeBaggage(baggage)
  if (text !== '') write(call, 'baggage', text)
}

/** On an ignored or disabled request: what came is handed on as it came, without a span of ours. */
function passOn (tracer, context, call, read, write) {
  const request = context.getValue(REQUEST_KEY)
  if (request === undefined || !request.suppressed) return // traffic of our own, or suppressed by the user
  propagate(tracer, context, context.getValue(SPAN_KEY), call, read, write)
}

/** Whether the call may have our headers; the user's function decides by its URL, and a failing one says no. */
function mayPropagate (tracer, call) {
  const { propagateTo } = tracer.outbound
  if (propagateTo === null) return true
  try {
    return propagateTo(call.url) === true
  } catch (error) {
    tracer.report.once('LT_WARN_CALLBACK', `the option outbound.propagateTo failed; calls go on without trace headers: ${error?.message}`)
    return false
  }
}

module.exports = { propagate, passOn, mayPropagate }
