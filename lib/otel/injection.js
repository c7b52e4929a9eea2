'use strict'

// `request.trace.inject(headers)`: what an outgoing call carries, for those who make it by hand.

const { childContext } = require('../context/trace-context')
const { parentIn } = require('../context/parent')
const { SPAN_KEY, BAGGAGE_KEY } = require('../context/keys')
const { serializeBaggage } = require('../context/baggage')
const { headersSetter } = require('./propagators')

function inject (tracer, requestContext, headers) {
  const context = requestContext.here()
  const parent = parentIn(context)
  // A request without a span of its own hands on what came; else each call has an id of its own.
  const outgoing = parent === undefined || requestContext.suppressed ? parent : childContext(parent)
  if (tracer.propagator !== null) {
    return injectForeign(tracer, outgoing === parent ? context : context.setValue(SPAN_KEY, outgoing), headers)
  }
  if (outgoing !== undefined) {
    headersSetter.set(headers, 'traceparent', outgoing.traceparent)
    if (outgoing.tracestate !== '') headersSetter.set(headers, 'tracestate', outgoing.tracestate)
  }
  const baggage = context.getValue(BAGGAGE_KEY)
  const text = baggage === undefined ? '' : serializeBaggage(baggage)
  if (text !== '') headersSetter.set(headers, 'baggage', text)
  return headers
}

/** By a propagator that is not ours. */
function injectForeign ({ propagator, report }, context, headers, setter = headersSetter) {
  try {
    propagator.inject(context, headers, setter)
  } catch (error) {
    report.once('LT_WARN_PROPAGATOR', `the propagator failed: ${error?.message}`)
  }
  return headers
}

module.exports = { inject, injectForeign }
