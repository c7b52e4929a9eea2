'use strict'

// What hangs on Fastify's and Node's own objects. Symbol.for: with two copies of this package in one application, the
// first makes the span. What is under the keys has nothing enumerable: no walk over a request or a
// response may lead to a span, from there to the exporter and the application.

module.exports = {
  kSpan: Symbol.for('light-trace.span'), // on the raw response
  kTrace: Symbol.for('light-trace.trace'), // on Fastify's request
  kStage: Symbol('light-trace.stage') // on Fastify's request: its RequestStages, where stages have spans
}
