'use strict'

// Delivers spans on platforms that freeze or end the process. A function platform freezes it when the handler's promise settles:
// `lightTrace.flushAfter(app, handler)` returns a handler whose promise settles when the spans of the invocation are delivered.
//
//   Vercel      freezes the process when the response is sent, unless the request has asked it to wait. The request's context has a
//               function for that. Vercel stores this context under a symbol, which `@vercel/functions` reads too
//   Cloud Run   gives the process no CPU between requests, and ends it by SIGTERM with a grace period of ten seconds, in which the
//               buffered spans are sent
//   AWS Lambda  has its own trace. Its span is the parent of the invocation's span

const { AsyncLocalStorage } = require('node:async_hooks')
const { object, duration, optionInvalid, describeValue } = require('../config/checks.js')
const { invocationTraceHeader } = require('../config/env.js')
const { EMPTY_CONTEXT } = require('../context/request-context.js')
const { SPAN_KEY } = require('../context/trace-context.js')
const { ownHook } = require('../fastify/keys.js')
const { whenOver } = require('../fastify/response-end.js')
const { processState } = require('../runtime/process-state.js')
const { attempt } = require('../runtime/report.js')
const { monotonicNow } = require('../runtime/timers.js')
const { read } = require('../span/attributes.js')
const { remoteSpanOf } = require('../span/child-span.js')

const CONTEXTS = [Symbol.for('@vercel/request-context'), Symbol.for('@next/request-context')]

const SIGNAL = 'SIGTERM'
// One listener for all copies of this package in the process.
const kListener = Symbol.for('light-trace.sigterm')

// _X_AMZN_TRACE_ID, for each invocation:
//
//   Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=...
//          trace id: 8 + 24 digits                  span id
//
// https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
const ROOT = /^1-([0-9a-f]{8})-([0-9a-f]{24})$/
const LENGTH_MAX = 1024

const DEFAULT_TIMEOUT_MS = 1000
// The wait of an invocation for a collector that timed out in an earlier one, and has accepted nothing since.
const SILENT_TIMEOUT_MS = 50
// A timer may fire this much too early.
const TIMER_MS = 1
// Time that is left for sending the response, if the platform tells how much time the invocation has.
const MARGIN_MS = 50
const ACCOUNT = /^arn:[^:]*:lambda:[^:]*:(\d{12}):/

const checkOptions = object({ timeoutMs: duration })

/** Wraps a handler. The promise of the new one settles when the spans are delivered. See index.d.ts. */
function flushAfter (app, handler, options = {}) {
  if (typeof app?.ready !== 'function') throw optionInvalid('flushAfter(app)', 'a Fastify application', describeValue(app))
  if (typeof handler !== 'function') throw optionInvalid('flushAfter(app, handler)', 'a function', describeValue(handler))
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = checkOptions('flushAfter', options)
  let isFirst = true
  let silentSince = -1 // the number of successful exports at the last flush, if it timed out; else -1
  // No named parameters: Lambda checks the number of parameters, and with three it would wait for a callback.
  return async function flushingHandler (...args) {
    try {
      await app.ready()
    } catch {} // if the application cannot start, the handler fails
    const tracer = processState.registrations.get(app.server)?.tracer
    const context = args.slice(1).find((argument) => typeof read(argument, 'awsRequestId') === 'string') // not the first argument: that is the event, and the caller controls it
    const attributes = context === undefined ? null : invocationAttributes(context, isFirst)
    isFirst = false
    if (tracer === undefined) return call(handler, this, args)
    const waitUntil = platformWaitUntil()
    const parent = xrayParent(invocationTraceHeader())
    const invoke = () => call(handler, this, args)
    tracer.invocations ??= new AsyncLocalStorage()
    try {
      // A request by inject() without a traceparent uses the active span as its parent.
      return await tracer.invocations.run(attributes, () => parent === null ? invoke() : tracer.contextManager.with(EMPTY_CONTEXT.setValue(SPAN_KEY, parent), invoke))
    } finally {
      const flushed = tracer.drained().then(() => flush(tracer, context)).catch(() => {})
      if (!waitUntil?.(flushed)) await flushed
    }
  }

  /** Sends the buffered spans, in a single attempt. A collector that does not respond delays one invocation by the full timeout, not each. */
  async function flush (tracer, context) {
    const { stats } = tracer
    const isSilent = silentSince === stats.exportsOk
    const ms = timeLeft(context, isSilent ? Math.min(timeoutMs, SILENT_TIMEOUT_MS) : timeoutMs)
    const startedAt = monotonicNow()
    await tracer.flush({ timeoutMs: ms, isFrozenNext: true })
    const waitedMs = monotonicNow() - startedAt + TIMER_MS
    if (waitedMs >= timeoutMs) silentSince = stats.exportsOk
    else if (waitedMs < ms) silentSince = -1
  }
}

