'use strict'

// The opt-in child spans of Fastify's stages: one for all hooks of a stage (`spans: { hooks: ['preHandler'] }`), and one for the
// handler (below). Our own hooks begin and end a stage's span. A route gets them at its first request, because it may be declared
// before the plugin is loaded, for example in the same turn as `app.register(lightTrace)`. If a hook leaves a stage early, because it
// replies or throws, the span ends with the next stage that has a span, with the error, or with the response.

const { now, setTimeout, clearTimeout, toHrTime } = require('../runtime/timers.js')
const { KIND_INTERNAL, kCall, tracerIn } = require('../outbound/calls.js')
const { SPAN_KEY, REQUEST_KEY } = require('../context/trace-context.js')
const { kStage, kHook, ownHook } = require('../fastify/keys.js')
const { whenEnded, whenOver } = require('../fastify/response-end.js')
const { errorType } = require('../span/attributes.js')
const { FAILED } = require('../span/outcome.js')
const { STATUS_ERROR } = require('../span/recording-span.js')
const { guarded, subscribe, bug } = require('../runtime/process-state.js')
const asyncStorage = require('../context/async-storage.js')
const { routeContextOf } = require('../fastify/routes.js')

const OVERDUE_MS = 10_000 // the span of an onResponse hook ends after this time: the hook may have failed, which Fastify does not report

const WITH_PAYLOAD = new Set(['preParsing', 'preSerialization', 'onSend']) // their hooks pass the payload on

const STAGE = { kind: KIND_INTERNAL, name: (stage) => stage, attributes: () => [] }

class StageHooks {
  /** @type {Tracer} */ #tracer
  #release = null // ends the subscription to Fastify's handler channels, once there is one
  #wantsHandlers = false // all handlers get a span, even if the route turns it off

  constructor (tracer) {
    this.#tracer = tracer
  }

