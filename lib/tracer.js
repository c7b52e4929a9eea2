'use strict'

// The composition root: the only file that knows all stages. Options in, spans out.

const { SAMPLED, PARENT_LOCAL, parentIn, SPAN_KEY, SUPPRESS_KEY, REQUEST_KEY } = require('./context/trace-context.js')
const { processState } = require('./runtime/process-state.js')
const { EMPTY_CONTEXT, ownContextManager, SUPPRESSED } = require('./context/request-context.js')
const asyncStorage = require('./context/async-storage.js')
const clock = require('./runtime/timers.js')
const { SPAN_KIND_SERVER } = require('./span/server-span.js')
const { NonRecordingSpan, INVALID_SPAN, wrapSpanContext, remoteSpanOf, ChildSpan, STAGE, runInSpan, runUnrecorded } = require('./span/child-span.js')
const { SpanStarter, readOptions, NAME_LENGTH_MAX } = require('./span/span-starter.js')
const { toObject, read } = require('./span/attributes.js')
const { KIND_INTERNAL, KIND_CLIENT } = require('./outbound/calls.js')
const { QueryRedactor } = require('./http/redact.js')
const { samplerOf, RateLimit } = require('./sampling/sampler.js')
const { Pipeline, LoggingPipeline, Stats } = require('./export/pipeline.js')
const { ApiTracerProvider, activeManager, foreignManager, propagatorFor, foreignProvider, HTTP_INSTRUMENTATION } = require('./otel/api-globals.js')
const { inject } = require('./otel/propagators.js')
const { ExportRequestPrefix } = require('./otlp/request.js')
const { SpanEncoder } = require('./otlp/span-encoder.js')
const { Exporter } = require('./export/exporter.js')
const { attempt } = require('./runtime/report.js')
const features = require('./features.js')

// A TCP socket takes two turns of the event loop, and TLS takes two more.
const CLOSE_TURNS_MAX = 8

class Tracer {
  #late = new Set() // the kinds of late data that were reported after the close

  constructor (settings, report, scope) {
    this.settings = settings
    /** @type {Report} */ this.report = report
    this.scope = scope
    this.stats = new Stats()
    this.sampler = samplerOf(settings.sampler, report)
    this.slow = { ...settings.slow } // `configFile` may change it, see RouteInfo
    this.ignore = settings.ignore // which requests get no span, or null
    this.rateLimit = settings.maxSampledPerSecond === Infinity ? null : new RateLimit(settings.maxSampledPerSecond)
    this.keep = null // decides about ended requests and their children
    this.ownStarter = null // starts our own spans
    this.contextManager = ownContextManager
    this.enter = asyncStorage.call
    this.propagator = null // a foreign propagator; null for our own W3C code
    this.sdkInterop = null // null unless an SDK takes part in our requests
    this.mode = 'undecided'
    this.output = null
    this.pipeline = null
    this.redactor = new QueryRedactor(settings.redactQuery, report)
    this.outbound = null // the state of outbound/index for this app
    this.starter = null // `ownStarter`, or `sdkInterop` if an SDK takes part
    this.isClosed = false
    this.repeats = null // tracks repeated calls and folds them
    this.environmentParent = settings.environmentTrace === null ? null : remoteSpanOf(settings.environmentTrace)
    this.invocations = null // an AsyncLocalStorage with attributes for the requests that run in it
    this.tracerProvider = new ApiTracerProvider(() => this, activeManager)
    this.observer = null // measures requests and calls
    this.omit = null // which attributes must not leave the process
    this.exceptionLog = null // receives exceptions instead of, or in addition to, their spans
    this.parts = new Map() // the parts of the enabled features, see features.js
    this.attachFeatures()
  }

  /** @param {object} [app] the application, once it has this tracer */
  attachFeatures (app) {
    if (!this.settings.disabled) features.attach(this, app)
  }

  /** Decides once how spans are exported: in onReady, or at an earlier first span. */
  open () {
    if (this.pipeline !== null) return
    const { settings, report } = this
    clock.anchor()
    this.output = exportMode(this)
    this.mode = this.output.mode
    for (const part of this.parts.values()) part.decided?.()
    this.pipeline = this.exceptionLog === null ? new Pipeline(this) : new LoggingPipeline(this, this.exceptionLog)
    this.ownStarter = new SpanStarter(this)
    this.starter = this.sdkInterop ?? this.ownStarter
    this.useGlobals()
    for (const part of this.parts.values()) part.open?.()
    // Logged as `info` if the code does not show the reason: a variable disables tracing, or an SDK is registered globally.
    const isByOptions = this.mode === 'sdk' ? Boolean(settings.tracerProvider) : settings.disabledBy !== 'OTEL_SDK_DISABLED'
    report.info(`light-trace in mode ${this.mode}: ${this.output.reason}`, isByOptions ? 'debug' : 'info')
  }

