'use strict'

// As an app registers light-trace itself, first of its plugins. One route more says whether the contexts agree in a handler.

const { subscribe } = require('node:diagnostics_channel')
const { trace } = require('@opentelemetry/api')
const lightTrace = require('light-trace')

module.exports = (options) => subscribe('fastify.initialization', ({ fastify }) => {
  fastify.register(lightTrace, options)
  fastify.get('/contexts', async (request) => {
    await new Promise((resolve) => setImmediate(resolve))
    return {
      isCurrent: lightTrace.current() === request.trace,
      traceIds: [request.trace.traceId, lightTrace.current()?.traceId, trace.getActiveSpan()?.spanContext().traceId]
    }
  })
})
