'use strict'

// A request's way through Fastify: one hook at the start, one listener at the end, one hook for errors.
//
//   onRequest  who calls, sample, start the span, enter the context
//   onError    remember what was thrown
//   'close'    of the raw response: whole, broken off or never sent, it comes once
//
// Nothing is looked up through AsyncLocalStorage at the end: the span hangs on the raw response.

const { IncomingContext, copyTrace, PARENT_NONE, PARENT_LOCAL, PARENT_REMOTE, RANDOM } = require('../context/trace-context')
const { parseTraceparent } = require('../context/traceparent')
const { cleanTracestate } = require('../context/tracestate')
const { newTraceId } = require('../context/ids')
const { parentIn } = require('../context/parent')
const { processState } = require('../runtime/process-state')
const { RequestContext } = require('../context/request-context')
const { INVALID_SPAN, NonRecordingSpan } = require('../span/non-recording-span')
const clock = require('../span/clock')
const { Routes } = require('./routes')
const { Callbacks } = require('./callbacks')
const { LogCorrelation } = require('./log-correlation')
const { requestTarget, peerInfo, forwardedPeerInfo } = require('../span/http-conventions')
const { isOver, sentStatus, unfinished } = require('./response-end')
const { watchPipelined } = require('./pipelined')

// Symbol.for: with two copies of this package in one application, the first makes the span.
const kSpan = Symbol.for('light-trace.span')
const kTrace = Symbol.for('light-trace.trace')

// Read again for every request and never kept.
const incoming = new IncomingContext()