  /** Finds other packages that are registered with the API. If one registered a context manager, requests are entered through it. */
  useGlobals () {
    this.propagator = propagatorFor(this.settings, this.report)
    if (foreignManager() !== undefined) {
      this.contextManager = activeManager
      processState.openApps.addForeignManager(activeManager)
      // Also enter our own storage, because an instrumentation that runs the handler in its own context would hide the request.
      this.enter = (context, done) => activeManager.with(context, () => asyncStorage.call(context, done))
      this.enableInterop()
    }
    if (this.output !== null && this.output.sdkSpans !== null) this.enableInterop()
  }

  enableInterop () {
    if (this.sdkInterop !== null) return
    this.sdkInterop = features.interopOf(this)
    if (this.pipeline !== null && this.sdkInterop !== null) this.starter = this.sdkInterop
  }

  /** Whether ids and flags are enough to decide about a request, and no processor is called at its start. */
  get decidesByIds () {
    return !this.sampler.isCustom && this.keep === null && this.pipeline !== null && !this.pipeline.wantsStart
  }

  /** A child of the active span in `context`, or the root of a new trace. `given` are the API's SpanOptions. @param {Context} [context] */
  startSpan (name, given, context = EMPTY_CONTEXT, scope = this.scope) {
    if (this.pipeline === null) {
      if (this.isClosed) return wrapSpanContext(parentIn(context))
      this.open()
    }
    if (context.getValue(SUPPRESS_KEY) === true) return INVALID_SPAN
    if (this.settings.disabled) return wrapSpanContext(parentIn(context))
    const options = readOptions(given)
    if (options !== undefined && isOfHttpInstrumentation(options, context, scope)) this.onHttpInstrumentation()
    const parents = this.environmentParent === null ? context : this.underEnvironment(context, options)
    return this.starter.startChild(typeof name === 'string' ? name : textOf(name), options, parents, scope)
  }

  /** The context in which the span of TRACEPARENT is the parent, for work that has no other parent: a job, a command line. */
  underEnvironment (context, options) {
    const isOwn = options?.root === true || parentIn(context) !== undefined
    return isOwn ? context : context.setValue(SPAN_KEY, this.environmentParent)
  }

  /** From now on, requests and calls check whether instrumentation-http has a span for them. */
  onHttpInstrumentation () {
    // If this throws, for example because a file cannot be read, the next span tries again.
    this.report.attempt('LT_WARN_BUG', 'a span of instrumentation-http was not noticed', () => {
      for (const tracer of processState.openApps.all()) tracer.enableInterop()
    })
  }

  /**
   * A leaf span for an outgoing call, under the active span. Null if no span is active. The functions of `callDescriptor` are called only
   * if the span is recorded or measured.
   * @param {{ kind, name? (call): string, info? (call): CallInfo, target? (call, info): string, attributes (call): Array | null, startedAt? (call): number }} callDescriptor
   *   if it has `info`, the CallInfo has the name, `target` is appended to its origin, and `attributes` returns only the other attributes
   * @param {object} call the library's own object
   */
  // HOT, once per outgoing call. Budget: 1 object.
  startCall (callDescriptor, call, context, folded = null, isFold = false) {
    const parent = parentIn(context)
    if (parent === undefined) return null
    if (folded === null && this.sdkInterop !== null && this.sdkInterop.hasClientSpan(context)) return null
    const measures = !isFold && this.observer !== null && callDescriptor.kind === KIND_CLIENT
    const isSampled = (parent.flags & SAMPLED) !== 0
    // A child is recorded if its parent is, unless a Sampler, `keep` or a provider decides.
    const isByFlags = this.pipeline !== null && !this.sampler.isCustom && this.keep === null && this.output.sdkSpans === null && parent.remote !== true
    if (isByFlags && !isSampled && !measures) return this.ownStarter.startUnsampled(parent)
    const given = folded !== null ? folded.start : startOf(callDescriptor, call)
    const start = given ?? clock.now()
    const info = typeof callDescriptor.info === 'function' ? callDescriptor.info(call) : null
    // Without an info, the span is a stage, which is not a call, or has no shape.
    const shape = info === null ? (callDescriptor.kind === KIND_INTERNAL ? STAGE : null) : folded === null ? info.shape : null
    const repeats = shape === null || shape === STAGE ? null : this.repeats
    // Not folded if a Sampler of the SDK decides, because it must be asked about each call.
    if (repeats !== null && repeats.foldAfter !== 0 && (isByFlags ? isSampled : this.output.sdkSpans === null && !this.sampler.isCustom)) {
      const one = repeats.fold(parent, callDescriptor, call, context, start, info)
      if (one !== null) return one
    }
    if (!isByFlags) {
      const { span, list } = this.startByOptions(callDescriptor, call, context, info, given)
      if (span instanceof ChildSpan) {
        span.callShape = shape
        if (repeats !== null) repeats.remember(parent, span)
      }
      return measures ? this.observer.calls.measured(span, start, list) : span
    }
    this.stats.started++
    const span = new ChildSpan(this.pipeline, start, info === null ? callDescriptor.name(call) : info.name, callDescriptor.kind, this.scope)
    span.callShape = shape // set here, because a store into a new object is free
    if (measures) span.observer = this.observer.calls
    span.inheritFrom(parent, PARENT_LOCAL)
    const hasTarget = isSampled && info !== null && info.origin !== '' // only exported spans need it, metrics do not
    span.setCallInfo(info, hasTarget ? callDescriptor.target(call, info) : '', callDescriptor.attributes(call))
    if (repeats !== null) repeats.remember(parent, span)
    if (isSampled) this.pipeline.started(span, context)
    return span
  }

