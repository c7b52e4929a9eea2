'use strict'

// The start of a request: whether it is traced, its caller, the sampler's decision, its span and its context.

const { RequestContext, CallerHeaders, EMPTY_CONTEXT } = require('../context/request-context.js')
const { processState } = require('../runtime/process-state.js')
const { attempt } = require('../runtime/report.js')
const { INVALID_SPAN, RemoteSpan } = require('../span/child-span.js')
const { DROP, RECORD_AND_SAMPLE } = require('../sampling/sampler.js')
const { requestTarget, peerInfo, forwardedPeerInfo } = require('../http/conventions.js')
const clock = require('../runtime/timers.js')
const { kContext, kTrace } = require('./keys.js')
const { isOver } = require('./response-end.js')
const {
  IncomingContext, callerTracestate, copyTrace, parentIn, PARENT_NONE, PARENT_LOCAL, PARENT_REMOTE, RANDOM, SPAN_KEY, SUPPRESS_KEY
} = require('../context/trace-context.js')
const { newTraceId } = require('../context/ids.js')
const { parseTraceparent } = require('../context/traceparent.js')
const { headersGetter } = require('../otel/propagators.js')

// What a request's headers say of its trace. Read again for every request and never kept.
const incoming = new IncomingContext()

class RequestStart {
  /**
   * @param {Tracer} tracer
   * @param {{ routes, callbacks, follower, onClose }} parts `onClose`: of the raw response
   */
  constructor (tracer, { routes, callbacks, follower, onClose }) {
    const { limits, disabled, trustIncoming, propagators } = tracer.settings
    this.tracer = tracer
    this.observer = tracer.observer
    this.isDisabled = disabled
    this.routes = routes
    this.callbacks = callbacks
    this.follower = follower
    this.onClose = onClose
    this.ignore = tracer.ignore
    this.valueLengthMax = limits.attributeValueLength
    this.omit = tracer.omit
    this.trustsAll = trustIncoming === true
    this.readsBaggage = propagators.includes('baggage')
    this.extracted = undefined // by a propagator that is not ours, of the request that is being read
    this.isProxied = undefined // whether Fastify's trustProxy is on; its first request says so
  }

  /** Starts the span and hangs its context on the request and on the raw response. HOT, once per request. */
  begin (request, reply) {
    const { raw } = request
    const { headers } = raw // a getter of Node's: read once
    let base = this.baseOf(this.tracer)
    if (this.isDisabled) return this.beginSuppressed(raw, headers, request, reply, base)
    const start = clock.now()
    const route = this.routes.infoOf(request)
    if (this.isLeftOut(headers, request, route, base)) return this.beginSuppressed(raw, headers, request, reply, base)

    const { callbacks } = this
    const hasCallbacks = callbacks.any || route.options !== null
    // Before anything is read into `incoming`: the user's functions may serve another request.
    const attributes = hasCallbacks && this.asksWithAttributes(route) ? callbacks.attributesAtStart(request, route) : null
    const incoming = this.readCaller(raw, headers, request, start, base)
    incoming.attributes = attributes
    if (base !== null) base = this.contextUnder(base)
    const { starter, ownStarter } = this.tracer
    const decision = starter.decideServer(incoming, route)
    const peer = decision === DROP && this.observer === null ? null : this.peerOf(raw, reply.raw, headers, request)
    const span = decision === RECORD_AND_SAMPLE
      ? ownStarter.startRecording(incoming, route, peer, this.targetOf(raw, route))
      : decision === DROP ? ownStarter.startUnsampled(incoming) : starter.startServer(incoming, route, peer, this.targetOf(raw, route), base)
    const record = this.observer !== null ? this.observer.recordOf(span, start, route, peer) : span.isRecording() ? span : null
    return this.open(span, record, base, request, reply, headers, route, hasCallbacks ? incoming : null)
  }

  /** Makes the request's context. Apart from `begin`, because V8 inlines so much into one function; `incoming`: null where the user has no functions. HOT, once per request. */
  open (span, record, base, request, reply, headers, route, incoming) {
    const { tracer, follower } = this
    const response = reply.raw
    const context = new RequestContext(tracer, span.apiSpan, base, false, this.callerOf(headers), this.baggageOf(headers), record)
    response[kContext] = context
    request[kTrace] = context
    if (record !== null) this.watchEnd(record, reply, response)
    if (incoming !== null) this.callbacks.started(context.span, context, request, route, incoming, response)
    if (follower !== null) follower.started(request, reply, span, route)
    if (isOver(response)) this.onClose.call(response)
    return context
  }