/** The hooks that trace the requests of `app` with `tracer`. */
function fastifyHooks (app, tracer) {
  const { settings, report } = tracer
  const { disabled, ignore, limits, trustIncoming } = settings
  const readsBaggage = settings.propagators.includes('baggage')
  const routes = new Routes(settings, report)
  const callbacks = new Callbacks(settings, report)
  const logCorrelation = settings.logs ? LogCorrelation.of(app) : null
  const hasLogger = app.log?.level !== undefined // its last line may have a mixin that asks for the request
  let isProxied // whether Fastify's trustProxy is on; its requests tell

  return { onRequest, onError, unrouted }

  // HOT, once per request.
  function onRequest (request, reply, done) {
    const response = reply.raw
    if (response[kSpan] !== undefined) { // registered in an outer scope too
      done()
      return
    }
    let context
    try {
      context = begin(request, reply, response)
    } catch (error) {
      report.once('LT_WARN_BUG', `Bug: a request was not traced: ${error?.stack}`)
      response[kSpan] = INVALID_SPAN
      context = request[kTrace] = new RequestContext(tracer, INVALID_SPAN, null, true)
    }
    const { raw } = request
    if (raw._lightMyRequest === undefined) {
      // Asked of HTTP/1 only: HTTP/2's socket is a proxy that is made when it is read.
      if (raw.httpVersionMajor === 1 && response.socket === null && (hasLogger || routes.hasOnResponse(request))) {
        tracer.enterQueued(context, response)
      }
      tracer.enter(context, done)
    } else {
      tracer.enterInjected(context, done)
    }
  }

  function begin (request, reply, response) {
    const { raw } = request
    const { sdkInterop } = tracer
    const base = sdkInterop === null ? null : sdkInterop.base()
    if (disabled) return beginSuppressed(raw, request, response, base)
    const start = clock.now()
    const route = routes.infoOf(request)
    const { headers } = raw
    if ((route.options !== null && isOff(route.options, request)) || (ignore !== null && callbacks.ignores(ignore, request)) ||
      (base !== null && sdkInterop.isSuppressed(base)) || (headers.traceparent !== undefined && isExporterTraffic(headers, route, base))) {
      return beginSuppressed(raw, request, response, base)
    }
    const trusted = isTrusted(headers, request)
    const parentKind = readIncoming(raw, headers, trusted)

    if (isProxied === undefined) isProxied = 'ips' in request
    const peer = isProxied ? forwardedPeerInfo(request, limits.attributeValueLength) : peerInfo(raw, limits.attributeValueLength)
    const span = base === null
      ? tracer.startServer(incoming, parentKind, start, route, peer, requestTarget(raw))
      : sdkInterop.startServer(incoming, parentKind, start, route, peer, requestTarget(raw), base)
    const context = request[kTrace] = new RequestContext(tracer, base === null ? span : span.span ?? span, base, false)
    context.caller = headers.traceparent
    if (trusted && readsBaggage && typeof headers.baggage === 'string') context.baggage = headers.baggage
    if (span.isRecording()) {
      span.reply = reply
      response[kSpan] = span
      response.on('close', onClose)
      if (watchPipelined !== null && raw.httpVersionMajor === 1) watchPipelined(raw.socket, response, onClose)
    } else {
      response[kSpan] = INVALID_SPAN
    }
    if (callbacks.any || route.options !== null) callbacks.started(context.span, context, request, route, parentKind, response)
    if (logCorrelation !== null) logCorrelation.correlate(request, reply, span)
    if (isOver(response)) onClose.call(response)
    return context
  }

  function isOff (options, request) {
    return options.off || (options.ignore !== null && callbacks.ignores(options.ignore, request))
  }

  /** Spans on their way to this server from its own process. Where ids and flags alone decide their flags say it already. */
  function isExporterTraffic ({ traceparent }, { sampler }, base) {
    return (trustIncoming !== true || !tracer.usesFastPath || sampler !== null || base !== null) && processState.exporterTraceparents.has(traceparent)
  }

  /** Switched off or ignored: the context stays, an incoming traceparent is handed on as it came. */
  function beginSuppressed (raw, request, response, base) {
    response[kSpan] = INVALID_SPAN
    const { headers } = raw
    const trusted = isTrusted(headers, request)
    let span = INVALID_SPAN
    if ((headers.traceparent !== undefined || tracer.propagator !== null) && readIncoming(raw, headers, trusted) === PARENT_REMOTE) {
      span = new NonRecordingSpan()
      copyTrace(incoming, span)
      span.s0 = incoming.p0
      span.s1 = incoming.p1
    }
    const context = request[kTrace] = new RequestContext(tracer, span, base, true)
    context.caller = headers.traceparent
    if (trusted && readsBaggage && typeof headers.baggage === 'string') context.baggage = headers.baggage
    callbacks.fillStore(context, request)
    return context
  }

  /** Whether trace and baggage of this caller may go on; the user's function is asked once, and only where something came. HOT */
  function isTrusted (headers, request) {
    return trustIncoming === true || ((headers.traceparent !== undefined || headers.baggage !== undefined || tracer.propagator !== null) &&
      callbacks.trusts(request))
  }

  /** Fills `incoming` with the caller's ids, or new ones; answers who the parent is. HOT */
  function readIncoming (raw, headers, trusted) {
    if (tracer.propagator !== null) return readForeign(raw, headers, trusted)
    if (trusted && headers.traceparent !== undefined && parseTraceparent(headers.traceparent, incoming)) {
      incoming.tracestate = headers.tracestate === undefined ? '' : cleanTracestate(headers.tracestate)
      return PARENT_REMOTE
    }
    incoming.tracestate = ''
    // Only inject() is called from inside a request on purpose; any other active context is a leftover.
    if (raw._lightMyRequest !== undefined && headers.traceparent === undefined && adoptActive()) return PARENT_LOCAL
    newTraceId(incoming)
    incoming.flags = RANDOM
    return PARENT_NONE
  }

  /** The same by a propagator that is not ours. */
  function readForeign (raw, headers, trusted) {
    const caller = trusted ? tracer.sdkInterop.callerIn(headers) : undefined
    if (caller !== undefined) return adopt(caller, PARENT_REMOTE)
    incoming.tracestate = ''
    if (raw._lightMyRequest !== undefined && adoptActive()) return PARENT_LOCAL
    newTraceId(incoming)
    incoming.flags = RANDOM
    return PARENT_NONE
  }

  function adoptActive () {
    const span = parentIn(tracer.contextManager.active())
    return span !== undefined && adopt(span, PARENT_LOCAL) === PARENT_LOCAL
  }

  function adopt (span, parentKind) {
    copyTrace(span, incoming)
    incoming.p0 = span.s0
    incoming.p1 = span.s1
    return parentKind
  }

  // HOT, once per recorded request; `this` is the raw response.
  function onClose () {
    const span = this[kSpan]
    if (span === INVALID_SPAN) return
    this[kSpan] = INVALID_SPAN
    const { reply } = span
    span.reply = null
    try {
      const status = sentStatus(this)
      const broken = unfinished(this, reply)
      if (callbacks.anyAtEnd) callbacks.ending(span.span ?? span, reply, status, broken)
      span.close(status, broken)
    } catch (error) { // thrown from a listener it would end the process
      report.once('LT_WARN_BUG', `Bug: a request was not traced to its end: ${error?.stack}`)
    }
  }

  function onError (request, reply, error, done) {
    reply.raw[kSpan]?.fail(error)
    done()
  }

  /** A response that went out without our hook, see unrouted.js: there is no Fastify request, and no route. */
  function unrouted (raw, response, start) {
    if (response[kSpan] !== undefined || disabled) return
    response[kSpan] = INVALID_SPAN
    const { headers, method, url } = raw
    const request = { raw, headers, method, url }
    if (ignore !== null && callbacks.ignores(ignore, request)) return
    const parentKind = readIncoming(raw, headers, isTrusted(headers, request))
    const began = Number.isNaN(start) ? clock.now() : start
    const route = routes.unrouted(method)
    const peer = peerInfo(raw, limits.attributeValueLength)
    const span = tracer.sdkInterop === null
      ? tracer.startServer(incoming, parentKind, began, route, peer, requestTarget(raw))
      : tracer.sdkInterop.startServer(incoming, parentKind, began, route, peer, requestTarget(raw), tracer.sdkInterop.base())
    if (!span.isRecording()) return
    span.close(sentStatus(response), '')
  }
}

/** `request.trace`, on the prototype: costs nothing until it is read. */
function traceGetter (noTrace) {
  return function trace () {
    return this[kTrace] ?? noTrace
  }
}

module.exports = { fastifyHooks, traceGetter }