  /** `npx light-trace` registers with handler spans. They stay on if the application's own registration replaces that. */
  handOver () { return this.#tracer.settings.spans.handler || undefined }

  takeOver () { this.#wantsHandlers = true }

  /** Adds our hooks to a route that has stage spans. `hooks` is the route's own object, see Routes. */
  atFirstRequest (hooks, request, options) {
    const { handler: isAsked, hooks: stages } = options?.spans ?? this.#tracer.settings.spans
    const handler = isAsked || this.#wantsHandlers
    for (const stage of stages) if (hasHooks(hooks[stage])) this.#bracket(stage, hooks[stage])
    if (handler && !request.is404) this.#traceHandler(hooks)
    // Fastify publishes nothing for a custom not-found handler. Its span ends with its response or an error.
    else if (handler && !isDefault404(hooks.handler)) surround(hooks, this.#entering('handler'), leave)
  }

  stop () { this.#release?.() }

  #bracket (stage, list) {
    // After the hook that starts the request's span, since a stage's span is its child.
    list.splice(list.findIndex((hook) => hook[kHook] === 'request') + 1, 0, hookOf(stage, this.#entering(stage)))
    list.push(hookOf(stage, leave))
  }

  /** Adds the span of a route's handler. The hooks are needed because Fastify also publishes if a preHandler hook failed and no handler ran. */
  #traceHandler (hooks) {
    if (hooks.config[kWanted] === true) return
    Object.defineProperty(hooks.config, kWanted, { value: true })
    surround(hooks, onReached, onAnswer)
    this.#release ??= subscribe(subscribers)
  }

  /** The body of a hook that ends the current stage, with an error if one occurred, and begins a span of this name. */
  #entering (name) {
    return (request, reply, error, done) => {
      if (request.trace === undefined || request.trace.suppressed) return done() // undefined: a bare request, see keys.js
      let stages = request[kStage]
      if (stages === undefined) {
        stages = request[kStage] = new RequestStages(this.#tracer)
        whenOver(reply.raw, () => stages.onClose())
      }
      stages.enter(name, request, reply, error, done)
    }
  }
}

/** Whether a stage has hooks of the application, and not ours already: contexts of 404 may share their lists. */
function hasHooks (list) {
  return (list ?? []).some((hook) => hook[kHook] === undefined) && list.every((hook) => hook[kHook] !== 'stage')
}

/** Whether a handler is Fastify's default 404 handler. Fastify binds all others, and a bound function has no `prototype`. */
function isDefault404 (handler) { return Object.hasOwn(handler, 'prototype') }

function leave (request, reply, error, done) {
  const stages = request[kStage]
  if (stages === undefined) done()
  else stages.leave(request, undefined, undefined, done)
}

function hookOf (stage, fn) { return ownHook(makeHook(stage, fn), 'stage') }

function makeHook (stage, fn) {
  if (stage === 'onError') return function lightTraceStage (request, reply, error, done) { fn(request, reply, error, () => done()) }
  if (WITH_PAYLOAD.has(stage)) {
    return function lightTraceStage (request, reply, payload, done) { fn(request, reply, undefined, () => done(null, payload)) }
  }
  return function lightTraceStage (request, reply, done) { fn(request, reply, undefined, done) }
}

/**
 * Adds `before` in front of a route's handler, and `answers` in front of the hooks for its response, but only to stages that have hooks:
 * without hooks, an error of `reply.send` is thrown into the handler.
 */
function surround (hooks, before, answers) {
  hooks.preHandler = [...hooks.preHandler ?? [], hookOf('preHandler', before)]
  for (const stage of ANSWER_STAGES) if (hooks[stage]?.length > 0) hooks[stage] = [hookOf(stage, answers), ...hooks[stage]]
}

/** The spans of one request's stages. At most one is open. Its fields are private because it is stored on the request, see keys.js. */
class RequestStages {
  /** @type {Tracer} */ #tracer
  #span = null
  #overdue = null // the timer of a span that may outlive the response

  constructor (tracer) {
    this.#tracer = tracer
  }

  /** Runs `done` in a new span. */
  enter (stage, request, reply, error, done) {
    const { trace } = request
    this.#end(reply, error)
    const span = this.#tracer.startCall(STAGE, stage, trace)
    if (span === null || !span.isRecording()) return done()
    this.#span = span
    if (stage === 'onResponse') this.#overdue = setTimeout(() => this.#end(), OVERDUE_MS).unref()
    this.#tracer.contextManager.with(trace.setValue(SPAN_KEY, span.apiSpan), done)
  }

  /** Ends the current stage, if any, and continues in the request's own context. */
  leave (request, reply, error, done) {
    if (this.#span === null) return done()
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
    if (error !== undefined) endWith(error, span, reply)
    else if (span.isRecording()) span.end()
  }
}

// `spans: { handler: true }`: one INTERNAL span for a route's handler, from the channel on which Fastify publishes its handlers. We
// subscribe only while an open application has a route with handler spans, because Fastify then creates an object for every request.
// The span is active in the handler and ends when the handler's promise settles. If the handler calls `reply.send` itself, the span
// ends when the hooks for the response begin, or with the response: its promise, if any, often settles only later.

const kWanted = Symbol('light-trace.handler')
const kReached = Symbol('light-trace.reached')

const ANSWER_STAGES = ['preSerialization', 'onSend'] // run when the handler sends its response

/** Holds the span on the record of the call, which Fastify keeps on its reply. Code that walks over the reply does not find the span. */
class HandlerCall {
  #span

  constructor (span) {
    this.#span = span
  }

  take () {
    const span = this.#span
    this.#span = null
    return span
  }
}

function onReached (request, reply, error, done) {
  request[kReached] = true
  done()
}

function onAnswer (request, reply, error, done) {
  take(request[kReached])?.end()
  done()
}

/** Begins the span and returns the store in which Fastify runs the handler. */
function contextOf (call) {
  const active = asyncStorage.active()
  try {
    return begin(call, active)
  } catch (error) {
    bug(error)
    return active
  }
}

function begin (call, active) {
  const { request } = call
  if (request[kReached] !== true || routeContextOf(request).config[kWanted] !== true || call[kCall] !== undefined) return active
  const context = request.trace
  const tracer = tracerIn(context)
  if (tracer === null || context.suppressed) return active
  const span = tracer.startCall(STAGE, 'handler', context)
  if (span === null || !span.isRecording()) return active
  call[kCall] = request[kReached] = new HandlerCall(span)
  // If another storage than ours holds the context, we have no store to enter.
  return active !== undefined && active.getValue(REQUEST_KEY) === context ? active.setValue(SPAN_KEY, span.apiSpan) : active
}

function onError (call) {
  const span = take(call[kCall])
  if (span === null) return
  endWith(call.error, span, call.reply)
}

function onEnd (call) {
  if (call[kCall] === undefined) return
  const { raw, sent } = call.reply
  if (!call.async && (sent || raw.destroyed)) onSettled(call)
  else whenOver(raw, () => onSettled(call))
}

function onSettled (call) {
  take(call[kCall])?.end()
}

/** Returns the span the first time; null after that, without a span, or if it belongs to another copy of this package. */
function take (mark) {
  return mark instanceof HandlerCall ? mark.take() : null
}

/** Ends the span of a stage or handler that threw. Whether that counts as an error is known only when the request has ended. */
function endWith (error, span, reply) {
  const endedAt = toHrTime(now())
  whenEnded(reply, (outcome) => {
    if (outcome === FAILED) {
      span.setAttribute('error.type', errorType(error))
      span.setStatus({ code: STATUS_ERROR })
    }
    span.end(endedAt)
  })
}

/** @type {Array<[string, Function, AsyncLocalStorage<Context>?]>} */
const subscribers = [
  ['tracing:fastify.request.handler:start', contextOf, asyncStorage.storage],
  ['tracing:fastify.request.handler:error', guarded(onError)],
  ['tracing:fastify.request.handler:end', guarded(onEnd)],
  ['tracing:fastify.request.handler:asyncStart', guarded(onSettled)]
]

module.exports = { attach: (tracer) => new StageHooks(tracer) }
