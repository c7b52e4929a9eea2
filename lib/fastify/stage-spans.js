'use strict'

// The opt-in child spans of Fastify's own stages: which routes ask for which. A route's own `config.trace.spans`
// counts instead of the plugin's option.

const { resolveRouteOptions } = require('../config/route-options')

// Each kind is required when the first route asks for it, which is before the application is ready.

/**
 * @param {FastifyInstance} app
 * @param {Tracer} tracer
 * @returns {() => void} release, for the end of the app
 */
function openStageSpans (app, tracer) {
  const { spans, disabled } = tracer.settings
  if (disabled) return () => {}
  let handlers = null
  let stages = spans.hooks.length === 0 ? null : openHookSpans()
  if (spans.handler) require('./not-found-span').traceNotFound(app, tracer)
  app.addHook('onRoute', function lightTraceStages (route) {
    const { handler, hooks } = resolveRouteOptions(route.config?.trace).spans ?? spans
    if (hooks.length !== 0) stages ??= openHookSpans()
    stages?.bracket(route, hooks)
    if (handler) (handlers ??= require('./handler-spans').handlerSpans()).want(route)
  })
  return () => {
    handlers?.release()
    stages?.release()
  }

  function openHookSpans () {
    const { hookSpans } = require('./hook-spans')
    return hookSpans(app, tracer)
  }
}

module.exports = { openStageSpans }
