'use strict'

// Handles requests in which another OpenTelemetry package takes part: a TracerProvider creates the spans (SDK mode), the API has another
// context manager, or instrumentation-http has started a SERVER span before Fastify got the request. Loaded only if one of them is present.

const { ServerSpan, SPAN_KIND_SERVER } = require('../../span/server-span.js')
const { STATUS_ERROR, RecordingSpan } = require('../../span/recording-span.js')
const { ChildSpan, NonRecordingSpan, wrapSpanContext } = require('../../span/child-span.js')
const { exceptionAttributes, exceptionOf, toObject } = require('../../span/attributes.js')
const { attempt, counted } = require('../../runtime/report.js')
const { ProcessorSink, BesideSink, providerSink } = require('./delegated.js')
const { now, toHrTime } = require('../../runtime/timers.js')
const { TraceContext, copyIds, readSpanContext, parentIn, SPAN_KEY, RPC_KEY, SAMPLED } = require('../../context/trace-context.js')
const { EMPTY_CONTEXT } = require('../../context/request-context.js')
const { parentContext, UNDECIDED } = require('../../span/span-starter.js')
const { HTTP_INSTRUMENTATION, foreignManager } = require('../../otel/api-globals.js')

const SPAN_KIND_CLIENT = 2
// A span that is created at least this late gets the start time of its request. Requests that reach no hook are seen only at their end.
const LATE_MS = 5

/** Creates spans with a TracerProvider, in SDK mode. */
class SdkSpans {
  #provider
  /** @type {Report} */ #report
  #tracers = new WeakMap() // scope -> the provider's tracer

  constructor (provider, report) {
    this.#provider = provider
    this.#report = report
  }

  /** Returns `{ span, trace }`. `trace` is undefined if the provider returned no usable span: the caller's context is then passed on unchanged. */
  start (name, options, context, scope) {
    try {
      const span = this.#tracer(scope).startSpan(name, options, context)
      const isSpan = typeof span?.spanContext === 'function' && typeof span.end === 'function'
      if (!isSpan) this.#report.warn('LT_WARN_PROVIDER', 'the tracer provider returned no span; the request continues untraced', 'no span')
      const trace = isSpan ? readSpanContext(span) : undefined
      if (trace !== undefined) return { span, trace }
    } catch (error) {
      this.#report.failed('LT_WARN_PROVIDER', 'the tracer provider failed; requests go on without such spans', error)
    }
    return { span: wrapSpanContext(parentIn(context)), trace: undefined }
  }

  #tracer (scope) {
    let tracer = this.#tracers.get(scope)
    if (tracer === undefined) {
      tracer = this.#provider.getTracer(scope.name, scope.version, scope.schemaUrl === undefined ? undefined : { schemaUrl: scope.schemaUrl })
      this.#tracers.set(scope, tracer)
    }
    return tracer
  }
}

/**
 * Wraps another package's span for calls by our code. This is the only guard around these calls: the package's processors may throw,
 * and would make a listener, a timer or a client's callback throw. The application and contexts get the span itself, `apiSpan`.
 */
class ForeignSpan extends NonRecordingSpan {
  #span
  /** @type {Report} */ #report
  #omit

  /** @param {Tracer} owner */
  constructor (span, trace, owner) {
    super()
    this.#span = span
    this.#report = owner.report
    this.#omit = owner.omit
    if (trace !== undefined) copyIds(trace, this)
  }

