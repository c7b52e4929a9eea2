'use strict'

// The composition root: the only file that sees all stages. Options in, spans out.

const { SAMPLED, PARENT_NONE, PARENT_LOCAL, PARENT_REMOTE } = require('./context/trace-context')
const { newSpanId } = require('./context/ids')
const { parentIn } = require('./context/parent')
const { processWide } = require('./runtime/process-state')
const { NOTHING } = require('./context/suppressed')
const { SPAN_KEY, SUPPRESS_KEY } = require('./context/keys')
const { ownContextManager } = require('./context/request-context')
const store = require('./context/async-storage')
const clock = require('./span/clock')
const { ServerSpan, SPAN_KIND_SERVER } = require('./span/server-span')
const { NO_SPAN, unsampledIn, carryOn } = require('./span/non-recording-span')
const { ChildSpan } = require('./span/child-span')
const { runInSpan } = require('./span/run-in-span')
const { Starting } = require('./span/span-starter')
const { toObject } = require('./span/attributes')
const { samplerOf, RateLimit, DROP } = require('./span/sampler')
const { Pipeline } = require('./export/pipeline')
const { Resource } = require('./export/resource')
const { Stats } = require('./export/stats')
const { setImmediate } = require('./runtime/timers')
const { ApiTracerProvider, activeManager, foreignManager, propagatorFor } = require('./otel/api-globals')
const { inject } = require('./otel/injection')
const { wayOut } = require('./export-mode')

// A TCP socket takes two turns, TLS over it two more.
const CLOSE_TURNS_MAX = 8

class Tracer {
  constructor (settings, report, scope) {
    this.settings = settings
    this.report = report
    this.scope = scope
    this.stats = new Stats()
    this.sampler = samplerOf(settings.sampler, report)
    this.rateLimit = settings.maxSampledPerSecond === Infinity ? null : new RateLimit(settings.maxSampledPerSecond)
    this.keep = settings.disabled ? null : settings.keep
    this.contextManager = ownContextManager
    this.enter = store.enter
    this.enterInjected = store.enterInjected
    this.enterQueued = store.enterQueued
    this.propagator = null // somebody else's; null for our own W3C code
    this.company = null // null while nobody else is concerned with our requests: the usual case
    this.mode = 'undecided'
    this.way = null
    this.pipeline = null
    this.outbound = null // what outbound/index knows of this app
    this.starting = null
    this.isClosed = false
    /** Whether ids and flags alone decide about a request, and nobody wants to see it start. */
    this.isPlain = true
    this.tracerProvider = new ApiTracerProvider(() => this, activeManager)
  }

  /** Decides how spans leave, once: in onReady, or at the first span before it. */
  open () {
    if (this.pipeline !== null) return
    const { settings, report } = this
    clock.anchor()
    this.way = wayOut(this)
    this.mode = this.way.mode
    this.pipeline = new Pipeline({
      limits: settings.limits,
      resource: new Resource(settings.resource.attributes),
      scope: this.scope,
      stats: this.stats,
      sink: this.way.sink
    })
    if (this.way.provided !== null && this.keep !== null) {
      this.keep = null
      report.once('LT_WARN_KEEP', 'keep has no effect: spans are made by a tracer provider, whose sampler decides')
    }
    this.starting = new Starting(this)
    this.isPlain = !this.sampler.isCustom && this.keep === null && !this.pipeline.wantsStart
    this.meet()
    report.info(`light-trace in mode ${this.mode}: ${this.way.reason}`)
  }

  /** Finds out who else is there. Whoever holds the API's context slot decides how a request is entered. */
  meet () {
    this.propagator = propagatorFor(this.settings, this.report)
    if (foreignManager() !== undefined) {
      this.contextManager = activeManager
      // And in our own storage: an instrumentation that runs the handler in a context which it has made before
      // us would take the request from `current()`.
      this.enter = (context, done) => activeManager.with(context, () => store.enter(context, done))
      this.enterInjected = (context, done) => activeManager.with(context, () => store.enterInjected(context, done))
      this.keepCompany()
    }
    if (this.propagator !== null || (this.way !== null && this.way.provided !== null)) this.keepCompany()
  }

  keepCompany () {
    if (this.company !== null) return
    const { Company } = require('./otel/sdk-interop')
    this.company = new Company(this)
  }

  // HOT, once per request. Budget: 1 object. Proof: bench/micro/server-span.bench.js
  startServer (incoming, parentKind, start, route, peer, url) {
    if (!this.isPlain || (route.sampler !== null && route.sampler.isCustom)) {
      return this.starting.server(incoming, parentKind, start, route, peer, url, NOTHING)
    }
    const { stats } = this
    stats.started++
    if (this.decide(incoming, parentKind, start, route) === DROP) return this.startUnsampled(incoming)
    const span = new ServerSpan(this.pipeline, start, route, peer, url)
    span.t0 = incoming.t0
    span.t1 = incoming.t1
    span.t2 = incoming.t2
    span.t3 = incoming.t3
    span.flags = incoming.flags | SAMPLED
    span.tracestate = incoming.tracestate
    span.p0 = incoming.p0
    span.p1 = incoming.p1
    span.parentKind = parentKind
    newSpanId(span)
    return span
  }

