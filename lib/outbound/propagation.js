'use strict'

// The headers that an outgoing call carries: traceparent with the CLIENT span's id as the parent, tracestate and baggage. A header
// that the user set stays. One that a proxy has copied from the request does not: beside our traceparent only our tracestate means
// anything, and what an untrusted caller sent must not reach an inner service.

const { traceOf, SPAN_KEY, REQUEST_KEY, BAGGAGE_KEY } = require('../context/trace-context')
const { serializeBaggage } = require('../context/baggage')
const { isCopied, isUntrusted } = require('../context/request-context')
const { atOnce } = require('../runtime/user-code')
const { injectForeign } = require('../otel/propagators')

/**
 * Writes the headers of a call.
 * @param {Tracer} tracer
 * @param {Context} context of the calling code
 * @param {Span} span whose id the called service sees as its parent
 * @param {object} call
 * @param {{ read (call, name): string | undefined, write (call, name, value), remove (call, name) }} headers of a kind of client
 */
// HOT, once per outgoing call. Budget: 1 string.
function propagate (tracer, context, span, call, headers) {
  const request = /** @type {RequestContext | undefined} */ (context.getValue(REQUEST_KEY))
  const caller = request?.caller
  if (tracer.propagator !== null) {
    injectForeign(tracer, context.setValue(SPAN_KEY, span), call, headers, caller)
    return
  }
  writeTrace(caller, traceOf(span), call, headers)
  writeBaggage(caller, context, call, headers)
}

function writeTrace (caller, trace, call, headers) {
  const there = headers.read(call, 'traceparent')
  if (there !== undefined && !isCopied(caller, 'traceparent', there)) return
  // Usual calls have copied nothing, and are not searched for more.
  const mayBeCopied = there !== undefined || isUntrusted(caller)
  if (trace !== undefined) headers.write(call, 'traceparent', trace.traceparent)
  else if (mayBeCopied) headers.remove(call, 'traceparent')
  if (trace !== undefined && trace.tracestate !== '') headers.write(call, 'tracestate', trace.tracestate)
  else if (mayBeCopied) headers.remove(call, 'tracestate')
}

function writeBaggage (caller, context, call, headers) {
  const baggage = context.getValue(BAGGAGE_KEY)
  const isEmpty = baggage === undefined || baggage === null
  if (isEmpty && !isUntrusted(caller)) return
  const there = headers.read(call, 'baggage')
  const mustGo = there !== undefined && isUntrusted(caller) && isCopied(caller, 'baggage', there)
  if (there !== undefined && !mustGo) return
  const text = isEmpty ? '' : serializeBaggage(baggage)
  if (text !== '') headers.write(call, 'baggage', text)
  else if (mustGo) headers.remove(call, 'baggage')
}

/** Whether the call may have our headers; the user's function decides by its URL, and a failing one says no. */
function mayPropagate (tracer, call) {
  const { propagateTo } = tracer.outbound
  if (propagateTo === null) return true
  try {
    return atOnce(propagateTo(call.url)) === true
  } catch (error) {
    tracer.report.failed('LT_WARN_CALLBACK', 'the option outbound.propagateTo failed; calls go on without trace headers', error)
    return false
  }
}

module.exports = { propagate, mayPropagate }