/** The attributes that the request's span gets from the invocation. The application may have wrapped `context`, so reading it may throw. */
function invocationAttributes (context, isFirst) {
  const attributes = { 'faas.trigger': 'http', 'faas.invocation_id': read(context, 'awsRequestId'), 'faas.coldstart': isFirst }
  const invokedFunctionArn = read(context, 'invokedFunctionArn')
  if (typeof invokedFunctionArn === 'string') {
    attributes['aws.lambda.invoked_arn'] = invokedFunctionArn
    attributes['cloud.resource_id'] = invokedFunctionArn
    const account = ACCOUNT.exec(invokedFunctionArn)?.[1]
    if (account !== undefined) attributes['cloud.account.id'] = account
  }
  return attributes
}

/** The time that the flush may take: a response that is too late for the platform is worse than delayed spans. */
function timeLeft (context, timeoutMs) {
  const left = attempt(() => context.getRemainingTimeInMillis())
  return typeof left === 'number' ? Math.max(0, Math.min(timeoutMs, left - MARGIN_MS)) : timeoutMs
}

/** Calls a handler that returns a promise, or takes a callback as its third parameter. */
function call (handler, self, args) {
  const [event, context, callback] = args
  if (typeof callback !== 'function') return handler.apply(self, args)
  if (handler.length < 3) return handler.call(self, event, context)
  return new Promise((resolve, reject) => {
    const result = handler.call(self, event, context, (error, value) => error ? reject(error) : resolve(value))
    if (typeof result?.then === 'function') result.then(resolve, reject)
  })
}

/** The platform's `waitUntil(promise)` for the current request, or null. It returns true if the platform waits; it may be too late. */
function platformWaitUntil () {
  for (const key of CONTEXTS) {
    const context = attempt(() => globalThis[key]?.get())
    if (typeof attempt(() => context.waitUntil) !== 'function') continue
    return (promise) => attempt(() => {
      context.waitUntil(promise)
      return true
    })
  }
  return null
}

/** Delivers spans before the platform freezes or ends the process. */
class Platform {
  #tracer
  #release = null

  constructor (tracer) {
    this.#tracer = tracer
  }

  install (app, isRoot) {
    if (this.#tracer.settings.platform === 'vercel') holdUntilDelivered(app, this.#tracer)
    else if (isRoot) this.#release = flushAtSigterm()
  }

  stop () { this.#release?.() }
}

/** Keeps the process running until each request's spans are delivered. This hook runs after light-trace's own. */
function holdUntilDelivered (app, tracer) {
  app.addHook('onRequest', ownHook((request, reply, done) => {
    const waitUntil = tracer.isClosed ? null : platformWaitUntil() // isClosed: another registration has taken over
    if (waitUntil !== null) {
      const closed = new Promise((resolve) => { whenOver(reply.raw, () => resolve(undefined)) })
      waitUntil(closed.then(() => tracer.drained()).then(() => tracer.flush()).catch(() => {}))
    }
    done()
  }))
}

/**
 * Sends the buffered spans at SIGTERM while at least one application is open. Without other listeners, the process then ends, as it
 * would without this one.
 * @returns {() => void} removes the listener; must be called once
 */
function flushAtSigterm () {
  if (process[kListener] === undefined) {
    Object.defineProperty(process, kListener, { value: { count: 0, listener: onSigterm }, configurable: true })
    // Runs first, in order to count the other listeners: those added with `once` are gone after they have run.
    process.prependListener(SIGNAL, onSigterm)
  }
  const state = process[kListener]
  state.count++
  return () => {
    if (--state.count > 0) return
    process.off(SIGNAL, state.listener)
    delete process[kListener]
  }
}

function onSigterm () {
  const isAlone = process.listenerCount(SIGNAL) === 1
  // Another listener closes the application, and that closes the tracer. Until then requests may arrive.
  const ends = processState.openApps.all().map((tracer) => isAlone ? tracer.close() : tracer.flush())
  Promise.allSettled(ends).then(() => {
    if (!isAlone) return
    process.off(SIGNAL, onSigterm)
    process.kill(process.pid, SIGNAL)
  })
}

/**
 * The invocation's span as a parent; null if X-Ray does not sample it, which is the case for each function without X-Ray. That is not
 * a sampling decision about our traces.
 */
function xrayParent (text) {
  if (typeof text !== 'string' || text.length > LENGTH_MAX) return null
  const { Root, Parent, Sampled } = Object.fromEntries(text.split(';').map((field) => field.trim().split('=')))
  const root = ROOT.exec(Root)
  return Sampled === '1' && root !== null ? remoteSpanOf({ traceparent: `00-${root[1]}${root[2]}-${Parent}-01`, tracestate: undefined }) : null
}

module.exports = { attach: (tracer) => new Platform(tracer), flushAfter }
