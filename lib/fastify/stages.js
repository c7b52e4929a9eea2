'use strict'

// The opt-in child spans of Fastify's stages: one for all hooks of a stage (`spans: { hooks: ['preHandler'] }`), and one for the
// handler (handler-spans.js). A stage begins with our hook and ends with one that is appended to each route. A hook that replies
// or throws leaves it early: then it ends with the next stage that has a span, with the error, or with the response.

const { setTimeout, clearTimeout } = require('../runtime/timers')
const { KIND_INTERNAL } = require('../outbound/calls')
const { SPAN_KEY } = require('../context/trace-context')
const { resolveRouteOptions } = require('../config/options')
const { kStage } = require('./keys')
const { failWith, handlerSpans } = require('./handler-spans')
const { contextOf } = require('./routes')

const OVERDUE_MS = 10_000 // an onResponse hook that takes longer may have failed, which Fastify does not report: its span ends

const kAsked = Symbol('light-trace.asked') // on a route's config: the stages that the route asks for
const kStages = Symbol('light-trace.stages') // on a route's config: the Set of those that have hooks

const OWN_HOOK = /^(?:bound )*lightTrace/ // Fastify binds hooks to their scope
const WITH_PAYLOAD = new Set(['preParsing', 'preSerialization', 'onSend']) // their hooks hand the payload on

const callDescriptor = { kind: KIND_INTERNAL, name: (stage) => stage, attributes: () => [] }

/**
 * Adds the hooks that make the spans of stages. Returns what releases them at the end of the app.
 * @param {FastifyInstance} app where the plugin is registered
 * @param {Tracer} tracer
 */
function openStageSpans (app, tracer) {
  const { spans, disabled } = tracer.settings
  if (disabled) return () => {}
  const handlers = handlerSpans()
  for (const stage of spans.hooks) app.addHook(stage, hookOf(stage, enter))
  if (spans.handler) traceNotFound(app, tracer)
  app.addHook('onRoute', function lightTraceStages (route) {
    const { handler, hooks } = resolveRouteOptions(route.config?.trace).spans ?? spans
    if (hooks.length > 0 || spans.hooks.length > 0) bracket(route, hooks)
    if (handler) handlers.want(route)
  })
  return handlers.release

  /** Begins and ends the stages of a route. */
  function bracket (route, hooks) {
    route.config = { ...route.config, [kAsked]: hooks } // Fastify copies it once more
    for (const stage of hooks) {
      const first = spans.hooks.includes(stage) ? [] : [hookOf(stage, enter)] // else the instance has one
      route[stage] = [...first, ...[route[stage] ?? []].flat(), hookOf(stage, leave)]
    }
  }

  function enter (stage, request, reply, error, done) {
    if (isTraced(request) && stagesOf(request, spans.hooks).has(stage)) enterStage(tracer, stage, request, reply, error, done)
    else done()
  }

  function leave (stage, request, reply, error, done) {
    const stages = request[kStage]
    if (stages === undefined) done()
    else stages.leave(request, undefined, undefined, done)
  }
}

/** A hook of the stage that calls `fn(stage, request, reply, error, done)`. */
function hookOf (stage, fn) {
  if (stage === 'onError') return function lightTraceStage (request, reply, error, done) { fn(stage, request, reply, error, () => done()) }
  if (WITH_PAYLOAD.has(stage)) {
    return function lightTraceStage (request, reply, payload, done) { fn(stage, request, reply, undefined, () => done(null, payload)) }
  }
  return function lightTraceStage (request, reply, done) { fn(stage, request, reply, undefined, done) }
}

/** Makes the span of a custom not-found handler, which no channel and no onRoute hook shows. It ends with the response or an error. */
function traceNotFound (app, tracer) {
  app.addHook('preHandler', function lightTraceNotFound (request, reply, done) {
    const isCustom = request.is404 && isTraced(request) && request.routeOptions.handler?.name !== 'basic404' // Fastify's own
    if (isCustom) enterStage(tracer, 'handler', request, reply, undefined, done)
    else done()
  })
}

function isTraced ({ trace }) {
  return trace !== undefined && !trace.suppressed // undefined: a bare request, see keys.js
}

/** The stages of a request that have a span: those that its route, else the plugin's option asks for, where they have hooks. */
function stagesOf (request, instanceWide) {
  const context = contextOf(request)
  const { config } = context
  if (config[kStages] === undefined) {
    // No public API tells the hooks: in a version of Fastify that keeps them elsewhere each stage counts as one with hooks.
    const isUsed = (stage) => !(stage in context) || context[stage]?.some(({ name }) => !OWN_HOOK.test(name))
    const stages = new Set((config[kAsked] ?? instanceWide).filter(isUsed))
    Object.defineProperty(config, kStages, { value: stages, enumerable: false })
  }
  return config[kStages]
}

/** Ends the stage that runs, with the error if there is one, and begins another. */
function enterStage (tracer, stage, request, reply, error, done) {
  let stages = request[kStage]
  if (stages === undefined) {
    stages = request[kStage] = new RequestStages(tracer)
    reply.raw.once('close', () => stages.onClose())
  }
  stages.enter(stage, request, reply, error, done)
}

/** The spans of one request's stages, of which one may be open. Its fields are private: it hangs on the request, see keys.js. */
class RequestStages {
  #tracer
  #span = null
  #overdue = null // the timer of a span that may outlive the response

  constructor (tracer) {
    this.#tracer = tracer
  }

  /** Runs `done` in a new span. */
  enter (stage, request, reply, error, done) {
    const { trace } = request
    this.#end(reply, error)
    const span = this.#tracer.startCall(callDescriptor, stage, trace)
    if (span === null || !span.isRecording()) {
      done()
      return
    }
    this.#span = span
    if (stage === 'onResponse') this.#overdue = setTimeout(() => this.#end(), OVERDUE_MS).unref()
    this.#tracer.contextManager.with(trace.setValue(SPAN_KEY, span), done)
  }

  /** Ends the stage that runs, if one does, and goes on in the request's own context. */
  leave (request, reply, error, done) {
    if (this.#span === null) {
      done()
      return
    }
    this.#end(reply, error)
    this.#tracer.contextManager.with(request.trace, done)
  }

  onClose () {
    if (this.#overdue === null) this.#end()
  }

  #end (reply, error) {
    const span = this.#span
    if (span === null) return
    this.#span = null
    clearTimeout(this.#overdue)
    this.#overdue = null
    if (error !== undefined) failWith(span, reply, error)
    if (span.isRecording()) span.end()
  }
}

module.exports = { openStageSpans }
