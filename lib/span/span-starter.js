'use strict'

// How a span is started: who is its parent, does the sampler take it, is it recorded all the same.
//
// A tracer has one starter, chosen when it opens. FastStarter is the usual one: ids and flags decide alone. SpanStarter
// is for all others: a Sampler of the SDK's, `keep`, and processors that see spans start. Where an SDK has a say,
// lib/otel/sdk-interop.js stands before them, with the same two methods: startServer and startChild.

const { TraceContext, copyTrace, SAMPLED, RANDOM, PARENT_NONE, PARENT_LOCAL, PARENT_REMOTE } = require('../context/trace-context')
const { newTraceId, newSpanId } = require('../context/ids')
const { EMPTY_CONTEXT } = require('../context/suppressed')
const { parentIn } = require('../context/parent')
const { SPAN_KEY } = require('../context/keys')
const { ServerSpan, SPAN_KIND_SERVER } = require('./server-span')
const { ChildSpan } = require('./child-span')
const { RemoteSpan, unsampledIn } = require('./non-recording-span')
const { applyDecision, DROP, RECORD_AND_SAMPLE } = require('./sampler')
const { toObject, cut } = require('./attributes')
const clock = require('./clock')

// A name of megabytes would cost the span: it fits no chunk.
const NAME_LENGTH_MAX = 16384

const NO_LINKS = Object.freeze([])

// Of a request: somebody has to be asked with its span.
const UNDECIDED = -1

class SpanStarter {
  /** @param {{ sampler, rateLimit, keep, pipeline, stats }} tracer */
  constructor ({ sampler, rateLimit, keep, pipeline, stats }) {
    this.sampler = sampler
    this.rateLimit = rateLimit
    this.keep = keep
    this.keepSpans = keep === null ? null : require('./tail-sampled-server-span')
    this.pipeline = pipeline
    this.stats = stats
  }

  /** DROP or RECORD_AND_SAMPLE where ids and flags alone say it of a request, before anything is made for it; else UNDECIDED. */
  decideServer () {
    return UNDECIDED
  }

  /**
   * The span of a request of which nothing is decided.
   * @param {IncomingContext} incoming
   * @param {RouteInfo} route
   * @param {PeerInfo} peer
   * @param {string} url the request target as it came
   * @param {Context | null} base what was active before, without this request's parent
   */
  startServer (incoming, route, peer, url, base) {
    const { start, parentKind } = incoming
    this.stats.started++
    const span = this.keep === null
      ? new ServerSpan(this.pipeline, start, route, peer, url)
      : new this.keepSpans.KeepServerSpan(this.pipeline, start, route, peer, url, this.keep)
    takeTrace(span, incoming)
    newSpanId(span)
    const context = parentContext(base ?? EMPTY_CONTEXT, incoming)
    const sampler = route.sampler === null ? this.sampler : route.sampler
    const result = sampler.isCustom
      ? sampler.ask(context, span, route.name, SPAN_KIND_SERVER, { ...toObject(span.ownAttributes()), ...incoming.attributes }, NO_LINKS)
      : plain(sampler.decide(span, parentKind !== PARENT_NONE, start, route))
    applyDecision(span, result)
    if (result.decision === RECORD_AND_SAMPLE && this.rateLimit !== null) this.#limit(span, result)
    if (result.decision === RECORD_AND_SAMPLE) return this.#begin(span, result, context, incoming.attributes)
    if (this.keep !== null) return this.#begin(this.keepSpans.TailSampledServerSpan.from(span, this.keep), result, context, incoming.attributes)
    return result.decision === DROP ? this.#unsampledAs(span) : this.#begin(span, result, context, incoming.attributes)
  }

  /** A span under the one that is active in `context`, else the root of a new trace. */
  startChild (name, given, context = EMPTY_CONTEXT, scope) {
    const options = readOptions(given)
    this.stats.started++
    const parent = options?.root === true ? undefined : parentIn(context)
    const parentKind = parent === undefined ? PARENT_NONE : parent.remote === true ? PARENT_REMOTE : PARENT_LOCAL
    const now = clock.now()
    const span = new ChildSpan(this.pipeline, clock.fromTimeInput(options?.startTime, now), name.length > NAME_LENGTH_MAX ? cut(name, NAME_LENGTH_MAX) : name, kindOf(options), scope)
    span.inheritFrom(parent ?? newTrace(), parentKind)
    const parents = parent === undefined ? context.deleteValue(SPAN_KEY) : context
    const result = this.#decideChild(span, parent, parentKind, parents, options)
    applyDecision(span, result)
    if (result.decision !== RECORD_AND_SAMPLE && this.keep !== null) span.localRoot = parent?.localRoot ?? null
    if (result.decision === DROP && span.localRoot === null) return this.#unsampledAs(span)
    if (isObject(options?.attributes)) span.setAttributes(options.attributes)
    if (Array.isArray(options?.links)) span.addLinks(options.links)
    return this.#begin(span, result, parents)
  }

