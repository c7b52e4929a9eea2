'use strict'

// `lightTrace.flushAfter(app, handler)`: a function platform freezes the process when the handler's promise settles, so
// it settles when the spans of the invocation are delivered.

const { EMPTY_CONTEXT } = require('../context/suppressed')
const { SPAN_KEY } = require('../context/keys')
const { optionInvalid, describe } = require('../config/errors')
const { object, duration } = require('../config/checks')
const { invocationTraceHeader } = require('../config/env')
const { processState } = require('../runtime/process-state')
const { platformWaitUntil } = require('./vercel')
const { xrayParent } = require('./xray')

const DEFAULT_TIMEOUT_MS = 1000
// Left to the platform to send the answer, where it says how long the invocation may take.
const MARGIN_MS = 50

const ACCOUNT = /^arn:[^:]*:lambda:[^:]*:(\d{12}):/

const checkOptions = object({ timeoutMs: duration })

/**
 * @param {FastifyInstance} app
 * @param {(...args: unknown[]) => T | Promise<T>} handler
 * @param {{ timeoutMs?: number }} [options]
 * @returns {(...args: unknown[]) => Promise<T>}
 */
function flushAfter (app, handler, options = {}) {
  if (app === null || typeof app !== 'object' || typeof app.ready !== 'function') throw optionInvalid('flushAfter(app)', 'a Fastify application', describe(app))
  if (typeof handler !== 'function') throw optionInvalid('flushAfter(app, handler)', 'a function', describe(handler))
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = checkOptions('flushAfter', options)
  let isFirst = true
  // Without named parameters: Lambda looks at their number, and one with three would wait for a callback.
  return async function flushingHandler (...args) {
    const tracer = await tracerOf(app)
    const invocation = new Invocation(args, isFirst)
    isFirst = false
    if (tracer === undefined) return call(handler, this, args)
    const waitUntil = platformWaitUntil()
    try {
      tracer.invocation = invocation.attributes
      return await inContextOf(tracer, () => call(handler, this, args))
    } finally {
      tracer.invocation = null
      const flushed = tracer.drained().then(() => tracer.flush({ timeoutMs: invocation.timeLeft(timeoutMs) }))
      if (waitUntil === null) await flushed
      else waitUntil(flushed)
    }
  }
}

/** What Lambda's context object says; elsewhere there is none. */
class Invocation {
  #context

  constructor (args, isFirst) {
    this.#context = args.find((argument) => typeof argument?.awsRequestId === 'string')
    /** Of the request's span; null where it is not known to be Lambda. */
    this.attributes = this.#context === undefined ? null : this.#describe(isFirst)
  }

  #describe (isFirst) {
    const { awsRequestId, invokedFunctionArn } = this.#context
    const attributes = { 'faas.trigger': 'http', 'faas.invocation_id': awsRequestId, 'faas.coldstart': isFirst }
    if (typeof invokedFunctionArn === 'string') {
      attributes['aws.lambda.invoked_arn'] = invokedFunctionArn
      attributes['cloud.resource_id'] = invokedFunctionArn
      const account = ACCOUNT.exec(invokedFunctionArn)?.[1]
      if (account !== undefined) attributes['cloud.account.id'] = account
    }
    return attributes
  }

  /** An answer that comes too late for the platform is worse than spans that wait. */
  timeLeft (timeoutMs) {
    const left = this.#context?.getRemainingTimeInMillis?.()
    return typeof left === 'number' ? Math.max(0, Math.min(timeoutMs, left - MARGIN_MS)) : timeoutMs
  }
}

/** Once the application is ready. One that cannot start says so to the handler. */
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

/** Handlers of both kinds: with a promise, and with a callback as their third parameter. */
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
