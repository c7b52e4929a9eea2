'use strict'

// What hangs on Fastify's and Node's own objects. Symbol.for: with two copies of this package in one application, the
// first makes the span.

module.exports = {
  kSpan: Symbol.for('light-trace.span'), // on the raw response: the record of the request, until it has ended
  kTrace: Symbol.for('light-trace.trace') // on Fastify's request: its RequestContext
}
