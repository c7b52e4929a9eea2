'use strict'

// A span inside a request or job: made by hand, by the OpenTelemetry API, or for an outgoing call.

const { newSpanId } = require('../context/ids.js')
const { parseTraceparent } = require('../context/traceparent.js')
const { OPEN, PARENT_NONE, SAMPLED, TraceContext, callerTracestate, copyIds, copyTrace, IncomingContext } = require('../context/trace-context.js')
const { RecordingSpan, STATUS_ERROR } = require('./recording-span.js')
const { cleanValue, errorType, exceptionAttributes, exceptionOf } = require('./attributes.js')

// Spans that are not recorded: the methods of a recording span, with ids and without work.

class NonRecordingSpan extends TraceContext {
  isRecording () { return false }
  setAttribute () { return this }
  setAttributes () { return this }
  addEvent () { return this }
  addLink () { return this }
  addLinks () { return this }
  setStatus () { return this }
  updateName () { return this }
  recordException () {}
  end () {}

  // As a request's record, see lib/fastify/request-start.js.
  get isTraced () { return this.isRecording() }
  fail (_error) {}
  recordFailure (error) { this.fail(error) }
  keepFor (_reason) {}
  close () {}
}

/** A caller's span, known by its ids alone. */
class RemoteSpan extends NonRecordingSpan {
  /**
   * @param {{ t0, t1, t2, t3, p0, p1, flags, tracestate }} incoming
   * @param {boolean} [remote] false for a parent in this process, as inject() may have one
   */
  constructor (incoming, remote = true) {
    super()
    copyTrace(incoming, this)
    this.s0 = incoming.p0
    this.s1 = incoming.p1
    this.remote = remote
  }
}

/** The span of requests without a trace: switched off, ignored, or before our hook. Its ids are all zero. */
const INVALID_SPAN = Object.freeze(new NonRecordingSpan())

/** An unsampled span in the trace of `parent`, without a span id. */
function unsampledIn (parent) {
  const span = new NonRecordingSpan()
  span.t0 = parent.t0
  span.t1 = parent.t1
  span.t2 = parent.t2
  span.t3 = parent.t3
  span.flags = parent.flags & ~SAMPLED
  span.tracestate = parent.tracestate
  return span
}

/** A span that records nothing and stands for `parent`, where there is one. */
function wrapSpanContext (parent) {
  if (parent === undefined) return INVALID_SPAN
  const span = new NonRecordingSpan()
  copyIds(parent, span)
  return span
}

/** The caller's span of W3C header texts; null where they are not valid. */
function remoteSpanOf ({ traceparent, tracestate }) {
  const incoming = new IncomingContext()
  if (typeof traceparent !== 'string' || !parseTraceparent(traceparent, incoming)) return null
  incoming.tracestate = callerTracestate(tracestate, incoming)
  return new RemoteSpan(incoming)
}

// Shared attributes are within these limits: at most a dozen, of at most this length.
const ROOMY_COUNT = 32
const ROOMY_LENGTH = 1024
const TARGET_LENGTH_MAX = 512 // which leaves as much for an origin

// As the shape of a span that is no call: the handler's, and those of hooks.
const STAGE = Object.freeze({})

const { then: promiseThen } = Promise.prototype

class ChildSpan extends RecordingSpan {
  /**
   * @param {Pipeline} pipeline
   * @param {number} start milliseconds on the monotonic clock
   * @param {string} name
   * @param {number} kind as the API counts: 0 internal, 1 server, 2 client, 3 producer, 4 consumer
   * @param {{ name: string, version?: string }} scope
   */
  constructor (pipeline, start, name, kind, scope) {
    super(pipeline, start)
    this.title = name // may have lone surrogates
    this.kind = kind
    this.scope = scope
    this.info = null // what it shares with other calls to the same place
    this.target = '' // what the info's open attribute has beyond its origin
    this.observer = null // what measures its end; then it need not be sampled
    this.request = null // the span of the request that it is under
    this.callShape = null // CallInfo of a call whose repeats count
    this.nextCall = null // the first of the next shape
    this.run = null // what follows it, of a call that is repeated
  }

  get name () { return this.details === null || this.details.name === '' ? this.title.toWellFormed() : this.details.name }
  get instrumentationScope () { return this.scope }

