'use strict'

// One INTERNAL span for all hooks of a lifecycle stage, for those who ask: `spans: { hooks: ['preHandler'] }`.
//
// Nothing of the user's is wrapped, and stages that nobody asked for get no hook. A stage begins with our hook, which is
// the first where the plugin was registered first, and ends with one that is appended to each route. A hook that replies
// or throws leaves the stage early: then it ends with the next stage that is asked for, with the error (our own onError
// hook, which is always there), or with the response.

const { kStage } = require('./keys')
const { AskedStages } = require('./asked-stages')
const { enterStage } = require('./request-stages')
const { Overdue } = require('./overdue')

// A hook that gets a payload hands it on.
const WITH_PAYLOAD = new Set(['preParsing', 'preSerialization', 'onSend'])

/**
 * @param {FastifyInstance} app where the plugin is registered
 * @param {Tracer} tracer
 * @returns {{ bracket (route: RouteOptions, hooks: string[]), release () }} `bracket` begins and ends the stages of a route
 */
function hookSpans (app, tracer) {
  const overdue = new Overdue()
  const instanceWide = new Set(tracer.settings.spans.hooks)
  const asked = new AskedStages(instanceWide)
  for (const stage of instanceWide) app.addHook(stage, starting(stage))

  return { bracket, release: () => overdue.stop() }

  function bracket (route, hooks) {
    asked.ask(route, hooks)
    for (const stage of hooks) {
      const own = route[stage] === undefined ? [] : [].concat(route[stage])
      // What only this route asks for has no hook of the instance's before it.
      const first = instanceWide.has(stage) ? [] : [starting(stage)]
      route[stage] = [...first, ...own, ending(stage)]
    }
  }

  function starting (stage) {
    if (stage === 'onError') return function lightTraceStage (request, reply, error, done) { enter(stage, request, reply, error, () => done()) }
    if (WITH_PAYLOAD.has(stage)) return function lightTraceStage (request, reply, payload, done) { enter(stage, request, reply, undefined, () => done(null, payload)) }
    return function lightTraceStage (request, reply, done) { enter(stage, request, reply, undefined, done) }
  }

  function ending (stage) {
    if (stage === 'onError') return function lightTraceStageEnd (request, reply, error, done) { leave(request, () => done()) }
    if (WITH_PAYLOAD.has(stage)) return function lightTraceStageEnd (request, reply, payload, done) { leave(request, () => done(null, payload)) }
    return function lightTraceStageEnd (request, reply, done) { leave(request, done) }
  }

  function enter (stage, request, reply, error, done) {
    if (!asked.has(request, stage)) done()
    else enterStage(tracer, overdue, stage, request, reply, error, done)
  }

  function leave (request, done) {
    const stages = request[kStage]
    if (stages === undefined) done()
    else stages.leave(request, undefined, undefined, done)
  }
}

module.exports = { hookSpans }
