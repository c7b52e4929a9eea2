'use strict'

// The context keys that the OpenTelemetry API and SDK use. `createContextKey` is `Symbol.for` of the
// description, in every version of the API, so they can be had without loading it.

const SPAN_KEY = Symbol.for('OpenTelemetry Context Key SPAN')
const BAGGAGE_KEY = Symbol.for('OpenTelemetry Baggage Key')
const SUPPRESS_KEY = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING')
const RPC_KEY = Symbol.for('OpenTelemetry SDK Context Key RPC_METADATA')

// Symbol.for, so that two copies of this package in one process see the same request.
const REQUEST_KEY = Symbol.for('light-trace.request')

module.exports = { SPAN_KEY, BAGGAGE_KEY, SUPPRESS_KEY, RPC_KEY, REQUEST_KEY }
