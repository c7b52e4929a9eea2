'use strict'

// The composition root: the only file that sees all stages. Options in, spans out.

const { TraceContext, childContext, SAMPLED, PARENT_NONE, PARENT_LOCAL, PARENT_REMOTE } = require('./context/trace-context')
const { newTraceId, newSpanId } = require('./context/ids')
const { parseTraceparent } = require('./context/traceparent')
const { SPAN_KEY, SUPPRESS_KEY, BAGGAGE_KEY } = require('./context/keys')
const { ownContextManager } = require('./context/request-context')
const { serializeBaggage } = require('./context/baggage')
const store = require('./context/store')
const clock = require('./span/clock')
const { ServerSpan } = require('./span/server-span')
const { ChildSpan } = require('./span/child-span')
const { UnsampledSpan, NO_SPAN } = require('./span/unsampled-span')
const { errorType } = require('./span/exception')
const { STATUS_ERROR } = require('./span/recording-span')
const { headSampler, RateLimit, DROP } = require('./span/sampler')
const { Pipeline } = require('./export/pipeline')
const { Stats } = require('./export/stats')
const { setImmediate } = require('./export/timers')
const { wayOut } = require('./way-out')

const RANDOM = 0x02

// A TCP socket takes two turns, TLS over it two more.
const CLOSE_TURNS_MAX = 8

class Tracer {
  constructor (settings, report, scope) {
    this.settings = settings
    this.report = report
    this.scope = scope
    this.stats = new Stats()
    this.sampler = headSampler(settings.sampler)
    this.rateLimit = settings.maxSampledPerSecond === Infinity ? null : new RateLimit(settings.maxSampledPerSecond)
    this.contextManager = ownContextManager
    this.enter = store.enter
    this.enterInjected = store.enterInjected
    this.enterQueued = store.enterQueued
    this.mode = 'undecided'
    this.way = null
    this.pipeline = null
    this.outbound = null // what instrument/outbound knows of this app
  }

  /** Decides how spans leave, once: in onReady, or at the first span before it. */
  open () {
    if (this.pipeline !== null) return
    clock.anchor()
    this.way = wayOut(this)
    this.mode = this.way.mode
    this.pipeline = new Pipeline({
      limits: this.settings.limits,
      resource: { attributes: this.settings.resource.attributes, asyncAttributesPending: false },
      scope: this.scope,
      stats: this.stats,
      sink: this.way.sink
    })
  }

