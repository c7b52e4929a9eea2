'use strict'

// A request's way through Fastify: one hook at the start, one listener at the end, one hook for errors.
//
//   onRequest  who calls, sample, start the span, enter the context: request-start.js
//   onError    remember what was thrown
//   'close'    of the raw response: whole, broken off or never sent, it comes once
//
// Nothing is looked up through AsyncLocalStorage at the end: the request's context hangs on the raw response too.

const { Routes } = require('./routes')
const { dispatchOf } = require('./dispatch')
const { IncomingReader } = require('./incoming-reader')
const { RequestStart, NO_CALLBACKS, callbacksOf } = require('./request-start')
const { sentStatus, unfinished, forgetPipelined } = require('./response-end')
const { kSpan, kTrace, kStage } = require('./keys')
const { giveTrace, giveTraceToFrameworkErrors } = require('./bare-request')

/**
 * The hooks that trace the requests of `app` with `tracer`.
 * @param {RequestContext} noTrace the `request.trace` of a request that is not traced
 */
function fastifyHooks (app, tracer, noTrace) {
  const { settings, report } = tracer
  const routes = new Routes(settings, report)
  const any = asksUser(settings)
  const callbacks = any || settings.ignore !== null ? callbacksOf(tracer, any) : NO_CALLBACKS
  const incomingReader = new IncomingReader(tracer, callbacks)
  const logCorrelation = settings.logs ? logCorrelationOf(app) : null
  const parts = { routes, callbacks, incomingReader, logCorrelation, handler: app.routing }
  const requests = settings.disabled ? disabled(tracer, parts) : tracer.metrics === null ? new RequestStart(tracer, parts, onClose) : measured(tracer, parts)
  const hasLogger = app.log?.level !== undefined // its last line may have a mixin that asks for the request
  const isByParser = dispatchOf(app)
  giveTraceToFrameworkErrors(app, noTrace)

  return { onRequest: lightTraceOnRequest, onError: lightTraceOnError, unrouted }

  // HOT, once per request.
  function lightTraceOnRequest (request, reply, done) {
    const response = reply.raw
    if (response[kSpan] !== undefined) { // registered in an outer scope too
      done()
      return
    }
    enter(request, response, begin(request, reply, response), done)
  }

  function begin (request, reply, response) {
    try {
      return requests.begin(request, reply)
    } catch (error) {
      if (report.thrown(error, 'a request was not traced')) tracer.stats.dropUnstarted('not_loaded')
      return requests.beginFailed(request, response)
    }
  }

  function enter (request, response, context, done) {
    const { raw } = request
    // Asked of HTTP/1 only: HTTP/2's socket is a proxy that is made when it is read.
    if (raw.httpVersionMajor === 1 && raw._lightMyRequest === undefined && response.socket === null && (hasLogger || routes.hasOnResponse(request))) {
      tracer.enterQueued(context, response)
    }
    if (isByParser(raw)) tracer.enter(context, done)
    else tracer.enterIsolated(context, done)
  }

  // HOT, once per recorded request; `this` is the raw response.
  function onClose () {
    const span = this[kSpan].takeRecord()
    if (span === null) return
    if (forgetPipelined !== null) forgetPipelined(this)
    const { reply } = span
    span.reply = null
    try {
      const status = sentStatus(this)
      const broken = unfinished(this, reply)
      if (callbacks.anyAtEnd) callbacks.ending(span.apiSpan, reply, status, broken)
      span.close(status, broken)
    } catch (error) { // thrown from a listener it would end the process
      report.thrown(error, 'a request was not traced to its end')
    }
  }

  function lightTraceOnError (request, reply, error, done) {
    giveTrace(request, noTrace)
    reply.raw[kSpan]?.caught(error)
    const stages = request[kStage]
    if (stages === undefined) done()
    else stages.leave(request, reply, error, done)
  }

  function unrouted (raw, response, start) {
    requests.endUnrouted(requests.unrouted(raw, response, start), response)
  }
}

/** Whether the options have a say in each request. */
function asksUser ({ onEnd, onStart, responseHeaders, requestHeaders, spanName, attributes, store, replyHeader, trustIncoming, platform, baggage }) {
  return onEnd !== null || onStart !== null || responseHeaders.length > 0 || requestHeaders.length > 0 || spanName !== null ||
    attributes !== null || store !== null || replyHeader !== null || trustIncoming !== true || platform === 'lambda' || baggage.length > 0
}

/** Null without a logger of pino's kind. */
function logCorrelationOf (app) {
  if (typeof app.log?.setBindings !== 'function' || typeof app.log.child !== 'function') return null
  const { LogCorrelation } = require('./log-correlation')
  return new LogCorrelation(app)
}

/** Loaded only where light-trace is switched off. */
function disabled (tracer, parts) {
  const { DisabledRequestStart } = require('./disabled-request-start')
  return new DisabledRequestStart(tracer, parts)
}

/** With metrics every request is watched to its end. Loaded only then. */
function measured (tracer, parts) {
  const { measuredRequestStart } = require('./measured-request-start')
  return measuredRequestStart(tracer, parts)
}

/** `request.trace`, on the prototype: costs nothing until it is read. */
function traceGetter (noTrace) {
  return function trace () {
    return this[kTrace] ?? noTrace
  }
}

module.exports = { fastifyHooks, traceGetter }