  decide (incoming, parentKind, start, route) {
    const sampler = route.sampler === null ? this.sampler : route.sampler
    const decision = sampler.decide(incoming, parentKind !== PARENT_NONE)
    if (decision !== DROP && this.rateLimit !== null && !this.rateLimit.take(start)) return DROP
    return decision
  }

  /** Carries the ids on and counts as ended at once: nothing will be recorded. */
  startUnsampled (incoming) {
    const { stats } = this
    stats.ended++
    stats.unsampled++
    const span = unsampledIn(incoming)
    newSpanId(span)
    return span
  }

  /**
   * A span under the one that is active in `context`, else the root of a new trace.
   * @param {string} name
   * @param {object | undefined} options the API's SpanOptions
   * @param {Context | undefined} context
   * @param {Scope} [scope]
   */
  startSpan (name, options, context = NOTHING, scope = this.scope) {
    if (this.pipeline === null) {
      if (this.isClosed) return carryOn(parentIn(context))
      this.open()
    }
    if (context.getValue(SUPPRESS_KEY) === true) return NO_SPAN
    if (this.settings.disabled) return carryOn(parentIn(context))
    if (options?.kind === SPAN_KIND_SERVER) this.meetServer()
    if (this.way.provided !== null) return this.company.startSpan(String(name), options, context, scope)
    return this.starting.child(String(name), options, context, scope)
  }

  /** instrumentation-http, most likely, which has come before Fastify: requests must ask from now on. */
  meetServer () {
    try {
      for (const app of processWide.apps) app.keepCompany()
    } catch (error) { // a file that cannot be read just now is no reason to throw into their code; the next one asks again
      this.report.once('LT_WARN_BUG', `Bug: a SERVER span was not noticed: ${error?.stack}`)
    }
  }

  /**
   * A leaf span for a call that the running code makes: under the active span, or null where there is none.
   * The row says what the span says, and is asked only when it records.
   * @param {{ kind, name? (call): string, facts? (call): CallFacts, target? (call): string, attributes (call): Array | null, startedAt? (call): number }} row
   *   with `facts` these have the name, `target` goes behind their origin, and `attributes` has what they have not
   * @param {object} call the library's own object
   * @param {Context} context
   */
  // HOT, once per outgoing call. Budget: 1 object.
  startCall (row, call, context) {
    const parent = parentIn(context)
    if (parent === undefined) return null
    if (this.company !== null && this.company.hasClientSpan(context)) return null
    if (!this.decidesByFlags || parent.remote === true) return this.startByOptions(row, call, context)
    this.stats.started++
    if ((parent.flags & SAMPLED) === 0) return this.startUnsampled(parent)
    const start = row.startedAt === undefined ? clock.now() : row.startedAt(call)
    const facts = row.facts === undefined ? null : row.facts(call)
    const span = new ChildSpan(this.pipeline, start, facts === null ? row.name(call) : facts.name, row.kind, this.scope)
    span.descend(parent, parent.remote === true ? PARENT_REMOTE : PARENT_LOCAL)
    span.describe(facts, facts === null || facts.origin === '' ? '' : row.target(call), row.attributes(call))
    this.pipeline.started(span, context)
    return span
  }

  /** The same in the API's terms, where a Sampler, `keep` or a provider has a say. */
  startByOptions (row, call, context) {
    const facts = row.facts === undefined ? null : row.facts(call)
    const own = row.attributes(call) ?? []
    const attributes = facts === null ? own : facts.allAttributes(facts.origin === '' ? '' : row.target(call), own)
    const options = { kind: row.kind, attributes: toObject(attributes) }
    if (row.startedAt !== undefined) options.startTime = row.startedAt(call)
    return this.startSpan(facts === null ? row.name(call) : facts.name, options, context)
  }

  /** Whether a child is recorded if its parent is, which is so unless a Sampler, `keep` or a provider has a say. */
  get decidesByFlags () {
    return this.pipeline !== null && !this.sampler.isCustom && this.keep === null && this.way.provided === null
  }

  /** See RequestContext.withSpan. */
  withSpan (requestContext, name, options, fn) {
    const context = requestContext.here()
    const span = this.startSpan(name, options, context)
    return runInSpan(span, () => this.contextManager.with(context.setValue(SPAN_KEY, span), fn, undefined, span))
  }

  /** See RequestContext.inject. */
  inject (requestContext, headers) {
    return inject(this, requestContext, headers)
  }

  /** Sends what there is. Never rejects. */
  async flush (options) {
    if (this.pipeline === null) return
    await this.way.flush(options)
  }

  /**
   * When the server has closed, its last responses close with the handles of their sockets, some turns of
   * the event loop later: their spans belong to what is flushed. Spans that nobody ends are not waited for.
   */
  async drained () {
    for (let turn = 0; turn < CLOSE_TURNS_MAX && this.stats.ended < this.stats.started; turn++) {
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  async close () {
    this.isClosed = true
    if (this.pipeline === null) return
    this.pipeline.closed = true
    await this.way.close()
  }

  snapshot () {
    const { way, stats, settings } = this
    return stats.snapshot(this.mode, way === null ? 0 : way.queued, way === null ? 0 : way.inFlight, {
      bytes: way === null ? 0 : way.bufferBytes,
      maxBytes: settings.buffer.maxBytes
    })
  }
}

module.exports = { Tracer }