  get apiSpan () { return this.#span }

  isRecording () { return this.#call('isRecording') === true }
  setAttribute (key, value) { return this.#omit?.has(key) ? this : this.#set('setAttribute', key, this.#omit?.stripValue(key, value) ?? value) }
  setAttributes (attributes) { return this.#set('setAttributes', this.#omit?.stripObject(attributes) ?? attributes) }
  addEvent (name, attributes, time) { return this.#set('addEvent', name, this.#omit?.stripObject(attributes) ?? attributes, time) }
  addLink (link) { return this.#set('addLink', link) }
  addLinks (links) { return this.#set('addLinks', links) }
  setStatus (status) { return this.#set('setStatus', status) }
  updateName (name) { return this.#set('updateName', name) }
  recordException (exception, time) { this.#call('recordException', this.#omit?.stripException(exception) ?? exception, time) }
  end (endTime) { this.#call('end', endTime) }

  #set (method, ...args) {
    this.#call(method, ...args)
    return this
  }

  #call (method, ...args) {
    try {
      return this.#span[method]?.(...args) // the API has no addLink before 1.9
    } catch (error) {
      this.#report.failed('LT_WARN_PROVIDER', `a span of the tracer provider failed in ${method}(), and requests go on`, error)
    }
  }
}

/**
 * The record of a request in SDK mode: our own server span, which is never sent. It copies its attributes, errors and status to the
 * provider's span.
 */
class SdkServerSpan extends ServerSpan {
  foreign = null // ForeignSpan

  get apiSpan () { return this.foreign.apiSpan }

  setAttribute (key, value) {
    this.foreign.setAttribute(key, value)
    return this
  }

  /** The options of the API's startSpan. */
  startOptions (attributes) {
    const options = { kind: SPAN_KIND_SERVER, attributes: { ...toObject(this.ownAttributes()), ...attributes } }
    // Otherwise the provider's own clock applies, as for its other spans.
    if (now() - this.start > LATE_MS) options.startTime = toHrTime(this.start)
    return options
  }

  finish (endedAt) {
    const { foreign, httpStatus, errorType, details, pipeline: { exceptionLog } } = this
    if (httpStatus !== 0) foreign.setAttribute('http.response.status_code', httpStatus)
    if (errorType !== '') foreign.setAttribute('error.type', errorType)
    if (details !== null) {
      const events = exceptionLog === null || exceptionLog.keepsEvents ? details.events : []
      for (const { list } of events) foreign.recordException(exceptionOf(list))
      if (details.statusCode === STATUS_ERROR) foreign.setStatus({ code: STATUS_ERROR })
    }
    foreign.end()
    super.finish(endedAt)
  }
}

/** A request that the provider did not sample. */
class SdkNonRecordingSpan extends ForeignSpan {
  isRecording () { return false }
}

/** The SERVER span that instrumentation-http creates and ends for this request. We add what only Fastify knows. */
class AdoptedServerSpan extends ForeignSpan {
  get isAdopted () { return true } // instrumentation-http measures the request itself if there is a MeterProvider

  #error = undefined // the last recorded error: Fastify and the application may both report it

  isRecording () { return true }

  fail (error) {
    if (error !== undefined && this.#error === error) return
    this.#error = error
    this.recordException(exceptionOf(exceptionAttributes(error)))
  }
}

class SdkInterop {
  #tracer

  constructor (tracer) {
    this.#tracer = tracer
  }

  /**
   * The active context when a request arrives. With our own storage, only a context of instrumentation-http is used: on Node 20 and 22,
   * any other may belong to the previous request on the connection.
   */
  base () {
    const active = this.#tracer.contextManager.active() ?? EMPTY_CONTEXT
    return foreignManager() !== undefined || isRecording(httpMetadata(active)) ? active : EMPTY_CONTEXT
  }

  /** Wraps a span so that our code can call it safely, see ForeignSpan. Our own spans do not throw and are returned unchanged. */
  guarded (span) {
    return attempt(() => span instanceof TraceContext) === true ? span : new ForeignSpan(span, readSpanContext(span), this.#tracer)
  }

  decideServer () { return UNDECIDED }

  /** Creates the record of a request, like SpanStarter.startServer. The application gets its `apiSpan`. */
  startServer (incoming, route, peer, url, base) {
    const { ownStarter, output } = this.#tracer
    const rpc = httpMetadata(base)
    // With `tracerProvider: false` we do not adopt spans of an SDK, only spans that we created through the API.
    const mayAdopt = isRecording(rpc) && (this.#tracer.settings.tracerProvider !== false || rpc.span instanceof RecordingSpan)
    if (mayAdopt) return this.#adopt(rpc, incoming, route, peer, url)
    if (output.sdkSpans === null) return ownStarter.startServer(incoming, route, peer, url, base)
    // `rpc` here is their non-recording span. As the parent, it makes their sampler decide the same again.
    const context = rpc === undefined ? parentContext(base, incoming) : base.setValue(SPAN_KEY, rpc.span)
    return this.#startBySdk(incoming, route, peer, url, context)
  }

  /** Starts a span that does not belong to a request itself. In SDK mode the provider creates it. */
  startChild (name, options, context, scope) {
    const { ownStarter, output, stats, pipeline } = this.#tracer
    if (output.sdkSpans === null) return ownStarter.startChild(name, options, context, scope)
    const { span, trace } = output.sdkSpans.start(name, this.#shown(options), context, scope)
    stats.started++
    if (trace !== undefined && this.guarded(span).isRecording() && (trace.flags & SAMPLED) !== 0) pipeline.accept(span)
    else pipeline.discard(span)
    return span
  }

  #shown (options) { return this.#tracer.omit?.stripOptions(options) ?? options }

  /** Whether instrumentation-http already has a span for the outgoing call in `context`. */
  hasClientSpan (context) {
    const span = context.getValue(SPAN_KEY)
    return span?.kind === SPAN_KIND_CLIENT && span.instrumentationScope?.name === HTTP_INSTRUMENTATION
  }

  #startBySdk ({ start, attributes }, route, peer, url, context) {
    const { output, pipeline, scope, stats } = this.#tracer
    const record = new SdkServerSpan(pipeline, start, route, peer, url)
    const { span, trace } = output.sdkSpans.start(route.name, this.#shown(record.startOptions(attributes)), context, scope)
    stats.started++
    const foreign = new ForeignSpan(span, trace, this.#tracer)
    if (trace === undefined || !foreign.isRecording()) {
      pipeline.discard(record)
      return new SdkNonRecordingSpan(span, trace, this.#tracer)
    }
    record.foreign = foreign
    copyIds(trace, record)
    return record
  }

  #adopt (rpc, { start, attributes }, route, peer, url) {
    const { span } = rpc
    const { pipeline } = this.#tracer
    if (span instanceof ChildSpan) span.request = span // children look for their request there, as with our own server spans
    const ours = toObject(new ServerSpan(pipeline, start, route, peer, url).ownAttributes())
    if (route.route !== '') rpc.route = route.route // instrumentation-http takes the route for its span name and metrics from here
    return new AdoptedServerSpan(span, readSpanContext(span), this.#tracer).updateName(route.name).setAttributes({ ...ours, ...attributes })
  }
}

/** The RPC metadata that instrumentation-http stores for frameworks, with the SERVER span of the request. */
function httpMetadata (context) {
  const rpc = context.getValue(RPC_KEY)
  return rpc !== null && typeof rpc === 'object' && rpc.type === 'http' && typeof rpc.span?.spanContext === 'function' ? rpc : undefined
}

function isRecording (rpc) {
  return rpc !== undefined && attempt(() => rpc.span.isRecording()) === true
}

function output ({ settings, stats, report }, foreign, suppress) {
  const { spanProcessors, tracerProvider, closeTimeoutMs } = settings
  if (!tracerProvider && spanProcessors !== null) {
    const sink = new ProcessorSink(spanProcessors, { stats, report, closeTimeoutMs, suppress })
    return { mode: 'processors', reason: `spans go to ${counted(spanProcessors.length, 'span processor')}`, sink }
  }
  const provider = tracerProvider || foreign
  const whose = tracerProvider ? 'the tracerProvider of the options' : `the registered ${foreign.constructor?.name ?? 'tracer provider'}`
  return { mode: 'sdk', reason: `spans are made by ${whose}`, sink: providerSink(provider, { stats, report, closeTimeoutMs }), sdkSpans: new SdkSpans(provider, report) }
}

function beside ({ settings: { spanProcessors, closeTimeoutMs }, stats, report }, output) {
  const { sink, sender, suppress, reason } = output
  output.useBeside(new BesideSink(sink, sender, spanProcessors, { stats, report, closeTimeoutMs, suppress }), `${reason} and ${counted(spanProcessors.length, 'span processor')}`)
}

module.exports = { output, beside, interop: (tracer) => new SdkInterop(tracer) }