  /** Whether an SDK's Sampler decides about requests of this route. */
  asksWithAttributes ({ sampler }) {
    const { tracer } = this
    return tracer.output.sdkSpans !== null || (sampler === null ? tracer.sampler : sampler).isCustom
  }

  /** Switched off for this request: by its route, by `ignore`, because tracing is suppressed, or because it carries our own spans. */
  isLeftOut ({ traceparent }, request, route, base) {
    const { options } = route
    return (options !== null && (options.off || this.ignores(options.ignore, request))) || this.ignores(this.ignore, request) ||
      (base !== null && base.getValue(SUPPRESS_KEY) === true) || (traceparent !== undefined && this.isExporterTraffic(traceparent, route, base))
  }

  ignores (ignore, request) { return ignore !== null && this.callbacks.ignores(ignore, request) }

  /** Spans on their way to this server from its own process. Where ids and flags alone decide their flags say it already. */
  isExporterTraffic (traceparent, { sampler }, base) {
    return (!this.trustsAll || !this.tracer.decidesByIds || sampler !== null || base !== null) &&
      processState.exporterTraceparents.has(traceparent)
  }

  /** What only a request tells of its application: asked of the first one that has a peer. */
  learnFrom (request) {
    this.isProxied = 'ips' in request
    this.tracer.outbound.reportUntraced() // by now the application has loaded what it uses
  }

  /** The request target, as far as its span may have it. HOT */
  targetOf (raw, _route) { return requestTarget(raw) }

  peerOf (raw, response, headers, request) {
    if (this.isProxied === undefined) this.learnFrom(request)
    const { valueLengthMax, omit } = this
    return this.isProxied ? forwardedPeerInfo(request, response, valueLengthMax, omit) : peerInfo(raw, response, headers, valueLengthMax, omit)
  }

  watchEnd (record, reply, response) {
    record.reply = reply
    if (this.observer !== null) this.observer.server.started(record, response)
  }

  /** No span, but a context: an incoming traceparent is handed on as it came. */
  beginSuppressed (raw, headers, request, reply, base) {
    const { tracer } = this
    const incoming = this.readPassedOn(raw, headers, request, base)
    if (base !== null) base = this.contextUnder(base)
    const span = incoming === null ? INVALID_SPAN : new RemoteSpan(incoming, false)
    const record = this.observer === null ? null : this.recordOfSuppressed(raw, headers, request, reply)
    const context = new RequestContext(tracer, span, base, true, this.callerOf(headers), this.baggageOf(headers), record)
    reply.raw[kContext] = context
    request[kTrace] = context
    this.callbacks.fillStore(context, request)
    if (record === null) return context
    this.watchEnd(record, reply, reply.raw)
    if (isOver(reply.raw)) this.onClose.call(reply.raw)
    return context
  }

  /** Without a span it counts all the same, unless its route says otherwise. */
  recordOfSuppressed (raw, headers, request, reply) {
    const route = this.routes.infoOf(request)
    return route.isMeasured ? this.observer.recordOf(INVALID_SPAN, clock.now(), route, this.peerOf(raw, reply.raw, headers, request)) : null
  }

  /**
   * A request whose start failed by a mistake of ours, or a span of an SDK: it is served. Where it has its context already, that
   * one ends what was started; else it gets one that does nothing.
   */
  beginFailed (request, response) {
    if (response[kContext] === undefined) response[kContext] = request[kTrace] = new RequestContext(this.tracer, INVALID_SPAN, null, true)
    else if (isOver(response)) this.onClose.call(response)
    return response[kContext]
  }

  // Who calls: which trace a request continues, and whether its caller is trusted with that.

