'use strict'

// One INTERNAL span for all hooks of a lifecycle stage, for those who ask: `spans: { hooks: ['preHandler'] }`.
//
// Nothing of the user's is wrapped. A stage begins with our hook, which is the first where the plugin was
// registered first, and ends with one that is appended to each route. A hook that replies or throws leaves
// the stage early: then it ends with the error, with the first onSend, or with the response.

const { KIND_INTERNAL } = require('../outbound/calls')
const { errorType } = require('../span/exception')
const { SPAN_KEY } = require('../context/keys')

const STATUS_ERROR = 2

// A hook that gets a payload hands it on.
const WITH_PAYLOAD = new Set(['preParsing', 'preSerialization', 'onSend'])

const kStage = Symbol('light-trace.stage')
const kAfter = Symbol('light-trace.after') // whether that stage is onResponse

// An onResponse hook that takes longer is taken for one that failed.
const RESPONSE_HOOKS_MAX_MS = 10_000

// Taken at load: fake timers of a test must not reach us.
const { setTimeout } = globalThis

const callDescriptor = { kind: KIND_INTERNAL, name: (stage) => stage, attributes: () => [] }

/**
 * @param {FastifyInstance} app where the plugin is registered
 * @param {Tracer} tracer
 * @returns {(route: RouteOptions, hooks: string[]) => void} brackets the hooks of a route
 */
function hookSpans (app, tracer) {
  const instanceWide = new Set(tracer.settings.spans.hooks)
  for (const stage of instanceWide) app.addHook(stage, starting(stage))
  if (instanceWide.size !== 0) leaveEarly()

  return function bracket (route, hooks) {
    for (const stage of hooks) {
      const own = route[stage] === undefined ? [] : [].concat(route[stage])
      // What only this route asks for has no hook of the instance's before it.
      const first = instanceWide.has(stage) ? [] : [starting(stage)]
      route[stage] = [...first, ...own, ending(stage)]
    }
    if (hooks.some((stage) => !instanceWide.has(stage))) leaveEarlyOn(route)
  }

  function leaveEarly () {
    if (!instanceWide.has('onSend')) app.addHook('onSend', onSend)
    if (!instanceWide.has('onError')) app.addHook('onError', onError)
  }

  function leaveEarlyOn (route) {
    route.onSend = [onSend, ...(route.onSend === undefined ? [] : [].concat(route.onSend))]
    route.onError = [onError, ...(route.onError === undefined ? [] : [].concat(route.onError))]
  }

  function starting (stage) {
    if (stage === 'onError') return (request, reply, error, done) => start(stage, request, reply, error, () => done())
    if (WITH_PAYLOAD.has(stage)) return (request, reply, payload, done) => start(stage, request, reply, undefined, () => done(null, payload))
    return (request, reply, done) => start(stage, request, reply, undefined, done)
  }

  function ending (stage) {
    if (stage === 'onError') return (request, reply, error, done) => leave(request, () => done())
    if (WITH_PAYLOAD.has(stage)) return (request, reply, payload, done) => leave(request, () => done(null, payload))
    return (request, reply, done) => leave(request, done)
  }

  function onSend (request, reply, payload, done) {
    leave(request, () => done(null, payload))
  }

  function onError (request, reply, error, done) {
    end(request, reply, error)
    leave(request, () => done())
  }

  function start (stage, request, reply, error, done) {
    const { trace } = request
    end(request, reply, error)
    const span = trace.suppressed ? null : tracer.startCall(callDescriptor, stage, trace)
    if (span === null || !span.isRecording()) {
      done()
      return
    }
    // onResponse may well outlive the response; nobody hears of one that fails.
    if (stage === 'onResponse') setTimeout(endSpan, RESPONSE_HOOKS_MAX_MS, span).unref()
    else if (request[kStage] === undefined) reply.raw.once('close', () => { if (request[kAfter] !== true) end(request, reply) })
    request[kAfter] = stage === 'onResponse'
    request[kStage] = span
    tracer.contextManager.with(trace.setValue(SPAN_KEY, span), done)
  }

  /** Goes on in the request's own context. */
  function leave (request, done) {
    const span = request[kStage]
    if (span === undefined || span === null) {
      done()
      return
    }
    end(request)
    tracer.contextManager.with(request.trace, done)
  }
}

function endSpan (span) {
  if (span.isRecording()) span.end()
}

/** Ends the stage that runs, if one does. */
function end (request, reply, error) {
  const span = request[kStage]
  if (span === undefined || span === null) return
  request[kStage] = null
  if (error !== undefined) failWith(span, reply, error)
  span.end()
}

/** An error is the server's from 500 on, as it is for the request's span. */
function failWith (span, reply, error) {
  if (statusOf(reply, error) < 500) return
  span.setAttribute('error.type', errorType(error))
  span.setStatus({ code: STATUS_ERROR })
}

/** As Fastify will set it, which it does after onError. */
function statusOf (reply, error) {
  if (reply.statusCode >= 400) return reply.statusCode
  try {
    const status = error.statusCode || error.status
    return status >= 400 ? status : 500
  } catch {
    return 500
  }
}

module.exports = { hookSpans, failWith }
