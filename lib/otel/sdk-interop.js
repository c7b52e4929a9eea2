'use strict'

// Requests where somebody else is concerned too: their TracerProvider makes the spans (SDK mode), their
// context manager holds the API's slot, or instrumentation-http has started a SERVER span before Fastify
// had the request. A process that has nothing but light-trace never comes here.

const { EMPTY_CONTEXT } = require('../context/suppressed')
const { SPAN_KEY, SUPPRESS_KEY, RPC_KEY } = require('../context/keys')
const { SAMPLED } = require('../context/trace-context')
const { readSpanContext } = require('../context/parent')
const { parentContext, UNDECIDED } = require('../span/span-starter')
const { RecordingSpan } = require('../span/recording-span')
const { ServerSpan } = require('../span/server-span')
const { SdkServerSpan, SdkNonRecordingSpan, AdoptedServerSpan } = require('../span/sdk-spans')
const { toObject } = require('../span/attributes')
const { foreignManager } = require('./api-globals')
const { headersGetter } = require('./propagators')

const SPAN_KIND_CLIENT = 2
const HTTP_INSTRUMENTATION = '@opentelemetry/instrumentation-http'

class SdkInterop {
  #tracer

  constructor (tracer) {
    this.#tracer = tracer
  }

  /**
   * The context that a request comes in with. Where the storage is ours only what instrumentation-http has
   * put there counts: on Node 20 and 22 anything else may be the connection's previous request.
   */
  base () {
    const active = this.#tracer.contextManager.active()
    if (active === undefined || active === null) return EMPTY_CONTEXT
    return foreignManager() !== undefined || isRecording(httpMetadata(active)) ? active : EMPTY_CONTEXT
  }

  /**
   * What a propagator that is not ours reads, on top of `base`: the caller's span, and values of its own such as B3's
   * debug flag. Undefined where it fails.
   */
  extract (base, headers) {
    try {
      // What is active already is not the caller.
      return this.#tracer.propagator.extract(base.deleteValue(SPAN_KEY), headers, headersGetter)
    } catch (error) {
      this.#tracer.report.once('LT_WARN_PROPAGATOR', `the propagator failed: ${error?.message}`)
      return undefined
    }
  }

  isSuppressed (base) {
    return base.getValue(SUPPRESS_KEY) === true
  }

  decideServer () {
    return UNDECIDED
  }

  /** The record of a request, as SpanStarter.startServer makes it; its `apiSpan` is what the application sees. */
  startServer (incoming, route, peer, url, base) {
    const { ownStarter, output } = this.#tracer
    const rpc = httpMetadata(base)
    if (isRecording(rpc) && this.#mayAdopt(rpc)) return this.#adopt(rpc, incoming, route, peer, url)
    if (output.sdkSpans === null) return ownStarter.startServer(incoming, route, peer, url, base)
    // Theirs, not recording: their sampler has decided once, and decides the same under that parent.
    const context = rpc === undefined ? parentContext(base, incoming) : base.setValue(SPAN_KEY, rpc.span)
    return this.#startBySdk(incoming, route, peer, url, context)
  }

  /** A span that is not a request's. In SDK mode it is the provider's from its start on, and counted so. */
  startChild (name, options, context, scope) {
    const { ownStarter, output, stats, pipeline } = this.#tracer
    if (output.sdkSpans === null) return ownStarter.startChild(name, options, context, scope)
    const { span, trace } = output.sdkSpans.start(name, options, context, scope)
    stats.started++
    if (trace !== undefined && span.isRecording() && (trace.flags & SAMPLED) !== 0) pipeline.accept(span)
    else pipeline.discard(span)
    return span
  }

  /** Whether instrumentation-http has a span for the outgoing call that runs in `context`. */
  hasClientSpan (context) {
    const span = context.getValue(SPAN_KEY)
    return span?.kind === SPAN_KIND_CLIENT && span.instrumentationScope?.name === HTTP_INSTRUMENTATION
  }

  #startBySdk ({ start, attributes }, route, peer, url, context) {
    const { output, pipeline, scope, stats } = this.#tracer
    const record = new SdkServerSpan(pipeline, start, route, peer, url)
    const { span, trace } = output.sdkSpans.start(route.name, record.startOptions(attributes), context, scope)
    stats.started++
    if (trace !== undefined && span.isRecording()) return record.useSdkSpan(span, trace)
    pipeline.discard(record)
    return new SdkNonRecordingSpan(span, trace)
  }

  // With `tracerProvider: false` the spans of an SDK are another matter; those that came through the API to us are ours.
  #mayAdopt (rpc) {
    return this.#tracer.settings.tracerProvider !== false || rpc.span instanceof RecordingSpan
  }

  #adopt (rpc, { start, attributes }, route, peer, url) {
    const record = new AdoptedServerSpan(rpc.span, readSpanContext(rpc.span))
    record.enrich(rpc, route, { ...toObject(new ServerSpan(this.#tracer.pipeline, start, route, peer, url).ownAttributes()), ...attributes })
    return record
  }
}

/** What instrumentation-http leaves for frameworks: the request's own SERVER span. */
function httpMetadata (context) {
  const rpc = context.getValue(RPC_KEY)
  return rpc !== null && typeof rpc === 'object' && rpc.type === 'http' && typeof rpc.span?.spanContext === 'function' ? rpc : undefined
}

function isRecording (rpc) {
  try {
    return rpc !== undefined && rpc.span.isRecording() === true
  } catch {
    return false
  }
}

module.exports = { SdkInterop }
