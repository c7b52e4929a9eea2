'use strict'

// How a span starts: which span is its parent, whether the sampler takes it, and whether it is recorded all the same.
//
// A request asks decideServer() first, in lib/fastify/request-start.js:
//
//   RECORD_AND_SAMPLE  startRecording()   ids and flags were enough, and it is sampled
//   DROP               startUnsampled()   the same, and it is not
//   UNDECIDED          startServer()      a Sampler of the SDK or a processor sees the span: #startAsked()
//                                         `keep` or the recorder may want it at its end: startHeld()
//
// A child starts by startChild(), or by startUnder() where its parent decides. Where an SDK has a say, lib/features/sdk/interop.js
// stands before the starter with decideServer, startServer and startChild of its own; its decideServer() says UNDECIDED.

const { TraceContext, SAMPLED, RANDOM, PARENT_NONE, PARENT_LOCAL, PARENT_REMOTE, SPAN_KEY, parentIn } = require('../context/trace-context.js')
const { newTraceId, newSpanId } = require('../context/ids.js')
const { EMPTY_CONTEXT } = require('../context/request-context.js')
const { ServerSpan, SPAN_KIND_SERVER } = require('./server-span.js')
const { RecordingSpan } = require('./recording-span.js')
const { ChildSpan, RemoteSpan, unsampledIn, wrapSpanContext } = require('./child-span.js')
const { applyDecision, DROP, RECORD_AND_SAMPLE } = require('../sampling/sampler.js')
const { toObject, copyOf, elements, cut } = require('./attributes.js')
const clock = require('../runtime/timers.js')

const NAME_LENGTH_MAX = 16384 // a span whose name has megabytes fits no chunk
const NO_LINKS = Object.freeze([])
const UNDECIDED = -1 // of decideServer, where ids and flags are not enough

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
   * DROP or RECORD_AND_SAMPLE where ids and flags alone say it of a request, before anything is made for it; else UNDECIDED.
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

  /** The span of a request of which nothing is decided yet. `base`: what was active before, without this request's parent, or null. */
  startServer (incoming, route, peer, url, base) {
    const decision = this.decideServer(incoming, route)
    if (decision === UNDECIDED) return this.asks(route) ? this.#startAsked(incoming, route, peer, url, base) : this.startHeld(incoming, route, peer, url)
    return decision === DROP ? this.startUnsampled(incoming) : this.startRecording(incoming, route, peer, url)
  }

  /** Whether a Sampler or a processor has a say in a request. */
  asks ({ sampler }) { return this.pipeline.wantsStart || (sampler ?? this.sampler).isCustom }

  /** The span of a request that `keep` or the recorder may want though it is not sampled. HOT, once per request with these. */
  startHeld (incoming, route, peer, url) {
    const decision = this.decideByIds(incoming, route)
    const span = this.startRecording(incoming, route, peer, url)
    if (decision === DROP) span.flags &= ~SAMPLED
    return span
  }

  /** The span of a request that is recorded, whether or not it will be sent. */
  // HOT, once per sampled request. Budget: 1 object. Proof: bench/micro/server-span.bench.js
  startRecording (incoming, route, peer, url) {
    this.stats.started++
    const span = this.keep === null
      ? new ServerSpan(this.pipeline, incoming.start, route, peer, url)
      : this.keep.serverSpan(this.pipeline, incoming.start, route, peer, url)
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
    if (route.explainer !== null) route.explainer.started(incoming.start)
    newSpanId(span)
    return span
  }

  /** The span of a request where a Sampler or a processor has a say. */
  #startAsked (incoming, route, peer, url, base) {
    const { start, parentKind } = incoming
    const span = this.startRecording(incoming, route, peer, url)
    span.flags = incoming.flags // for now
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

  /** A span under the one that is active in `context`, else the root of a new trace. The options are those of readOptions. */
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

  /** A child of which only the name is known, under a sampled span of this process. HOT, once per child span. Budget: 1 object. */
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
   * A span that is not sampled, under a new id in the trace of `parent`. It counts as ended at once.
   * HOT, once per unsampled request or child. Budget: 1 object.
   */
  startUnsampled (parent) {
    this.stats.started++
    this.stats.unsampled++
    const span = unsampledIn(parent)
    newSpanId(span)
    return span
  }

  /** The same under the id that the sampler was asked with. */
  #unsampledAs (decided) {
    this.stats.unsampled++
    return wrapSpanContext(decided)
  }
}

// V8 forgets a hidden class of which no object is alive at a major collection, and gives up all code that it has compiled for it:
// some fifty functions of ours. So one of each is kept, as it is at its end.
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

/** The API's SpanOptions, read once and before anything is counted: undefined where there are none, or one throws. */
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
