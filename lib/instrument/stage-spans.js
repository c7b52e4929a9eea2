'use strict'

// The opt-in child spans of Fastify's own stages: which routes ask for which. A route's own `config.trace.spans`
// counts instead of the plugin's option.

const { resolveRouteOptions } = require('../config/route-options')
const { handlerSpans } = require('./handler-spans')
const { hookSpans } = require('./hook-spans')

/**
 * @param {FastifyInstance} app
 * @param {Tracer} tracer
 * @returns {() => void} release, for the end of the app
 */
function openStageSpans (app, tracer) {
  const { spans, disabled } = tracer.settings
  if (disabled) return () => {}
  const handlers = handlerSpans()
  const bracket = hookSpans(app, tracer)
  app.addHook('onRoute', (route) => {
    const { handler, hooks } = resolveRouteOptions(route.config?.trace).spans ?? spans
    if (hooks.length !== 0) bracket(route, hooks)
    if (handler) handlers.want(route)
  })
  return () => handlers.release()
}

module.exports = { openStageSpans }
