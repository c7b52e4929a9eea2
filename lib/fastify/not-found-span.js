'use strict'

// The handler span of a custom not-found handler. Fastify publishes no channel for it and tells no onRoute hook of it, so
// the span begins with a preHandler hook, which does nothing for requests that have a route. It ends with the response, or
// with the error that the handler throws.

const { enterStage } = require('./request-stages')

// Fastify's own, which has nothing to say.
const DEFAULT_HANDLER = 'basic404'

function traceNotFound (app, tracer) {
  app.addHook('preHandler', function lightTraceNotFound (request, reply, done) {
    if (request.is404 && request.routeOptions.handler?.name !== DEFAULT_HANDLER) enterStage(tracer, null, 'handler', request, reply, undefined, done)
    else done()
  })
}

module.exports = { traceNotFound }