  #decideChild (span, parent, parentKind, context, options) {
    const { sampler } = this
    if (sampler.isCustom) {
      return sampler.ask(context, span, span.name, span.kind, isObject(options?.attributes) ? { ...options.attributes } : {}, Array.isArray(options?.links) ? options.links : NO_LINKS)
    }
    if (parentKind === PARENT_LOCAL) return plain((parent.flags & SAMPLED) === 0 ? DROP : RECORD_AND_SAMPLE)
    return plain(sampler.decide(span, parentKind === PARENT_REMOTE, clock.now(), undefined))
  }

  #limit (span, result) {
    result.decision = this.rateLimit.decide(span, span.start)
    if (result.decision === DROP) span.flags &= ~SAMPLED
  }

  #begin (span, { attributes }, context, given = null) {
    if (given !== null) span.setAttributes(given)
    if (attributes !== undefined) span.setAttributes(attributes)
    this.pipeline.started(span, context)
    return span
  }

  /** A span that is not sampled, under a new id in the trace of `parent`. It counts as ended at once: nothing will be recorded. */
  startUnsampled (parent) {
    const span = this.#unsampled(parent)
    newSpanId(span)
    return span
  }

  /** The same under the id that the sampler was asked with. */
  #unsampledAs (decided) {
    const span = this.#unsampled(decided)
    span.s0 = decided.s0
    span.s1 = decided.s1
    return span
  }

  #unsampled (trace) {
    this.stats.unsampled++
    return unsampledIn(trace)
  }
}

/** Where ids and flags alone decide about a request, and nobody wants to see it start. */
class FastStarter extends SpanStarter {
  // HOT, once per request.
  decideServer (incoming, route) {
    const { sampler: own } = route
    if (own !== null && own.isCustom) return UNDECIDED
    const sampler = own === null ? this.sampler : own
    const decision = sampler.decide(incoming, incoming.parentKind !== PARENT_NONE, incoming.start, route)
    return decision === DROP || this.rateLimit === null ? decision : this.rateLimit.decide(incoming, incoming.start)
  }

  startServer (incoming, route, peer, url, base) {
    const decision = this.decideServer(incoming, route)
    if (decision === UNDECIDED) return this.startAsked(incoming, route, peer, url, base)
    return decision === DROP ? this.startDropped(incoming, route, peer) : this.startTaken(incoming, route, peer, url)
  }

  /** Of a request that is sampled. */
  // HOT, once per sampled request. Budget: 1 object. Proof: bench/micro/server-span.bench.js
  startTaken (incoming, route, peer, url) {
    this.stats.started++
    const span = new ServerSpan(this.pipeline, incoming.start, route, peer, url)
    // Not copyTrace: V8 knows the classes of one place better than those of all.
    span.t0 = incoming.t0
    span.t1 = incoming.t1
    span.t2 = incoming.t2
    span.t3 = incoming.t3
    span.flags = incoming.flags | SAMPLED
    span.tracestate = incoming.tracestate
    span.p0 = incoming.p0
    span.p1 = incoming.p1
    span.parentKind = incoming.parentKind
    newSpanId(span)
    return span
  }

  startChild (name, options, context = EMPTY_CONTEXT, scope) {
    if (options === undefined && name.length <= NAME_LENGTH_MAX) {
      const parent = parentIn(context)
      if (parent !== undefined && parent.remote !== true && (parent.flags & SAMPLED) !== 0) return this.startUnder(parent, name, scope)
    }
    return super.startChild(name, options, context, scope)
  }

  /** A child of which nothing is said but its name, under a span of this process that is sampled. HOT, once per child span. Budget: 1 object. */
  startUnder (parent, name, scope) {
    this.stats.started++
    return new ChildSpan(this.pipeline, clock.now(), name, 0, scope).inheritFrom(parent, PARENT_LOCAL)
  }

  /** By a Sampler of the route's own. */
  startAsked (incoming, route, peer, url, base) {
    return super.startServer(incoming, route, peer, url, base)
  }

  /** Of a request that is not sampled. HOT, once per unsampled request. Budget: 1 object. */
  startDropped (incoming) {
    this.stats.started++
    return this.startUnsampled(incoming)
  }
}

/** What a sampler and a processor take the parent from. */
function parentContext (base, incoming) {
  return incoming.parentKind === PARENT_NONE
    ? base.deleteValue(SPAN_KEY)
    : base.setValue(SPAN_KEY, new RemoteSpan(incoming, incoming.parentKind === PARENT_REMOTE))
}

/** Trace, flags and parent of `incoming`. */
function takeTrace (span, incoming) {
  copyTrace(incoming, span)
  if (incoming.parentKind === PARENT_NONE) return
  span.p0 = incoming.p0
  span.p1 = incoming.p1
  span.parentKind = incoming.parentKind
}

function newTrace () {
  const trace = new TraceContext()
  newTraceId(trace)
  trace.flags = RANDOM
  return trace
}

function plain (decision) {
  return { decision, attributes: undefined, tracestate: undefined }
}

/** The caller's object, read once and before anything is counted: a getter of its own may throw. */
function readOptions (options) {
  if (!isObject(options)) return undefined
  try {
    const { root, kind, startTime, attributes, links } = options
    return { root, kind, startTime, attributes, links }
  } catch {
    return undefined
  }
}

function kindOf (options) {
  const kind = options?.kind
  return Number.isInteger(kind) && kind >= 0 && kind <= 4 ? kind : 0
}

function isObject (value) {
  return value !== null && typeof value === 'object'
}

module.exports = { SpanStarter, FastStarter, parentContext, UNDECIDED }
