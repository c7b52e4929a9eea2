'use strict'

// W3C trace context and baggage as the API's TextMapPropagator, and several propagators as one.

const { IncomingContext } = require('../context/trace-context')
const { parseTraceparent } = require('../context/traceparent')
const { cleanTracestate } = require('../context/tracestate')
const { parseBaggage, serializeBaggage } = require('../context/baggage')
const { parentIn } = require('../context/parent')
const { SPAN_KEY, BAGGAGE_KEY, SUPPRESS_KEY, REQUEST_KEY } = require('../context/keys')
const { RemoteSpan } = require('../span/non-recording-span')

class TraceContextPropagator {
  inject (context, carrier, setter) {
    const parent = parentIn(context)
    if (parent === undefined || isSilenced(context)) return
    setter.set(carrier, 'traceparent', parent.traceparent)
    if (parent.tracestate !== '') setter.set(carrier, 'tracestate', parent.tracestate)
  }

  extract (context, carrier, getter) {
    const incoming = new IncomingContext()
    if (!parseTraceparent(only(getter.get(carrier, 'traceparent')), incoming)) return context
    incoming.tracestate = cleanTracestate(joined(getter.get(carrier, 'tracestate')))
    return context.setValue(SPAN_KEY, new RemoteSpan(incoming))
  }

  fields () { return ['traceparent', 'tracestate'] }
}

class BaggagePropagator {
  inject (context, carrier, setter) {
    const baggage = context.getValue(BAGGAGE_KEY)
    if (baggage === undefined || isSilenced(context)) return
    const text = serializeBaggage(baggage)
    if (text !== '') setter.set(carrier, 'baggage', text)
  }

  extract (context, carrier, getter) {
    const header = joined(getter.get(carrier, 'baggage'))
    const baggage = typeof header === 'string' ? parseBaggage(header) : undefined
    return baggage === undefined ? context : context.setValue(BAGGAGE_KEY, baggage)
  }

  fields () { return ['baggage'] }
}

/** One that does what several do. What a user's propagator throws stops none of the others. */
class CompositePropagator {
  #propagators

  constructor (propagators) {
    this.#propagators = propagators
  }

  inject (context, carrier, setter) {
    for (const propagator of this.#propagators) attempt(() => propagator.inject(context, carrier, setter))
  }

  extract (context, carrier, getter) {
    return this.#propagators.reduce((read, propagator) => attempt(() => propagator.extract(read, carrier, getter)) ?? read, context)
  }

  fields () {
    return [...new Set(this.#propagators.flatMap((propagator) => attempt(() => propagator.fields()) ?? []))]
  }
}

/**
 * Suppressed work, such as an exporter's own, carries nothing; a request that is only not traced hands on
 * what came.
 */
function isSilenced (context) {
  return context.getValue(SUPPRESS_KEY) === true && context.getValue(REQUEST_KEY)?.suppressed !== true
}

// A traceparent that came twice is none.
function only (value) {
  return Array.isArray(value) ? value.length === 1 ? value[0] : undefined : value
}

function joined (value) {
  return Array.isArray(value) ? value.join(',') : value
}

function attempt (fn) {
  try {
    return fn()
  } catch {
    return undefined
  }
}

const W3C = new CompositePropagator([new TraceContextPropagator(), new BaggagePropagator()])

module.exports = { TraceContextPropagator, BaggagePropagator, CompositePropagator, W3C }