  /** Starts the span through `startSpan`, for when a Sampler, `keep` or a provider decides. Also returns the attributes for metrics. */
  startByOptions (callDescriptor, call, context, info, startTime) {
    const own = callDescriptor.attributes(call) ?? []
    const attributes = info === null ? own : info.allAttributes(info.origin === '' ? '' : callDescriptor.target(call, info), own)
    const options = { kind: callDescriptor.kind, attributes: toObject(attributes), startTime }
    const span = this.guarded(this.startSpan(info === null ? callDescriptor.name(call) : info.name, options, context))
    return { span, list: info === null ? own : [...info.attributeList, ...own] }
  }

  withSpan (requestContext, name, options, fn) {
    const context = requestContext.here()
    const parent = this.plainParentIn(context)
    if (parent !== null && (parent.flags & SAMPLED) === 0 && parent instanceof NonRecordingSpan && read(options, 'root') !== true) {
      // No step below an unsampled span is sampled, so the parent is used for the step. This saves the new context, which is most of the
      // cost of `withSpan`.
      this.stats.started++
      this.stats.unsampled++
      return runUnrecorded(parent, this.contextManager, context, fn)
    }
    const isPlain = parent !== null && (parent.flags & SAMPLED) !== 0 && options === undefined && typeof name === 'string' && name.length <= NAME_LENGTH_MAX
    const span = isPlain ? this.ownStarter.startUnder(parent, name, this.scope) : this.startSpan(name, options, context)
    return runInSpan(this.guarded(span), this.contextManager, context.setValue(SPAN_KEY, span), fn, span)
  }

  /** `span` in a form that our code can call safely. In SDK mode the span is not ours and may throw. */
  guarded (span) { return this.sdkInterop === null ? span : this.sdkInterop.guarded(span) }

  /** The active span of `context` if it alone decides whether its children are sampled, else null. */
  plainParentIn (context) {
    if (this.sdkInterop !== null || this.settings.disabled || !this.decidesByIds || context.getValue(SUPPRESS_KEY) === true) return null
    const parent = parentIn(context)
    return parent === undefined || parent.remote ? null : parent
  }

  inject (requestContext, headers) { return inject(this, requestContext, headers) }

  /** Opens the tracer if log lines are waiting. The application may not be ready yet, or never become ready because its start fails. */
  openIfAwaited () {
    if (this.pipeline === null && !this.isClosed && [...this.parts.values()].some(({ isWaiting }) => isWaiting)) this.open()
  }

  /** Sends everything that is buffered. Never rejects. */
  async flush (options) {
    this.openIfAwaited()
    for (const part of this.parts.values()) part.settle?.()
    await this.ofAll((end) => end.flush?.(options))
  }

  /** Waits a few turns of the event loop for the last responses. They close with their sockets, after the server. */
  async drained () {
    // With metrics it always waits all turns: an unsampled request counts as ended at once, but is measured when it ends.
    const isDrained = () => this.observer === null && this.stats.ended >= this.stats.started
    for (let turn = 0; turn < CLOSE_TURNS_MAX && !isDrained(); turn++) {
      await new Promise((resolve) => clock.setImmediate(resolve))
    }
  }

  async close () {
    this.openIfAwaited()
    this.isClosed = true
    for (const part of this.parts.values()) part.settle?.()
    if (this.pipeline !== null) {
      this.pipeline.endOpen()
      this.pipeline.onLate = () => this.lostAfterClose(this.stats, 'span ended')
    }
    for (const part of this.parts.values()) part.stop?.()
    await this.ofAll((end) => end.close?.())
  }

  /** Calls `fn` with all parts and the output, and waits for all. The parts come first, because they may still have spans to send. */
  async ofAll (fn) { await Promise.all([...this.parts.values(), ...this.output === null ? [] : [this.output]].map(fn)) }

