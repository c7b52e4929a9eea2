'use strict'

// The opt-in child spans of Fastify's stages: one for all hooks of a stage (`spans: { hooks: ['preHandler'] }`), and one for the
// handler (handler-spans.js). A stage begins and ends with hooks of ours, which a route gets at its first request: it may have
// been declared before the plugin was loaded, as all routes are that stand in one turn with `app.register(lightTrace)`. A hook
// that replies or throws leaves its stage early: then it ends with the next stage that has a span, with the error, or with the
// response.

const { setTimeout, clearTimeout } = require('../runtime/timers')
const { KIND_INTERNAL } = require('../outbound/calls')
const { SPAN_KEY } = require('../context/trace-context')
const { kStage } = require('./keys')
const { ANSWER_STAGES, failWith, handlerSpans } = require('./handler-spans')
const { whenOver } = require('./response-end')

const OVERDUE_MS = 10_000 // an onResponse hook that takes longer may have failed, which Fastify does not report: its span ends

const OWN_HOOK = /^(?:bound )*lightTrace/ // Fastify binds hooks to their scope
const REQUEST_HOOK = /^(?:bound )*lightTraceOn(?:Request|Error)$/ // a stage's span is a child of the request's
const STAGE_HOOK = 'lightTraceStage'
const WITH_PAYLOAD = new Set(['preParsing', 'preSerialization', 'onSend']) // their hooks hand the payload on

const callDescriptor = { kind: KIND_INTERNAL, name: (stage) => stage, attributes: () => [] }

/** The hooks that make the spans of stages. */
class StageHooks {
  #tracer
  #handlers = handlerSpans()

  /** @param {boolean} wantsHandlers the handler of each route has a span, whatever the route says */
  constructor (tracer, wantsHandlers) {
    this.#tracer = tracer
    this.wantsHandlers = wantsHandlers
  }

  /**
   * Adds them to a route that asks for them, at its first request.
   * @param {object} hooks the route's own object, see Routes
   * @param {object} request
   * @param {{ spans?: { handler: boolean, hooks: string[] } | null } | null} options the route's
   */
  addTo (hooks, request, options) {
    const { handler: isAsked, hooks: stages } = options?.spans ?? this.#tracer.settings.spans
    const handler = isAsked || this.wantsHandlers
    for (const stage of stages) if (hasHooks(hooks[stage])) this.#bracket(stage, hooks[stage])
    if (handler && !request.is404) this.#handlers.want(hooks)
    else if (handler && hooks.handler.name !== 'basic404') this.#traceNotFound(hooks)
  }

  release () { this.#handlers.release() }

  #bracket (stage, list) {
    list.splice(list.findIndex(({ name }) => REQUEST_HOOK.test(name)) + 1, 0, hookOf(stage, this.#entering(stage)))
    list.push(hookOf(stage, leave))
  }

  /** Makes the span of a custom not-found handler, which no channel shows. It ends with its answer or an error. */
  #traceNotFound (hooks) {
    for (const stage of ANSWER_STAGES) if (hooks[stage]?.length > 0) hooks[stage] = [hookOf(stage, leave), ...hooks[stage]]
    hooks.preHandler = [...hooks.preHandler ?? [], hookOf('preHandler', this.#entering('handler'))]
  }

  /** What a hook does that begins a span of that name. */
  #entering (name) {
    return (request, reply, error, done) => {
      if (isTraced(request)) enterStage(this.#tracer, name, request, reply, error, done)
      else done()
    }
  }
}

/** Whether a stage runs hooks of the application's. Contexts of 404 may share their lists. */
function hasHooks (list) {
  return (list ?? []).some(({ name }) => !OWN_HOOK.test(name)) && list.every(({ name }) => name !== STAGE_HOOK)
}

function leave (request, reply, error, done) {
  const stages = request[kStage]
  if (stages === undefined) done()
  else stages.leave(request, undefined, undefined, done)
}

/** A hook of the stage that calls `fn(request, reply, error, done)`. */
function hookOf (stage, fn) {
  if (stage === 'onError') return function lightTraceStage (request, reply, error, done) { fn(request, reply, error, () => done()) }
  if (WITH_PAYLOAD.has(stage)) {
    return function lightTraceStage (request, reply, payload, done) { fn(request, reply, undefined, () => done(null, payload)) }
  }
  return function lightTraceStage (request, reply, done) { fn(request, reply, undefined, done) }
}

function isTraced ({ trace }) {
  return trace !== undefined && !trace.suppressed // undefined: a bare request, see keys.js
}

/** Ends the stage that runs, with the error if there is one, and begins another. */
function enterStage (tracer, stage, request, reply, error, done) {
  let stages = request[kStage]
  if (stages === undefined) {
    stages = request[kStage] = new RequestStages(tracer)
    whenOver(reply.raw, () => stages.onClose())
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

module.exports = { StageHooks }
