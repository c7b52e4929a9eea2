'use strict'

// One INTERNAL span for a route's handler, for those who ask: `spans: { handler: true }`. Fastify publishes
// its handlers itself; the channel is subscribed to while an open app has a route that asks, because from
// then on Fastify makes an object for every request.
//
// The span is active in the handler. It ends when the handler's promise settles; a handler that replies from
// a callback ends with the response.

const { kCall, KIND_INTERNAL, tracerIn } = require('../outbound/calls')
const { guarded, subscribe, bug } = require('../runtime/subscriptions')
const { failWith } = require('./stage-failure')
const { SPAN_KEY, REQUEST_KEY } = require('../context/keys')
const asyncStorage = require('../context/async-storage')

const CHANNEL = 'tracing:fastify.request.handler'

const kWanted = Symbol('light-trace.handler')
const kReached = Symbol('light-trace.reached')

const callDescriptor = { kind: KIND_INTERNAL, name: () => 'handler', attributes: () => [] }

/** On the record that Fastify keeps of the call on its reply. Opaque: no walk over a reply may lead to the span. */
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

/** @returns {{ want (route), release () }} `want` asks for the span of a route's handler */
function handlerSpans () {
  let release = null
  return {
    want (route) {
      route.config = { ...route.config, [kWanted]: true } // Fastify copies it once more
      // The channel also speaks where a preHandler hook failed and the handler never ran.
      route.preHandler = [...(route.preHandler === undefined ? [] : [].concat(route.preHandler)), lightTraceReached]
      release ??= subscribe(subscribers)
    },
    release () { release?.() }
  }
}

function lightTraceReached (request, reply, done) {
  request[kReached] = true
  done()
}

/** The store in which Fastify runs the handler. */
function contextOf (call) {
  const active = asyncStorage.active()
  try {
    return begin(call, active) ?? active
  } catch (error) {
    bug(error)
    return active
  }
}

function begin (call, active) {
  const { request } = call
  if (request[kReached] !== true || request.routeOptions.config[kWanted] !== true || call[kCall] !== undefined) return undefined
  const context = request.trace
  const tracer = tracerIn(context)
  if (tracer === null || context.suppressed) return undefined
  const span = tracer.startCall(callDescriptor, call, context)
  if (span === null || !span.isRecording()) return undefined
  call[kCall] = new HandlerCall(span)
  // Where somebody else's storage holds the context there is nothing of ours to enter.
  return active !== undefined && active.getValue(REQUEST_KEY) === context ? active.setValue(SPAN_KEY, span) : undefined
}

function onError (call) {
  const span = take(call)
  if (span === null) return
  failWith(span, call.reply, call.error)
  span.end()
}

function onEnd (call) {
  const { reply } = call
  if (call.async || call[kCall] === undefined) return
  if (reply.sent || reply.raw.destroyed) onSettled(call)
  else reply.raw.once('close', () => onSettled(call))
}

function onSettled (call) {
  take(call)?.end()
}

/** The span, once; null where there is none, or another copy of this package has it. */
function take (call) {
  const mark = call[kCall]
  return mark instanceof HandlerCall ? mark.take() : null
}

const subscribers = [
  [`${CHANNEL}:start`, contextOf, asyncStorage.storage],
  [`${CHANNEL}:error`, guarded(onError, bug)],
  [`${CHANNEL}:end`, guarded(onEnd, bug)],
  [`${CHANNEL}:asyncStart`, guarded(onSettled, bug)]
]

module.exports = { handlerSpans }
