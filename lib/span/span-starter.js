'use strict'

// Starts spans: finds the parent, asks the sampler, and decides whether an unsampled span is recorded nevertheless.
//
// For each request, lib/fastify/request-start.js calls decideServer() first:
//
//   RECORD_AND_SAMPLE  startRecording()   sampled; ids and flags were enough to decide
//   DROP               startUnsampled()   not sampled; ids and flags were enough to decide
//   UNDECIDED          startServer()      a Sampler of the SDK or a processor needs the span: #startAsked()
//                                         `keep` or the recorder may want it at its end: startHeld()
//
// Children start with startChild(), or with startUnder() if the parent alone decides. If an SDK is involved, lib/features/sdk/interop.js
// replaces this starter. It has its own decideServer, which returns UNDECIDED, startServer and startChild.

const { TraceContext, SAMPLED, RANDOM, PARENT_NONE, PARENT_LOCAL, PARENT_REMOTE, SPAN_KEY, parentIn } = require('../context/trace-context.js')
const { newTraceId, newSpanId } = require('../context/ids.js')
const { EMPTY_CONTEXT } = require('../context/request-context.js')
const { ServerSpan, SPAN_KIND_SERVER } = require('./server-span.js')
const { RecordingSpan } = require('./recording-span.js')
const { ChildSpan, RemoteSpan, unsampledIn, wrapSpanContext } = require('./child-span.js')
const { applyDecision, DROP, RECORD_AND_SAMPLE } = require('../sampling/sampler.js')
const { toObject, copyOf, elements, cut } = require('./attributes.js')
const clock = require('../runtime/timers.js')

const NAME_LENGTH_MAX = 16384 // a span with a name of megabytes would not fit into a chunk
const NO_LINKS = Object.freeze([])
const UNDECIDED = -1 // decideServer returns it if ids and flags are not enough

class SpanStarter {
  /** @param {Tracer} tracer */
  constructor ({ sampler, rateLimit, keep, pipeline, stats, decidesByIds }) {
    this.sampler = sampler
    this.rateLimit = rateLimit
    this.keep = keep
    this.pipeline = pipeline
    this.stats = stats
    this.decidesByIds = decidesByIds
    this.retained = [new ServerSpan(pipeline, 0.5, null, null, ''), new ChildSpan(pipeline, 0.5, '', 0, null)].map(closed)
  }

  /**
   * DROP or RECORD_AND_SAMPLE if ids and flags are enough to decide about a request, else UNDECIDED. Allocates nothing.
   * HOT, once per request.
   */
  decideServer (incoming, route) {
    return !this.decidesByIds || (route.sampler !== null && route.sampler.isCustom) ? UNDECIDED : this.decideByIds(incoming, route)
  }

  decideByIds (incoming, route) {
    const sampler = route.sampler ?? this.sampler
    const decision = sampler.decide(incoming, incoming.parentKind !== PARENT_NONE, incoming.start, route)
    return decision === DROP || this.rateLimit === null ? decision : this.rateLimit.decide(incoming, incoming.start)
  }

  /** The span of a request that is undecided. `base` is the context that was active before, without this request's parent, or null. */
  startServer (incoming, route, peer, url, base) {
    const decision = this.decideServer(incoming, route)
    if (decision === UNDECIDED) return this.asks(route) ? this.#startAsked(incoming, route, peer, url, base) : this.startHeld(incoming, route, peer, url)
    return decision === DROP ? this.startUnsampled(incoming) : this.startRecording(incoming, route, peer, url)
  }

  /** Whether a Sampler or a processor must be asked about a request. */
  asks ({ sampler }) { return this.pipeline.wantsStart || (sampler ?? this.sampler).isCustom }

  /** The span of a request that `keep` or the recorder may want although it is not sampled. HOT, once per request with these. */
  startHeld (incoming, route, peer, url) {
    const decision = this.decideByIds(incoming, route)
    const span = this.startRecording(incoming, route, peer, url)
    if (decision === DROP) span.flags &= ~SAMPLED
    return span
  }

  /** The span of a recorded request, whether or not it will be exported. */
  // HOT, once per sampled request. Budget: 1 object. Proof: bench/micro/server-span.bench.js
  startRecording (incoming, route, peer, url) {
    this.stats.started++
    const span = this.keep === null
      ? new ServerSpan(this.pipeline, incoming.start, route, peer, url)
      : this.keep.serverSpan(this.pipeline, incoming.start, route, peer, url)
    // Not copyTrace: its call site sees many classes, while this one sees few, which V8 optimises better.
    span.t0 = incoming.t0
    span.t1 = incoming.t1
    span.t2 = incoming.t2
    span.t3 = incoming.t3
    span.flags = incoming.flags | SAMPLED
    span.tracestate = incoming.tracestate
    span.p0 = incoming.p0
    span.p1 = incoming.p1
    span.parentKind = incoming.parentKind
    if (route.explainer !== null) route.explainer.started(incoming.start)
    newSpanId(span)
    return span
  }

