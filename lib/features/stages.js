'use strict'

// The opt-in child spans of Fastify's stages: one for all hooks of a stage (`spans: { hooks: ['preHandler'] }`), and one for the
// handler (below). A stage begins and ends with hooks of ours, which a route gets at its first request: it may have been declared
// before the plugin was loaded, as all are that stand in one turn with `app.register(lightTrace)`. A stage that a hook leaves early,
// because it replies or throws, ends with the next stage that has a span, with the error, or with the response.

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

const OVERDUE_MS = 10_000 // an onResponse hook that takes longer may have failed, which Fastify does not report: its span ends

const WITH_PAYLOAD = new Set(['preParsing', 'preSerialization', 'onSend']) // their hooks hand the payload on

const STAGE = { kind: KIND_INTERNAL, name: (stage) => stage, attributes: () => [] }

class StageHooks {
  /** @type {Tracer} */ #tracer
  #release = null // ends the subscription to Fastify's handlers, once there is one
  #wantsHandlers = false // the handler of each route has a span, whatever the route says

  constructor (tracer) {
    this.#tracer = tracer
  }

  /** `npx light-trace` asks for handlers by its registration, and has them also where the code has one of its own. */
  handOver () { return this.#tracer.settings.spans.handler || undefined }

  takeOver () { this.#wantsHandlers = true }

  /** Adds them to a route that asks for them. `hooks` is the route's own object, see Routes. */
  atFirstRequest (hooks, request, options) {
    const { handler: isAsked, hooks: stages } = options?.spans ?? this.#tracer.settings.spans
    const handler = isAsked || this.#wantsHandlers
    for (const stage of stages) if (hasHooks(hooks[stage])) this.#bracket(stage, hooks[stage])
    if (handler && !request.is404) this.#traceHandler(hooks)
    // A custom not-found handler, which no channel shows: its span ends with its answer or an error.
    else if (handler && !isDefault404(hooks.handler)) surround(hooks, this.#entering('handler'), leave)
  }

  stop () { this.#release?.() }

  #bracket (stage, list) {
    // A stage's span is a child of the request's.
    list.splice(list.findIndex((hook) => hook[kHook] === 'request') + 1, 0, hookOf(stage, this.#entering(stage)))
    list.push(hookOf(stage, leave))
  }

  /** Makes the span of a route's handler. The channel also speaks where a preHandler hook failed and the handler never ran. */
  #traceHandler (hooks) {
    if (hooks.config[kWanted] === true) return
    Object.defineProperty(hooks.config, kWanted, { value: true })
    surround(hooks, onReached, onAnswer)
    this.#release ??= subscribe(subscribers)
  }

  /** What a hook does that ends the stage which runs, with the error if there is one, and begins a span of that name. */
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

/** Whether a stage runs hooks of the application's. Contexts of 404 may share their lists. */
function hasHooks (list) {
  return (list ?? []).some((hook) => hook[kHook] === undefined) && list.every((hook) => hook[kHook] !== 'stage')
}

/** Whether it is Fastify's own answer to what has no route. Fastify binds all others, and what is bound makes no objects. */
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
 * Adds `before` in front of a route's handler, and `answers` in front of the hooks of its answer. Only where there are such hooks:
 * without any, what `reply.send` throws goes into the handler.
 */
function surround (hooks, before, answers) {
  hooks.preHandler = [...hooks.preHandler ?? [], hookOf('preHandler', before)]
  for (const stage of ANSWER_STAGES) if (hooks[stage]?.length > 0) hooks[stage] = [hookOf(stage, answers), ...hooks[stage]]
}

/** The spans of one request's stages, of which one may be open. Its fields are private: it hangs on the request, see keys.js. */
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

  /** Ends the stage that runs, if one does, and goes on in the request's own context. */
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

// `spans: { handler: true }`: one INTERNAL span for a route's handler, from the channel on which Fastify publishes its handlers.
// It is subscribed to only while an open app has such a route: Fastify then makes an object for every request. The span is
// active in the handler, and ends when the handler's promise settles. That of a handler that answers by itself ends when the hooks
// of the answer begin, or with the response: its promise, where it has one, often settles only after that.

const kWanted = Symbol('light-trace.handler')
const kReached = Symbol('light-trace.reached')

const ANSWER_STAGES = ['preSerialization', 'onSend'] // those of an answer that the handler sends

/** Hides the span on the record of the call, which Fastify keeps on its reply, from walks over the reply. */
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
  // If another storage than ours holds the context, there is nothing of ours to enter.
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

/** Returns the span once; null if there is none, or another copy of this package has it. */
function take (mark) {
  return mark instanceof HandlerCall ? mark.take() : null
}

/** Ends a stage's or a handler's span in which something was thrown. Whether that is an error is known when its request has ended. */
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