  /** Takes trace, flags and parent from a TraceContext and draws a span id. */
  inheritFrom (parent, parentKind) {
    // Not copyTrace: V8 knows the classes of one place better than those of all.
    this.t0 = parent.t0
    this.t1 = parent.t1
    this.t2 = parent.t2
    this.t3 = parent.t3
    this.flags = parent.flags
    this.tracestate = parent.tracestate
    this.request = parent.request
    if (parentKind !== PARENT_NONE) {
      this.p0 = parent.s0
      this.p1 = parent.s1
      this.parentKind = parentKind
    }
    newSpanId(this)
    return this
  }

  /** Sets the attributes of a call, none of whose keys comes twice. `list`, flat, or null: those of this call alone. */
  // HOT, once per recorded call.
  setCallInfo (info, target, list) {
    const { attributes, attributeValueLength } = this.pipeline.limits
    // A lone surrogate in the target is mended where it is written or read, as in any attribute.
    if (info !== null && (attributes < ROOMY_COUNT || attributeValueLength < ROOMY_LENGTH || target.length >= TARGET_LENGTH_MAX)) {
      list = info.allAttributes(target, list ?? [])
      info = null
    }
    this.info = info
    this.target = target
    if (list !== null) this.attributeList = this.checked(list)
  }

  finish (endedAt) {
    if (this.request !== null && this.request.endedAt !== OPEN) this.markLate(endedAt)
    if (this.observer === null || (this.flags & SAMPLED) !== 0) super.finish(endedAt)
    else {
      this.endedAt = endedAt < this.start ? this.start : endedAt
      this.pipeline.stats.unsampled++
    }
    if (this.observer !== null) this.observer.ended(this)
    if (this.run !== null) this.run.ended(this.endedAt - this.start, this.endedAt)
  }

  /** Says that the work went on after the response. A stage of the request itself ends with it, or in the turn after. */
  markLate (endedAt) {
    if (this.callShape !== STAGE && endedAt > this.request.endedAt) this.setAttribute('light_trace.after_response', true)
  }

  checked (list) {
    const { attributes, attributeValueLength } = this.pipeline.limits
    for (let i = 1; i < list.length; i += 2) {
      const kind = typeof list[i]
      if (kind === 'string' || kind === 'object') list[i] = cleanValue(list[i], attributeValueLength, this)
    }
    if (list.length > attributes * 2) {
      this.detail().droppedAttributes += list.length / 2 - attributes
      this.pipeline.overLimit('attributes')
      list.length = attributes * 2
    }
    return list
  }

  get attributeCountMax () {
    const { attributes } = this.pipeline.limits
    return this.info === null ? attributes : attributes - this.info.attributeCount
  }

  allAttributes () {
    const own = super.allAttributes()
    return this.pipeline.shown(this.info === null ? own : this.info.allAttributes(this.target, own))
  }
}

/** Runs `fn(argument)` in a span, which ends with the function or its promise. What is thrown is recorded and passed on. */
function runInSpan (span, contextManager, context, fn, argument) {
  const failed = (error) => {
    fail(span, error)
    throw error
  }
  let result
  try {
    result = contextManager.call(context, fn, argument)
    if (isPromise(result)) {
      return result.then((value) => {
        end(span)
        return value
      }, failed)
    }
  } catch (error) {
    failed(error)
  }
  end(span)
  return result
}

/** Runs `fn(span)` where nothing is recorded, so that there is no end to wait for. */
function runUnrecorded (span, contextManager, context, fn) {
  const result = contextManager.call(context, fn, span)
  // A query of knex or Prisma is sent when its own `then` is called: that it is called must not depend on the sampler.
  return isPromise(result) && result.then !== promiseThen ? result.then(same) : result
}

function same (value) {
  return value
}

// By itself, not by `read`: V8 finds `then` at once where it is all that a place reads.
function isPromise (value) {
  try {
    return value !== null && typeof value === 'object' && typeof value.then === 'function'
  } catch {
    return false
  }
}

// An SDK's span reads the error in its own way, and its processors see the end: neither may throw in place of the user's code.
function fail (span, error) {
  try {
    const exception = exceptionOf(exceptionAttributes(error, span.pipeline?.limits.attributeValueLength))
    span.recordException(exception)
    span.setAttribute('error.type', errorType(error))
    span.setStatus({ code: STATUS_ERROR, message: exception.message })
  } catch {}
  end(span)
}

function end (span) {
  try {
    span.end()
  } catch {}
}

module.exports = { ChildSpan, STAGE, runInSpan, runUnrecorded, NonRecordingSpan, RemoteSpan, INVALID_SPAN, unsampledIn, wrapSpanContext, remoteSpanOf }
