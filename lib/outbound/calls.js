'use strict'

// What all outgoing calls have in common: the tracer that a call belongs to, the symbol that keeps the span on the library's object for
// the call, and spans from the TracingChannels of libraries.
//
// The apps of a process share its channels. A call belongs to the tracer of the active request, or else of the active span.

const { SPAN_KEY, REQUEST_KEY, SUPPRESS_KEY } = require('../context/trace-context.js')
const asyncStorage = require('../context/async-storage.js')
const { processState, guarded, onMessage } = require('../runtime/process-state.js')
const { now, setImmediate } = require('../runtime/timers.js')
const { errorType, rememberErrorType } = require('../span/attributes.js')
const { STATUS_ERROR } = require('../span/recording-span.js')

// On a library's object for one call. With two copies of this package, the first to see a call marks it, so it gets only one span.
const kCall = Symbol.for('light-trace.call')

// On the same object: the store for its callback, because a connection calls back in the context of the code that opened it.
const kStore = Symbol.for('light-trace.store')

// On the same object: its PoolWait, while it waits for a connection of a pool.
const kWait = Symbol('light-trace.wait')
const WAIT_MIN_MS = 1 // a free connection is returned sooner

const { openApps } = processState

const KIND_INTERNAL = 0
const KIND_SERVER = 1
const KIND_CLIENT = 2
const KIND_PRODUCER = 3

/** The context that is active for the code that makes the call, or undefined. HOT */
function activeContext () {
  const { managers } = openApps
  for (let i = 0; i < managers.length; i++) { // almost always one
    const context = managers[i].active()
    if (context !== undefined && context.getValue(SPAN_KEY) !== undefined) return context
  }
  return undefined
}

/** The tracer that a call in `context` belongs to; null without a trace. HOT */
function tracerIn (context) {
  if (context === undefined) return null
  const request = context.getValue(REQUEST_KEY)
  if (request !== undefined) return request.tracer
  const span = context.getValue(SPAN_KEY)
  if (span === undefined || span === null) return null
  return openApps.all().find(({ pipeline }) => pipeline !== null && pipeline === span.pipeline) ?? openApps.first() ?? null
}

/** Whether `context` is suppressed: it belongs to an ignored request or to our own traffic. */
function isSuppressed (context) {
  return context.getValue(SUPPRESS_KEY) === true
}

/** The tracer and context of a library's call; null if it gets no span. */
function placeOfCall (context) {
  const tracer = tracerIn(context)
  return tracer?.outbound?.libraries && !isSuppressed(context) ? { tracer, context } : null
}

/** Removes the span from a call of an HTTP client and returns it; null if it has none. HOT */
function takeSpan (call) {
  const span = call?.[kCall]
  if (span === undefined || span === null) return null
  call[kCall] = null
  return span
}

const adapters = new Map() // channel name -> its subscribers, which all apps share

/**
 * The subscribers that create spans from a TracingChannel. The spans are leaves and never become active. A publisher may omit events,
 * publish them twice, or end after the user's callback has run. So the span is kept on the message object and ends once:
 *
 *   error        with the error
 *   end          if the work was synchronous: there is a result or an error
 *   asyncStart   or asyncEnd, for publishers without asyncStart
 *
 * @param {string} name
 * @param {boolean} isPromised whether all calls are published by Node's `tracePromise`, which always publishes `asyncStart`
 * @returns {Array<[string, (message: object) => void]>} for `subscribe`
 */
function adapterOf (name, isPromised = false) {
  let subscribers = adapters.get(name)
  if (subscribers === undefined) {
    const listeners = { start: (call) => start(name, call), asyncStart: finish, error: finish }
    if (!isPromised) Object.assign(listeners, { end: onEnd, asyncEnd: finish })
    subscribers = Object.entries(listeners).map(([event, fn]) => [`tracing:${name}:${event}`, guarded(fn)])
    if (!isPromised) subscribers.push(...carrierOf(name))
    adapters.set(name, subscribers)
  }
  return subscribers
}

/** The subscribers that make a TracingChannel's callbacks run in the context of the code that passed them. */
function carrierOf (name) {
  return [
    [`tracing:${name}:start`, guarded((call) => {
      if (call !== null && typeof call === 'object' && Object.isExtensible(call)) call[kStore] = asyncStorage.active() ?? null
    })],
    [`tracing:${name}:asyncStart`, (call) => call?.[kStore] === undefined ? asyncStorage.active() : call[kStore] ?? undefined, asyncStorage.storage]
  ]
}

/** The subscribers that record how long calls of a pool's channel waited for a connection. */
function poolWaitOf (name, system) {
  return [
    [`tracing:${name}:start`, onMessage((call) => { if (Object.isExtensible(call)) call[kWait] = new PoolWait() })],
    [`tracing:${name}:asyncStart`, onMessage((call) => call[kWait]?.end(system, call.error))]
  ]
}

