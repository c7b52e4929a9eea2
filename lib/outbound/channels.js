'use strict'

// Spans from a TracingChannel, whoever publishes it. A publisher may leave events out, publish them twice, or
// end after the user's callback has run, so:
//
//   start        the span begins; its attributes are read
//   error        ends it, with the error
//   end          ends it when the work was synchronous: there is a result or an error
//   asyncStart   ends it; asyncEnd too, for publishers without the former
//
// Who calls by Node's own `tracePromise` alone publishes `asyncStart` each time, so that `end` and `asyncEnd` need not be heard.
//
// The span hangs on the channel's context object and ends once. Spans are leaves: no context is entered.

const { kCall, activeContext, tracerIn, isSuppressed } = require('./calls')
const { guarded, bug } = require('../runtime/subscriptions')
const { errorType, rememberErrorType } = require('../span/exception')

const STATUS_ERROR = 2

const adapters = new Map() // channel name -> its subscribers; one set for all apps

/**
 * @param {string} name of the TracingChannel
 * @param {(() => object) | null} prepare called when the channel first speaks, in a request or not
 * @param {boolean} isPromised whether all its calls are made by `tracePromise`
 * @returns {Array<[string, Function]>} for `subscribe`. What a span says stands in the descriptor that the app of the
 *   active request has for the channel, see Outbound.callDescriptorOf.
 */
function adapterOf (name, prepare, isPromised = false) {
  let subscribers = adapters.get(name)
  if (subscribers === undefined) {
    subscribers = [
      [`tracing:${name}:start`, startSubscriber(name, prepare)],
      [`tracing:${name}:asyncStart`, finishSubscriber()],
      [`tracing:${name}:error`, finishSubscriber()]
    ]
    if (!isPromised) subscribers.push([`tracing:${name}:end`, guarded(onEnd, bug)], [`tracing:${name}:asyncEnd`, finishSubscriber()])
    adapters.set(name, subscribers)
  }
  return subscribers
}

// These are what `guarded` makes, in one function: V8 has no call between them.

function startSubscriber (name, prepare) {
  let isReady = prepare === null
  return function subscriber (call) {
    try {
      if (!isReady) isReady = prepare() !== undefined
      start(name, call)
    } catch (error) {
      bug(error)
    }
  }
}

/** Each channel has one of its own, see `subscribe`. */
function finishSubscriber () {
  return function subscriber (call) {
    try {
      finish(call)
    } catch (error) {
      bug(error)
    }
  }
}

/** What hangs on a call while it runs. */
class ActiveCall {
  constructor (span, callDescriptor) {
    this.span = span
    this.callDescriptor = callDescriptor
  }
}

// HOT, once per call of a library.
function start (name, call) {
  if (call === null || typeof call !== 'object' || call[kCall] !== undefined) return
  const context = activeContext()
  const tracer = tracerIn(context)
  if (tracer === null || tracer.outbound === null || isSuppressed(context)) return
  const callDescriptor = tracer.outbound.callDescriptorOf(name)
  if (callDescriptor === undefined || !callDescriptor.shouldTrace(call)) return
  if (!mark(call)) return
  const span = tracer.startCall(callDescriptor, call, context)
  if (span === null) return
  if (callDescriptor.started !== undefined) callDescriptor.started(span, call, tracer, context)
  if (span.isRecording() || callDescriptor.ended !== undefined) call[kCall] = new ActiveCall(span, callDescriptor)
}

/** False where the object is frozen or refuses: there is nowhere to keep the span. */
function mark (call) {
  try {
    call[kCall] = null // by assignment: Reflect.set is several times as slow
    return true
  } catch {
    return false
  }
}

function onEnd (call) {
  if (call !== null && typeof call === 'object' && ('result' in call || 'error' in call)) finish(call)
}

function finish (call) {
  const activeCall = call?.[kCall]
  if (!(activeCall instanceof ActiveCall)) return
  call[kCall] = null
  const { span, callDescriptor } = activeCall
  if (callDescriptor.ended !== undefined) callDescriptor.ended(span, call)
  if (span.isRecording()) {
    if ('error' in call) fail(span, callDescriptor, call.error)
    else if (callDescriptor.result !== undefined) callDescriptor.result(span, call)
  }
  span.end()
}

/** Without the error's message: a database's repeats the values that were removed from the statement. */
function fail (span, callDescriptor, error) {
  const code = callDescriptor.errorCode === undefined ? '' : callDescriptor.errorCode(error)
  if (code !== '') span.setAttribute('db.response.status_code', code)
  if (code !== '') rememberErrorType(error, code)
  span.setAttribute('error.type', code === '' ? errorType(error) : code)
  span.setStatus({ code: STATUS_ERROR })
}

module.exports = { adapterOf, fail }
