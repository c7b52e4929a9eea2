'use strict'

// `lightTrace.flushAfter(app, handler)`: a function platform freezes the process when the handler's promise settles, so
// it settles when the spans of the invocation are delivered.

const { object, duration, optionInvalid, describeValue } = require('../config/checks')
const { invocationTraceHeader } = require('../config/env')
const { EMPTY_CONTEXT } = require('../context/request-context')
const { SPAN_KEY } = require('../context/trace-context')
const { processState } = require('../runtime/process-state')
const { platformWaitUntil, xrayParent } = require('./platforms')

const DEFAULT_TIMEOUT_MS = 1000
// Left to the platform to send the answer, where it says how long the invocation may take.
const MARGIN_MS = 50

const ACCOUNT = /^arn:[^:]*:lambda:[^:]*:(\d{12}):/

const checkOptions = object({ timeoutMs: duration })

/**
 * The handler, whose promise settles when the spans are delivered.
 * @template T
 * @param {FastifyInstance} app
 * @param {(...args: unknown[]) => T | Promise<T>} handler
 * @param {{ timeoutMs?: number }} [options]
 * @returns {(...args: unknown[]) => Promise<T>}
 */
function flushAfter (app, handler, options = {}) {
  if (typeof app?.ready !== 'function') throw optionInvalid('flushAfter(app)', 'a Fastify application', describeValue(app))
  if (typeof handler !== 'function') throw optionInvalid('flushAfter(app, handler)', 'a function', describeValue(handler))
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = checkOptions('flushAfter', options)
  let isFirst = true
  // Without named parameters: Lambda looks at their number, and one with three would wait for a callback.
  return async function flushingHandler (...args) {
    const tracer = await tracerOf(app)
    const context = args.find(isLambdaContext)
    const attributes = context === undefined ? null : invocationAttributes(context, isFirst)
    isFirst = false
    if (tracer === undefined) return call(handler, this, args)
    const waitUntil = platformWaitUntil()
    try {
      tracer.invocation = attributes
      return await inContextOf(tracer, () => call(handler, this, args))
    } finally {
      tracer.invocation = null
      const flushed = tracer.drained().then(() => tracer.flush({ timeoutMs: timeLeft(context, timeoutMs) }))
      if (waitUntil === null) await flushed
      else waitUntil(flushed)
    }
  }
}

/**
 * @typedef {{ awsRequestId: string, invokedFunctionArn?: string, getRemainingTimeInMillis? (): number }} LambdaContext
 * @returns {argument is LambdaContext}
 */
function isLambdaContext (argument) {
  return typeof argument?.awsRequestId === 'string'
}

/** What the request's span says of the invocation. */
function invocationAttributes ({ awsRequestId, invokedFunctionArn = undefined }, isFirst) {
  const attributes = { 'faas.trigger': 'http', 'faas.invocation_id': awsRequestId, 'faas.coldstart': isFirst }
  if (typeof invokedFunctionArn === 'string') {
    attributes['aws.lambda.invoked_arn'] = invokedFunctionArn
    attributes['cloud.resource_id'] = invokedFunctionArn
    const account = ACCOUNT.exec(invokedFunctionArn)?.[1]
    if (account !== undefined) attributes['cloud.account.id'] = account
  }
  return attributes
}

/** How long the flush may take: an answer that comes too late for the platform is worse than spans that wait. */
function timeLeft (context, timeoutMs) {
  const left = context?.getRemainingTimeInMillis?.()
  return typeof left === 'number' ? Math.max(0, Math.min(timeoutMs, left - MARGIN_MS)) : timeoutMs
}

/** The application's tracer, once it is ready. An application that cannot start fails in the handler. */
async function tracerOf (app) {
  try {
    await app.ready()
  } catch {}
  return processState.registrations.get(app.server)?.tracer
}

// A request that inject() makes without a traceparent takes what is active for its parent.
function inContextOf (tracer, fn) {
  const parent = xrayParent(invocationTraceHeader())
  return parent === null ? fn() : tracer.contextManager.with(EMPTY_CONTEXT.setValue(SPAN_KEY, parent), fn)
}

/** Calls a handler of either kind: with a promise, or with a callback as its third parameter. */
function call (handler, self, args) {
  const [event, context, callback] = args
  if (typeof callback !== 'function') return handler.apply(self, args)
  if (handler.length < 3) return handler.call(self, event, context)
  return new Promise((resolve, reject) => {
    const result = handler.call(self, event, context, (error, value) => error ? reject(error) : resolve(value))
    if (typeof result?.then === 'function') result.then(resolve, reject)
  })
}

module.exports = { flushAfter }