const POOL_WAIT = {
  kind: KIND_INTERNAL,
  name: () => 'wait for connection',
  attributes: ({ system }) => ['db.system.name', system],
  startedAt: (call) => call.startedAt
}

// A pool returns a free connection after a promise or process.nextTick, in the same turn of the event loop, however long the code in
// that turn takes. So an acquisition that ends in the turn in which it began did not wait for a connection.

let turn = 0
let isTurnWatched = false

/** A wait for a pool's connection. */
class PoolWait {
  turn = turn
  startedAt = now()
  context = activeContext()

  // setImmediate is not unref'd, so that the loop does not sleep before the turn is counted.
  constructor () {
    if (!isTurnWatched) setImmediate(onTurn)
    isTurnWatched = true
  }

  get isOfThisTurn () { return this.turn === turn }

  /** Records the span of the wait when it is over. @param {unknown} [error] if the wait was given up */
  end (system, error) {
    const isGivenUp = error !== undefined && error !== null
    if (isGivenUp || !this.isOfThisTurn) recordWait(this.context, this.startedAt, system, error)
  }
}

function onTurn () {
  turn++
  isTurnWatched = false
}

/** Records the span of a wait whose start is known. */
function recordWait (context, startedAt, system, error) {
  const place = placeOfCall(context)
  if (place === null || now() - startedAt < WAIT_MIN_MS) return
  const span = place.tracer.startCall(POOL_WAIT, { system, startedAt }, context)
  if (error !== undefined && error !== null && span?.isRecording()) fail(span, POOL_WAIT, error)
  span?.end()
}

/** What is kept on a library's call while it runs. */
class ActiveCall {
  constructor (span, callDescriptor) {
    this.span = span
    this.callDescriptor = callDescriptor
  }

  static retained = new ActiveCall(null, null) // see lib/span/span-starter.js
}

// HOT, once per call of a library.
function start (name, call) {
  if (call === null || typeof call !== 'object' || call[kCall] !== undefined) return
  const context = activeContext()
  const tracer = tracerIn(context)
  if (tracer === null || tracer.outbound === null || isSuppressed(context)) return
  const callDescriptor = tracer.outbound.callDescriptorOf(name)
  if (callDescriptor === undefined) return
  if (typeof callDescriptor.shouldTrace === 'function' && callDescriptor.shouldTrace(call) === false) return
  if (!reserve(call)) return
  const span = tracer.startCall(callDescriptor, call, context)
  if (span === null) return
  // Set before `started` runs, so that the span ends even if `started` throws.
  if (span.isRecording() || typeof callDescriptor.ended === 'function') call[kCall] = new ActiveCall(span, callDescriptor)
  if (typeof callDescriptor.started === 'function') callDescriptor.started(span, call, tracer, context)
}

/** Returns false if the object is frozen or rejects the property, so that there is no place for the span. */
function reserve (call) {
  try {
    call[kCall] = null // Reflect.set is several times slower
    return true
  } catch {
    return false
  }
}

function onEnd (call) {
  if (call !== null && typeof call === 'object' && ('result' in call || 'error' in call)) finish(call)
}

// HOT, once or twice per call of a library.
function finish (call) {
  const activeCall = call?.[kCall]
  if (!(activeCall instanceof ActiveCall)) return
  call[kCall] = null
  const { span, callDescriptor } = activeCall
  try {
    if (typeof callDescriptor.ended === 'function') callDescriptor.ended(span, call)
    if (span.isRecording()) {
      if ('error' in call) fail(span, callDescriptor, call.error)
      else if (typeof callDescriptor.result === 'function') callDescriptor.result(span, call)
    }
  } finally { // the library's object may throw
    span.end()
  }
}

/** Records an error without its message, because a database's messages repeat the values that were removed from the statement. */
function fail (span, callDescriptor, error) {
  const code = typeof callDescriptor.errorCode === 'function' ? callDescriptor.errorCode(error) : ''
  if (code !== '') {
    span.setAttribute('db.response.status_code', code)
    rememberErrorType(error, code)
  }
  span.setAttribute('error.type', code === '' ? errorType(error) : code)
  span.setStatus({ code: STATUS_ERROR })
}

module.exports = {
  kCall,
  KIND_INTERNAL,
  KIND_SERVER,
  KIND_CLIENT,
  KIND_PRODUCER,
  activeContext,
  tracerIn,
  isSuppressed,
  placeOfCall,
  takeSpan,
  reserve,
  adapterOf,
  carrierOf,
  poolWaitOf,
  PoolWait,
  recordWait,
  fail
}