  /** The span of a request about which a Sampler or a processor is asked. */
  #startAsked (incoming, route, peer, url, base) {
    const { start, parentKind } = incoming
    const span = this.startRecording(incoming, route, peer, url)
    span.flags = incoming.flags // until the decision is applied
    const context = parentContext(base ?? EMPTY_CONTEXT, incoming)
    const sampler = route.sampler ?? this.sampler
    const result = sampler.isCustom
      ? sampler.ask(context, span, route.name, SPAN_KIND_SERVER, { ...toObject(span.ownAttributes()), ...incoming.attributes }, NO_LINKS)
      : plain(sampler.decide(span, parentKind !== PARENT_NONE, start, route))
    applyDecision(span, result)
    if (result.decision === RECORD_AND_SAMPLE && this.rateLimit !== null) {
      result.decision = this.rateLimit.decide(span, start)
      if (result.decision === DROP) span.flags &= ~SAMPLED
    }
    if (result.decision === DROP && this.keep === null) return this.#unsampledAs(span)
    return this.#begin(span, result, context, incoming.attributes)
  }

  /** A child of the active span in `context`, or the root of a new trace. `options` come from readOptions. */
  startChild (name, options, context = EMPTY_CONTEXT, scope) {
    if (options === undefined && this.decidesByIds && name.length <= NAME_LENGTH_MAX) {
      const parent = parentIn(context)
      if (parent !== undefined && parent.remote !== true) {
        return (parent.flags & SAMPLED) === 0 ? this.startUnsampled(parent) : this.startUnder(parent, name, scope)
      }
    }
    this.stats.started++
    const parent = options?.root === true ? undefined : parentIn(context)
    const parentKind = parent === undefined ? PARENT_NONE : parent.remote === true ? PARENT_REMOTE : PARENT_LOCAL
    const now = clock.now()
    const span = new ChildSpan(this.pipeline, clock.fromTimeInput(options?.startTime, now), name.length > NAME_LENGTH_MAX ? cut(name, NAME_LENGTH_MAX) : name, kindOf(options), scope)
    span.inheritFrom(parent ?? newTrace(), parentKind)
    const parents = parent === undefined ? context.deleteValue(SPAN_KEY) : context
    const result = this.#decideChild(span, parent, parentKind, parents, options)
    applyDecision(span, result)
    if (this.keep !== null) span.localRoot = parent instanceof RecordingSpan ? parent.localRoot : null
    if (result.decision === DROP && span.localRoot === null) return this.#unsampledAs(span)
    if (options !== undefined) span.setAttributes(options.attributes).addLinks(options.links)
    return this.#begin(span, result, parents)
  }

  /** A child with a name and no options, under a sampled span of this process. HOT, once per child span. Budget: 1 object. */
  startUnder (parent, name, scope) {
    this.stats.started++
    return new ChildSpan(this.pipeline, clock.now(), name, 0, scope).inheritFrom(parent, PARENT_LOCAL)
  }

  #decideChild (span, parent, parentKind, context, options) {
    const { sampler } = this
    if (sampler.isCustom === true) {
      return sampler.ask(context, span, span.name, span.kind, copyOf(options?.attributes), options?.links ?? NO_LINKS)
    }
    if (parentKind === PARENT_LOCAL) return plain((parent.flags & SAMPLED) === 0 ? DROP : RECORD_AND_SAMPLE)
    return plain(sampler.decide(span, parentKind === PARENT_REMOTE, clock.now(), undefined))
  }

  #begin (span, { attributes }, context, given = null) {
    if (given !== null) span.setAttributes(given)
    if (attributes !== undefined) span.setAttributes(attributes)
    this.pipeline.started(span, context)
    return span
  }

  /**
   * An unsampled span with a new id in the trace of `parent`. It counts as ended at once.
   * HOT, once per unsampled request or child. Budget: 1 object.
   */
  startUnsampled (parent) {
    this.stats.started++
    this.stats.unsampled++
    const span = unsampledIn(parent)
    newSpanId(span)
    return span
  }

  /** Like startUnsampled, but keeps the id that the sampler was asked with. */
  #unsampledAs (decided) {
    this.stats.unsampled++
    return wrapSpanContext(decided)
  }
}

// If no object of a hidden class is alive at a major garbage collection, V8 drops the class and discards the code compiled for it, about
// fifty of our functions. So one ended span of each class is kept alive.
function closed (span) {
  span.endedAt = 0.5
  return span
}

function parentContext (base, incoming) {
  return incoming.parentKind === PARENT_NONE
    ? base.deleteValue(SPAN_KEY)
    : base.setValue(SPAN_KEY, new RemoteSpan(incoming, incoming.parentKind === PARENT_REMOTE))
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

/** Reads the API's SpanOptions once, before anything is counted. Undefined if there are no options, or reading one throws. */
function readOptions (options) {
  try {
    if (options === null || typeof options !== 'object') return undefined
    const { root, kind, startTime, attributes, links } = options
    return { root, kind, startTime, attributes, links: elements(links) }
  } catch {
    return undefined
  }
}

function kindOf (options) {
  return [0, 1, 2, 3, 4].includes(options?.kind) ? options.kind : 0
}

module.exports = { SpanStarter, readOptions, parentContext, NAME_LENGTH_MAX, UNDECIDED }