  // HOT, once per request. Budget: 1 object. Proof: bench/micro/server-span.bench.js
  startServer (incoming, parentKind, start, route, peer, url) {
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
  startUnsampled (parent) {
    const { stats } = this
    stats.ended++
    stats.unsampled++
    const span = new UnsampledSpan()
    span.t0 = parent.t0
    span.t1 = parent.t1
    span.t2 = parent.t2
    span.t3 = parent.t3
    span.flags = parent.flags & ~SAMPLED
    span.tracestate = parent.tracestate
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
  startSpan (name, options, context, scope = this.scope) {
    if (this.pipeline === null) this.open()
    if (context !== undefined && context.getValue(SUPPRESS_KEY) === true) return NO_SPAN
    const parent = options?.root === true ? undefined : parentIn(context)
    const parentKind = parent === undefined ? PARENT_NONE : parent.remote === true ? PARENT_REMOTE : PARENT_LOCAL
    const trace = parent ?? newTrace()
    this.stats.started++
    const sampled = parent === undefined ? this.sampler.decide(trace, false) !== DROP : (parent.flags & SAMPLED) !== 0
    if (!sampled) return this.startUnsampled(trace)
    const start = clock.now()
    const span = new ChildSpan(this.pipeline, clock.fromTimeInput(options?.startTime, start), String(name), kindOf(options), scope)
    span.descend(trace, parentKind)
    span.flags |= SAMPLED
    if (options?.attributes) span.setAttributes(options.attributes)
    if (Array.isArray(options?.links)) span.addLinks(options.links)
    this.pipeline.started(span, context)
    return span
  }

  /**
   * A leaf span for a call that the running code makes: under the active span, or null where there is none.
   * @param {string} name
   * @param {number} kind
   * @param {Context} context
   * @param {(subject) => Array} describe gives a flat list of attributes; asked only for a span that records
   */
  // HOT, once per outgoing call. Budget: 1 object.
  startCall (name, kind, context, describe, subject) {
    const parent = parentIn(context)
    if (parent === undefined) return null
    if (this.pipeline === null) this.open()
    this.stats.started++
    if ((parent.flags & SAMPLED) === 0) return this.startUnsampled(parent)
    const span = new ChildSpan(this.pipeline, clock.now(), name, kind, this.scope)
    span.descend(parent, parent.remote === true ? PARENT_REMOTE : PARENT_LOCAL)
    span.describe(describe(subject))
    this.pipeline.started(span, context)
    return span
  }

  /** See RequestContext.withSpan. */
  withSpan (requestContext, name, options, fn) {
    const context = requestContext.here()
    const span = this.startSpan(name, options, context)
    let result
    try {
      result = this.contextManager.with(context.setValue(SPAN_KEY, span), fn, undefined, span)
    } catch (error) {
      failSpan(span, error)
      throw error
    }
    if (result === null || typeof result !== 'object' || typeof result.then !== 'function') {
      span.end()
      return result
    }
    return result.then((value) => {
      span.end()
      return value
    }, (error) => {
      failSpan(span, error)
      throw error
    })
  }

  /** Writes what an outgoing call carries into `headers`. See RequestContext.inject. */
  inject (requestContext, headers) {
    const context = requestContext.here()
    const parent = parentIn(context)
    if (parent !== undefined) {
      // A request without a span of its own hands on what came; else each call has an id of its own.
      const outgoing = requestContext.suppressed ? parent : childContext(parent)
      setHeader(headers, 'traceparent', outgoing.traceparent)
      if (outgoing.tracestate !== '') setHeader(headers, 'tracestate', outgoing.tracestate)
    }
    const baggage = context.getValue(BAGGAGE_KEY)
    const text = baggage === undefined ? '' : serializeBaggage(baggage)
    if (text !== '') setHeader(headers, 'baggage', text)
    return headers
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

function newTrace () {
  const trace = new TraceContext()
  newTraceId(trace)
  trace.flags = RANDOM
  return trace
}

/** The span of a context as a TraceContext, whoever made it. */
function parentIn (context) {
  const span = context === undefined ? undefined : context.getValue(SPAN_KEY)
  if (span === undefined || span === null) return undefined
  if (span instanceof TraceContext) return span.valid ? span : undefined
  return foreignParent(span)
}

function foreignParent (span) {
  try {
    const { traceId, spanId, traceFlags, traceState, isRemote } = span.spanContext()
    const read = new TraceContext()
    if (!parseTraceparent(`00-${traceId}-${spanId}-00`, read)) return undefined
    read.s0 = read.p0
    read.s1 = read.p1
    read.flags = traceFlags & (SAMPLED | RANDOM)
    read.tracestate = traceState === undefined ? '' : String(traceState.serialize())
    read.remote = isRemote === true
    return read
  } catch {
    return undefined // somebody else's span may do as it likes
  }
}

function kindOf (options) {
  const kind = options?.kind
  return Number.isInteger(kind) && kind >= 0 && kind <= 4 ? kind : 0
}

function failSpan (span, error) {
  span.recordException(error)
  span.setAttribute('error.type', errorType(error))
  span.setStatus({ code: STATUS_ERROR, message: messageOf(error) })
  span.end()
}

function messageOf (error) {
  try {
    return typeof error?.message === 'string' ? error.message : undefined
  } catch {
    return undefined
  }
}

function setHeader (headers, name, value) {
  if (typeof headers.set === 'function') headers.set(name, value)
  else headers[name] = value
}

module.exports = { Tracer }
