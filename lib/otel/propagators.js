'use strict'

// TextMapPropagators of the API: W3C propagators for users of the API, and the propagators of OTEL_PROPAGATORS or of an SDK. Requests and
// calls use the latter instead of our own W3C code.

const { parentIn, SPAN_KEY, BAGGAGE_KEY, SUPPRESS_KEY, REQUEST_KEY } = require('../context/trace-context.js')
const { parseBaggage, serializeBaggage, besideSentrys } = require('../context/baggage.js')
const { attempt } = require('../runtime/report.js')
const { remoteSpanOf } = require('../span/child-span.js')
const { CallerHeaders, isCopied } = require('../context/request-context.js')
const { slots } = require('./api-facade.js')
const { propagatorOf } = require('../features.js')

const W3C_FIELDS = ['traceparent', 'tracestate', 'baggage']

const traceContext = {
  inject (context, carrier, setter) {
    const parent = parentIn(context)
    if (parent === undefined || isSilenced(context)) return
    setter.set(carrier, 'traceparent', parent.traceparent)
    if (parent.tracestate !== '') setter.set(carrier, 'tracestate', parent.tracestate)
  },

  extract (context, carrier, getter) {
    const traceparent = getter.get(carrier, 'traceparent')
    const caller = remoteSpanOf({
      traceparent: Array.isArray(traceparent) && traceparent.length === 1 ? traceparent[0] : traceparent, // a repeated header is invalid
      tracestate: joined(getter.get(carrier, 'tracestate'))
    })
    return caller === null ? context : context.setValue(SPAN_KEY, caller)
  },

  fields: () => ['traceparent', 'tracestate']
}

const baggage = {
  inject (context, carrier, setter) {
    const text = isSilenced(context) ? '' : serializeBaggage(context.getValue(BAGGAGE_KEY))
    if (text !== '') setter.set(carrier, 'baggage', text)
  },

  extract (context, carrier, getter) {
    const header = joined(getter.get(carrier, 'baggage'))
    return typeof header === 'string' ? context.setValue(BAGGAGE_KEY, parseBaggage(header)) : context
  },

  fields: () => ['baggage']
}

/** Combines several propagators. If one throws, the others still run. */
function composite (propagators) {
  return {
    inject (context, carrier, setter) {
      for (const propagator of propagators) attempt(() => propagator.inject(context, carrier, setter))
    },
    extract: (context, carrier, getter) =>
      propagators.reduce((read, propagator) => attempt(() => propagator.extract(read, carrier, getter)) ?? read, context),
    fields: () => [...new Set(propagators.flatMap((propagator) => attempt(() => propagator.fields()) ?? []))]
  }
}

/** Whether nothing is propagated: for suppressed work, such as an exporter's. A request that is only untraced passes on what it received. */
function isSilenced (context) {
  return context.getValue(SUPPRESS_KEY) === true && context.getValue(REQUEST_KEY)?.suppressed !== true
}

function joined (value) {
  return Array.isArray(value) ? value.join(',') : value
}

const W3C = composite([traceContext, baggage])

/**
 * The propagator that reads and writes the headers of requests and calls. Null for our own W3C code.
 * @param {{ propagators: string[] }} settings
 * @param {object | undefined} own the propagator that we put into the slot ourselves
 * @returns {TextMapPropagator | null}
 */
function propagatorFor ({ propagators }, report, own) {
  const handedOver = slots()?.propagation
  // The usual propagator of an SDK is W3C too. Then we use our own, which reads the same headers more strictly.
  const isW3C = (field) => W3C_FIELDS.includes(String(field).toLowerCase())
  if (handedOver !== own && attempt(() => handedOver?.fields().every(isW3C)) === false) return handedOver
  if (propagators.join() === 'tracecontext,baggage') return null
  const made = propagators.map((name) => make(name, report)).filter((propagator) => propagator !== undefined)
  // If none of the names can be used, the variable is ignored, like any invalid variable.
  return made.length === 0 && propagators.length > 0 ? null : composite(made)
}

function make (name, report) {
  if (name === 'tracecontext') return traceContext
  return name === 'baggage' ? baggage : propagatorOf(name, report)
}

/** The getter with which a propagator reads a request's headers. */
const headersGetter = {
  get: (headers, name) => headers[name.toLowerCase()],
  keys: (headers) => Object.keys(headers)
}

/** Reads and changes headers that the user passes in: a Headers object, or a plain object. See outbound/client-span.js. */
const GIVEN = {
  overwrites: true, // existing headers are overwritten
  read (headers, name) {
    const value = typeof headers.get === 'function' ? headers.get(name) ?? undefined : headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  },
  write (headers, name, value) {
    if (name === 'traceparent') this.remove(headers, 'tracestate') // it belongs to another trace. The propagator writes the right one next
    if (typeof headers.set === 'function') headers.set(name, value)
    else headers[name] = value
  },
  remove (headers, name) {
    if (typeof headers.delete === 'function') headers.delete(name)
    else delete headers[name]
  }
}

/** `request.trace.inject(headers)`: writes the active span as the parent, or passes on the request's headers if it is not traced. */
function inject ({ propagator, report }, requestContext, headers) {
  injectForeign({ propagator: propagator ?? W3C, report }, requestContext.here(), headers, GIVEN, requestContext.caller)
  return headers
}

/**
 * Writes the headers of an outgoing call with a propagator that is not ours.
 * @param {{ propagator, report }} tracer
 * @param {Context} context the context with the span
 * @param {object} call
 * @param {{ read, write, remove, overwrites? }} headers access to the headers of the call
 * @param {string | CallerHeaders | undefined} caller the request's trace headers, which the call may have copied
 */
function injectForeign ({ propagator, report }, context, call, headers, caller) {
  const written = new Set()
  const setter = {
    set (carrier, key, value) {
      const name = key.toLowerCase()
      const there = headers.overwrites === true ? undefined : headers.read(carrier, name)
      const isTheirs = there !== undefined && !isCopied(caller, name, there)
      const text = isTheirs && name === 'baggage' ? besideSentrys(there, String(value)) : isTheirs ? undefined : String(value)
      if (text === undefined) return
      written.add(name)
      headers.write(carrier, headers.overwrites === true ? key : name, text)
    }
  }
  report.attempt('LT_WARN_PROPAGATOR', 'the propagator failed to write headers', () => propagator.inject(context, call, setter))
  if (caller instanceof CallerHeaders) removeCopied(caller, written, call, headers)
}

/** Removes copied headers that the propagator did not write again. If it wrote nothing, a trusted caller's headers are kept. */
function removeCopied (caller, written, call, headers) {
  if (caller.isTrusted && written.size === 0) return
  for (const name of caller.names) {
    const there = headers.read(call, name)
    if (!written.has(name) && there !== undefined && caller.has(name, there)) headers.remove(call, name)
  }
}

module.exports = { W3C, propagatorFor, headersGetter, inject, injectForeign }