  /** Fills `incoming` with the caller's ids, or with new ones. HOT, once per request. */
  readCaller (raw, headers, request, start, base) {
    incoming.start = start
    incoming.isTrusted = this.isTrusted(headers, request)
    if (this.tracer.propagator !== null) this.readForeign(raw, headers, base)
    else if (incoming.isTrusted && headers.traceparent !== undefined && parseTraceparent(headers.traceparent, incoming)) {
      incoming.tracestate = headers.tracestate === undefined ? '' : callerTracestate(headers.tracestate, incoming)
      incoming.parentKind = PARENT_REMOTE
    } else this.startTrace(raw, headers)
    return incoming
  }

  /** The trace that a request without a span hands on as it came, or null. No ids are made. */
  readPassedOn (raw, headers, request, base) {
    if (headers.traceparent === undefined && this.tracer.propagator === null) {
      incoming.isTrusted = this.isTrusted(headers, request)
      return null
    }
    return this.readCaller(raw, headers, request, NaN, base).parentKind === PARENT_REMOTE ? incoming : null
  }

  /** Whether trace and baggage of this caller, if there are any, may go on. */
  isTrusted (headers, request) {
    if (this.trustsAll) return true
    return (headers.traceparent !== undefined || headers.baggage !== undefined || this.tracer.propagator !== null) && this.callbacks.trusts(request)
  }

  /** The context that a request comes in with; null where it is empty, and nothing but our own code reads headers. HOT, once per request. */
  baseOf ({ sdkInterop, propagator }) {
    if (sdkInterop !== null) return sdkInterop.base()
    return propagator === null ? null : EMPTY_CONTEXT
  }

  /** Fills `incoming` by a propagator that is not ours, which may also leave values such as B3's debug flag. */
  readForeign (raw, headers, base) {
    const { propagator, report } = this.tracer
    // What is active already is not the caller.
    const extract = () => propagator.extract(base.deleteValue(SPAN_KEY), headers, headersGetter)
    this.extracted = incoming.isTrusted ? report.attempt('LT_WARN_PROPAGATOR', 'the propagator failed to read headers', extract) : undefined
    const caller = parentIn(this.extracted)
    if (caller === undefined) this.startTrace(raw, headers)
    else this.adopt(caller, PARENT_REMOTE)
  }

  /** The context under the request's own: `base`, or what a propagator that is not ours made of it. */
  contextUnder (base) {
    const { extracted } = this
    this.extracted = undefined
    return extracted ?? base
  }

  /** Fills `incoming` with a new trace, or with that of the request which calls `app.inject`. */
  startTrace (raw, headers) {
    incoming.tracestate = ''
    // Only app.inject() is called from inside a request on purpose; any other active context is a leftover.
    if (raw._lightMyRequest !== undefined && (headers.traceparent === undefined || this.tracer.propagator !== null) && this.adoptActive()) return
    newTraceId(incoming)
    incoming.flags = RANDOM
    incoming.parentKind = PARENT_NONE
  }

  adoptActive () {
    const span = parentIn(this.tracer.contextManager.active())
    // A remote one is active where a platform of functions names it, as Lambda's own span.
    if (span !== undefined) this.adopt(span, span.remote === true ? PARENT_REMOTE : PARENT_LOCAL)
    return span !== undefined
  }

  adopt (span, parentKind) {
    copyTrace(span, incoming)
    incoming.p0 = span.s0
    incoming.p1 = span.s1
    incoming.parentKind = parentKind
  }

  /** The headers that came, for calls into which a proxy copies them. HOT, once per request. */
  callerOf (headers) {
    return incoming.isTrusted && this.tracer.propagator === null ? headers.traceparent : this.callerHeaders(headers)
  }

  /** The baggage of a trusted caller, for calls that hand it on. HOT, once per request. */
  baggageOf ({ baggage }) {
    return incoming.isTrusted && this.readsBaggage && typeof baggage === 'string' ? baggage : null
  }

  callerHeaders (headers) {
    const { propagator } = this.tracer
    if (propagator !== null) {
      const fields = attempt(() => propagator.fields().map((name) => String(name).toLowerCase())) ?? []
      return new CallerHeaders(headers, fields, incoming.isTrusted)
    }
    const isEmpty = headers.traceparent === undefined && headers.tracestate === undefined && headers.baggage === undefined
    return isEmpty ? undefined : new CallerHeaders(headers, [], false)
  }
}

module.exports = { RequestStart }
