'use strict'

// `spans: { handler: true }`: one INTERNAL span for a route's handler, from the channel on which Fastify publishes its handlers.
// It is subscribed to only while an open app has such a route: Fastify then makes an object for every request. The span is
// active in the handler, and ends when the handler's promise settles. That of a handler that answers by itself ends when the hooks
// of the answer begin, or with the response: its promise, where it has one, often settles only after that.

const { errorType } = require('../span/exception')
const { STATUS_ERROR } = require('../span/recording-span')
const { kCall, KIND_INTERNAL, tracerIn } = require('../outbound/calls')
const { guarded, subscribe, bug } = require('../runtime/subscriptions')
const { SPAN_KEY, REQUEST_KEY } = require('../context/trace-context')
const asyncStorage = require('../context/async-storage')
const { whenOver } = require('./response-end')
const { routeContextOf } = require('./routes')

const kWanted = Symbol('light-trace.handler')
const kReached = Symbol('light-trace.reached')

const ANSWER_STAGES = ['preSerialization', 'onSend'] // those of an answer that the handler sends

const callDescriptor = { kind: KIND_INTERNAL, name: () => 'handler', attributes: () => [] }

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

function handlerSpans () {
  let release = null
  return {
    /** Asks for the span of a route's handler at its first request. `hooks`: the route's own object, see Routes. */
    want (hooks) {
      if (hooks.config[kWanted] === true) return
      Object.defineProperty(hooks.config, kWanted, { value: true })
      // The channel also speaks where a preHandler hook failed and the handler never ran.
      hooks.preHandler = [...hooks.preHandler ?? [], lightTraceReached]
      // Only where there are hooks: without any, what `reply.send` throws goes into the handler.
      for (const stage of ANSWER_STAGES) if (hooks[stage]?.length > 0) hooks[stage] = [lightTraceAnswers, ...hooks[stage]]
      release ??= subscribe(subscribers)
    },
    release () { release?.() }
  }
}

function lightTraceReached (request, reply, done) {
  request[kReached] = true
  done()
}

function lightTraceAnswers (request, reply, payload, done) {
  take(request[kReached])?.end()
  done(null, payload)
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
  const span = tracer.startCall(callDescriptor, call, context)
  if (span === null || !span.isRecording()) return active
  call[kCall] = request[kReached] = new HandlerCall(span)
  // If another storage than ours holds the context, there is nothing of ours to enter.
  return active !== undefined && active.getValue(REQUEST_KEY) === context ? active.setValue(SPAN_KEY, span) : active
}

function onError (call) {
  const span = take(call[kCall])
  if (span === null) return
  failWith(span, call.reply, call.error)
  span.end()
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

/** Sets the status of a stage's or a handler's span. An error is the server's from 500 on, as it is for the request's span. */
function failWith (span, reply, error) {
  if (statusOf(reply, error) < 500) return
  span.setAttribute('error.type', errorType(error))
  span.setStatus({ code: STATUS_ERROR })
}

/** The status that Fastify will set, which it does after onError. */
function statusOf (reply, error) {
  if (reply.statusCode >= 400) return reply.statusCode
  try {
    const status = error.statusCode || error.status
    return status >= 400 ? status : 500
  } catch {
    return 500
  }
}

/** @type {Array<[string, Function, AsyncLocalStorage<Context>?]>} */
const subscribers = [
  ['tracing:fastify.request.handler:start', contextOf, asyncStorage.storage],
  ['tracing:fastify.request.handler:error', guarded(onError)],
  ['tracing:fastify.request.handler:end', guarded(onEnd)],
  ['tracing:fastify.request.handler:asyncStart', guarded(onSettled)]
]

module.exports = { ANSWER_STAGES, failWith, handlerSpans }
