'use strict'

// Starts a request: decides whether it is traced, reads its caller, asks the sampler, and creates its span and context.

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

// The trace context from a request's headers. One object, filled again for each request and never kept.
const incoming = new IncomingContext()

class RequestStart {
  /**
   * @param {Tracer} tracer
   * @param {{ routes, callbacks, follower, onClose }} parts `onClose`: the 'close' listener of the raw response
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
    this.extracted = undefined // the context that a foreign propagator extracted from the current request
    this.isProxied = undefined // whether Fastify's trustProxy is on; known from the first request
  }

  /** Starts the span and sets its context on the request and on the raw response. HOT, once per request. */
  begin (request, reply) {
    const { raw } = request
    const { headers } = raw // a getter in Node, so read only once
    let base = this.baseOf(this.tracer)
    if (this.isDisabled) return this.beginSuppressed(raw, headers, request, reply, base)
    const start = clock.now()
    const route = this.routes.infoOf(request)
    if (this.isLeftOut(headers, request, route, base)) return this.beginSuppressed(raw, headers, request, reply, base)

    const { callbacks } = this
    const hasCallbacks = callbacks.any || route.options !== null
    // Before `incoming` is filled, because the user's functions may start another request.
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

  /**
   * Creates the request's context. Separate from `begin`, because V8 limits how much it inlines into one function.
   * `incoming` is null if the user has no functions. HOT, once per request.
   */
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

  /** Whether an SDK's Sampler decides about requests of this route. It reads the attributes. */
  asksWithAttributes ({ sampler }) {
    const { tracer } = this
    return tracer.output.sdkSpans !== null || (sampler === null ? tracer.sampler : sampler).isCustom
  }

  /** Whether tracing is off for this request: by its route, by `ignore`, by suppression, or because it carries our own spans. */
  isLeftOut ({ traceparent }, request, route, base) {
    const { options } = route
    return (options !== null && (options.off || this.ignores(options.ignore, request))) || this.ignores(this.ignore, request) ||
      (base !== null && base.getValue(SUPPRESS_KEY) === true) || (traceparent !== undefined && this.isExporterTraffic(traceparent, route, base))
  }

  ignores (ignore, request) { return ignore !== null && this.callbacks.ignores(ignore, request) }

  /** Whether this is an export of spans from this process to this server. If ids and flags alone decide, its flags already prevent a span. */
  isExporterTraffic (traceparent, { sampler }, base) {
    return (!this.trustsAll || !this.tracer.decidesByIds || sampler !== null || base !== null) &&
      processState.exporterTraceparents.has(traceparent)
  }

  /** Learns what only a request tells about the application. Called for the first request whose peer is read. */
  learnFrom (request) {
    this.isProxied = 'ips' in request
    this.tracer.outbound.reportUntraced() // by now the application has loaded its libraries
  }

  /** The part of the request target that the span may contain. HOT */
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

  /** Creates a context but no span. An incoming traceparent is passed on unchanged. */
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

  /** A request without a span is measured too, unless its route opts out. */
  recordOfSuppressed (raw, headers, request, reply) {
    const route = this.routes.infoOf(request)
    return route.isMeasured ? this.observer.recordOf(INVALID_SPAN, clock.now(), route, this.peerOf(raw, reply.raw, headers, request)) : null
  }

  /**
   * Lets a request continue whose start failed because of a bug of ours or of an SDK's span. If it already has its context, that ends
   * what was started; otherwise it gets one that does nothing.
   */
  beginFailed (request, response) {
    if (response[kContext] === undefined) response[kContext] = request[kTrace] = new RequestContext(this.tracer, INVALID_SPAN, null, true)
    else if (isOver(response)) this.onClose.call(response)
    return response[kContext]
  }

  // The caller: which trace a request continues, and whether its caller is trusted.

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

  /** The trace that a request without a span passes on unchanged, or null. Without trace headers, no ids are generated. */
  readPassedOn (raw, headers, request, base) {
    if (headers.traceparent === undefined && this.tracer.propagator === null) {
      incoming.isTrusted = this.isTrusted(headers, request)
      return null
    }
    return this.readCaller(raw, headers, request, NaN, base).parentKind === PARENT_REMOTE ? incoming : null
  }

  /** Whether the caller's trace and baggage, if any, are trusted. */
  isTrusted (headers, request) {
    if (this.trustsAll) return true
    return (headers.traceparent !== undefined || headers.baggage !== undefined || this.tracer.propagator !== null) && this.callbacks.trusts(request)
  }

  /** The context that is active when a request arrives; null if it is empty and only our own code reads headers. HOT, once per request. */
  baseOf ({ sdkInterop, propagator }) {
    if (sdkInterop !== null) return sdkInterop.base()
    return propagator === null ? null : EMPTY_CONTEXT
  }

  /** Fills `incoming` with a foreign propagator, which may also extract other values, such as B3's debug flag. */
  readForeign (raw, headers, base) {
    const { propagator, report } = this.tracer
    // Without the active span, which is not the caller.
    const extract = () => propagator.extract(base.deleteValue(SPAN_KEY), headers, headersGetter)
    this.extracted = incoming.isTrusted ? report.attempt('LT_WARN_PROPAGATOR', 'the propagator failed to read headers', extract) : undefined
    const caller = parentIn(this.extracted)
    if (caller === undefined) this.startTrace(raw, headers)
    else this.adopt(caller, PARENT_REMOTE)
  }

  /** The parent of the request's context: `base`, or what a foreign propagator extracted into it. */
  contextUnder (base) {
    const { extracted } = this
    this.extracted = undefined
    return extracted ?? base
  }

  /** Fills `incoming` with a new trace, or with the trace of the request that calls `app.inject`. */
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
    // A remote span is active if a function platform provides it, such as Lambda's own span.
    if (span !== undefined) this.adopt(span, span.remote === true ? PARENT_REMOTE : PARENT_LOCAL)
    return span !== undefined
  }

  adopt (span, parentKind) {
    copyTrace(span, incoming)
    incoming.p0 = span.s0
    incoming.p1 = span.s1
    incoming.parentKind = parentKind
  }

  /** The caller's headers, to recognise them in outgoing calls into which a proxy has copied them. HOT, once per request. */
  callerOf (headers) {
    return incoming.isTrusted && this.tracer.propagator === null ? headers.traceparent : this.callerHeaders(headers)
  }

  /** The baggage of a trusted caller, which outgoing calls pass on. HOT, once per request. */
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
