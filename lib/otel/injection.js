'use strict'

// `request.trace.inject(headers)`: what an outgoing call carries, for those who make it by hand. And the headers of a
// propagator that is not ours, for them and for the calls that light-trace sees itself.

const { childContext } = require('../context/trace-context')
const { parentIn } = require('../context/parent')
const { SPAN_KEY, BAGGAGE_KEY } = require('../context/keys')
const { serializeBaggage } = require('../context/baggage')
const { CallerHeaders, isCopied, isUntrusted } = require('../context/caller-headers')
const { headersSetter } = require('./propagators')

/** Node's own header objects, and Headers; see outbound/propagation.js. */
const GIVEN = {
  read (headers, name) {
    const value = typeof headers.get === 'function' ? headers.get(name) ?? undefined : headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  },
  write: headersSetter.set,
  remove (headers, name) {
    if (typeof headers.delete === 'function') headers.delete(name)
    else delete headers[name]
  }
}

// What is asked for is written, whatever stands there; what is only copied must still not leave.
const GIVEN_OVERWRITTEN = { ...GIVEN, overwrites: true }

function inject (tracer, requestContext, headers) {
  const context = requestContext.here()
  const { caller } = requestContext
  const parent = parentIn(context)
  // A request without a span of its own hands on what came; else each call has an id of its own.
  const outgoing = parent === undefined || requestContext.suppressed ? parent : childContext(parent)
  if (tracer.propagator !== null) {
    injectForeign(tracer, outgoing === parent ? context : context.setValue(SPAN_KEY, outgoing), headers, GIVEN_OVERWRITTEN, caller)
    return headers
  }
  injectTrace(outgoing, headers, caller)
  const baggage = context.getValue(BAGGAGE_KEY)
  const text = baggage === undefined || baggage === null ? '' : serializeBaggage(baggage)
  if (text !== '') GIVEN.write(headers, 'baggage', text)
  else if (isUntrusted(caller) && isCopied(caller, 'baggage', GIVEN.read(headers, 'baggage'))) GIVEN.remove(headers, 'baggage')
  return headers
}

function injectTrace (outgoing, headers, caller) {
  const tracestate = outgoing === undefined ? '' : outgoing.tracestate
  if (outgoing !== undefined) {
    GIVEN.write(headers, 'traceparent', outgoing.traceparent)
  } else {
    const there = GIVEN.read(headers, 'traceparent')
    if (there !== undefined && !isCopied(caller, 'traceparent', there)) return
    if (there !== undefined) GIVEN.remove(headers, 'traceparent')
  }
  if (tracestate !== '') GIVEN.write(headers, 'tracestate', tracestate)
  else if (GIVEN.read(headers, 'tracestate') !== undefined) GIVEN.remove(headers, 'tracestate')
}

/**
 * By a propagator that is not ours: OTEL_PROPAGATORS, or the API's slot.
 * @param {{ propagator, report }} tracer
 * @param {Context} context with the span
 * @param {object} call
 * @param {{ read, write, remove, overwrites? }} headers of the call
 * @param {string | CallerHeaders | undefined} caller whose headers the call may have copied
 */
function injectForeign ({ propagator, report }, context, call, headers, caller) {
  const written = new Set()
  const setter = {
    set (carrier, key, value) {
      const name = key.toLowerCase()
      const there = headers.overwrites === true ? undefined : headers.read(carrier, name)
      if (there !== undefined && !isCopied(caller, name, there)) return
      written.add(name)
      headers.write(carrier, headers.overwrites === true ? key : name, String(value))
    }
  }
  try {
    propagator.inject(context, call, setter)
  } catch (error) {
    report.once('LT_WARN_PROPAGATOR', `the propagator failed: ${error?.message}`)
  }
  if (caller instanceof CallerHeaders) removeCopied(caller, written, call, headers)
}

/** What was copied and not written anew. A trusted caller's stays where the propagator wrote nothing at all. */
function removeCopied (caller, written, call, headers) {
  if (caller.isTrusted && written.size === 0) return
  for (const name of caller.names) {
    const there = headers.read(call, name)
    if (!written.has(name) && there !== undefined && caller.has(name, there)) headers.remove(call, name)
  }
}

module.exports = { inject, injectForeign }