  /** Counts data that came too late to be sent, and warns once for each kind. */
  lostAfterClose (stats, what) {
    stats.drop('after_shutdown', 1)
    if (this.#late.has(what)) return
    this.#late.add(what)
    suppress(() => this.report.warn('LT_WARN_LOSS', `a ${what} after the application closed and was dropped; further ones are only counted (stats(): after_shutdown)`, what))
  }

  snapshot () {
    const { output, stats, settings, parts } = this
    const { queued = 0, inFlight = 0, bufferBytes: bytes = 0 } = output?.exporter ?? {}
    const spans = stats.snapshot(this.mode, queued, inFlight, { bytes, maxBytes: settings.buffer.maxBytes })
    return Object.assign(spans, ...Array.from(parts.values(), (part) => part.stats?.()))
  }
}

/** The start time of a call that is reported later. Undefined means now, by the provider's own clock. */
function startOf (callDescriptor, call) {
  return typeof callDescriptor.startedAt === 'function' ? callDescriptor.startedAt(call) : undefined
}

/** Whether the span to start belongs to instrumentation-http, which runs before Fastify and before our diagnostics channels. */
function isOfHttpInstrumentation ({ kind }, context, scope) {
  if (kind === KIND_CLIENT) return scope.name === HTTP_INSTRUMENTATION
  // The scope may have any name. A SERVER span inside a request belongs to another library: GraphQL operations have this kind.
  return kind === SPAN_KIND_SERVER && context.getValue(REQUEST_KEY) === undefined
}

/** A span name that is not a string, as text. */
function textOf (name) { return attempt(() => String(name)) ?? typeof name }

// Where spans go, decided once per tracer in the order of decision D6 (docs/decisions.md): to a feature, else to a collector or nowhere.

function exportMode (tracer) {
  const mode = ownMode(tracer)
  features.besideOf(tracer, mode)
  return mode
}

function ownMode (tracer) {
  const { settings, report, stats } = tracer
  const { exporter, tracerProvider } = settings
  if (settings.disabled) return toNone('disabled', stats, settings.disabledBy)
  const foreign = exporter.explicit || tracerProvider === false ? null : foreignProvider()
  const found = features.outputOf(tracer, foreign, suppress)
  if (found !== null) return new ExportMode(found.mode, found.reason, found.sink, null, found.sdkSpans)
  if (exporter.kind === 'none') return toNone('none', stats, 'spans go nowhere')
  return toCollector(settings, stats, report)
}

// Spans are created and counted, but not exported.
function toNone (mode, stats, reason) {
  const nothing = async () => {}
  return new ExportMode(mode, reason, { accept: () => stats.drop('exporter_none', 1), flush: nothing, close: nothing })
}

function toCollector ({ exporter, buffer, batch, closeTimeoutMs, logLevel, resource }, stats, report) {
  // Without the user's functions, because spans that wait for a collector must not keep the application in memory.
  const settings = { exporter, buffer, batch, closeTimeoutMs, logLevel }
  const otlp = new Exporter({ settings, prefix: new ExportRequestPrefix(resource), stats, report, suppress, areThinned: true })
  return new ExportMode('native', `spans go to ${exporter.printableUrl}`, new SpanEncoder(otlp), otlp)
}

// Runs `fn` outside of any request's context, with tracing off.
function suppress (fn) {
  return asyncStorage.run(SUPPRESSED, suppressThere, undefined, fn)
}

// Also suppresses in a context manager that is registered with the API, because timers keep the context in which they were created.
function suppressThere (fn) {
  const manager = foreignManager()
  return manager === undefined ? fn() : manager.with(SUPPRESSED, fn)
}

/** The chosen export: a sink that receives ended spans, and the exporter behind it if they go to a collector. */
class ExportMode {
  constructor (mode, reason, sink, exporter = null, sdkSpans = null) {
    this.mode = mode
    this.reason = reason
    this.sink = sink
    this.exporter = exporter
    this.sender = exporter ?? sink // the one to flush and close
    this.sdkSpans = sdkSpans // creates the spans if an SDK's provider does, else null
    this.suppress = suppress
    this.isBeside = false // whether span processors receive the spans too
  }

  /** The memory budget of waiting data, shared with log records. Undefined if there is no exporter. */
  get budget () { return this.exporter?.budget }

  /** The connection, for an exporter to another path of the same server. Null if there is no connection, or the server differs. */
  shareConnection (exporter) { return this.exporter?.shareConnection(exporter) ?? null }

  /** Also passes spans to processors. The given `sink` calls the present sink, and is flushed and closed instead of it. */
  useBeside (sink, reason) {
    this.isBeside = true
    this.sink = this.sender = sink
    this.reason = reason
  }

  flush (options) { return this.sender.flush(options) }
  close () { return this.sender.close() }
}

module.exports = { Tracer, exportMode }
