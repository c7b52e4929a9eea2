'use strict'

// A span inside a request or job: created by the application, through the OpenTelemetry API, or for an outgoing call.

const { newSpanId } = require('../context/ids.js')
const { parseTraceparent } = require('../context/traceparent.js')
const { OPEN, PARENT_NONE, SAMPLED, TraceContext, callerTracestate, copyIds, copyTrace, IncomingContext } = require('../context/trace-context.js')
const { RecordingSpan, STATUS_ERROR } = require('./recording-span.js')
const { cleanValue, errorType, exceptionAttributes, exceptionOf } = require('./attributes.js')

// Spans that are not recorded. They have ids and all methods of a recording span, but the methods do nothing.

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

  // The interface of a request's record, see lib/fastify/request-start.js.
  get isTraced () { return this.isRecording() }
  fail (_error) {}
  recordFailure (error) { this.fail(error) }
  keepFor (_reason) {}
  close () {}
}

/** A caller's span, of which only the ids are known. */
class RemoteSpan extends NonRecordingSpan {
  /**
   * @param {{ t0, t1, t2, t3, p0, p1, flags, tracestate }} incoming
   * @param {boolean} [remote] false for a parent in this process, which `app.inject()` may have
   */
  constructor (incoming, remote = true) {
    super()
    copyTrace(incoming, this)
    this.s0 = incoming.p0
    this.s1 = incoming.p1
    this.remote = remote
  }
}

/** The span of requests that are not traced: tracing is off, the request is ignored, or our hook has not run yet. Its ids are all zero. */
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

/** A span that records nothing and has the ids of `parent`. Without a parent, INVALID_SPAN. */
function wrapSpanContext (parent) {
  if (parent === undefined) return INVALID_SPAN
  const span = new NonRecordingSpan()
  copyIds(parent, span)
  return span
}

/** The caller's span, read from the values of the W3C headers. Null if they are invalid. */
function remoteSpanOf ({ traceparent, tracestate }) {
  const incoming = new IncomingContext()
  if (typeof traceparent !== 'string' || !parseTraceparent(traceparent, incoming)) return null
  incoming.tracestate = callerTracestate(tracestate, incoming)
  return new RemoteSpan(incoming)
}

// The attributes of a CallInfo always fit these limits: at most a dozen, each at most this long.
const ROOMY_COUNT = 32
const ROOMY_LENGTH = 1024
const TARGET_LENGTH_MAX = 512 // leaves the same length for the origin

// The `callShape` of a span that is not a call: a span of the handler or a hook.
const STAGE = Object.freeze({})

const { then: promiseThen } = Promise.prototype

class ChildSpan extends RecordingSpan {
  /**
   * @param {Pipeline} pipeline
   * @param {number} start milliseconds on the monotonic clock
   * @param {string} name
   * @param {number} kind in the API's numbers: 0 internal, 1 server, 2 client, 3 producer, 4 consumer
   * @param {{ name: string, version?: string }} scope
   */
  constructor (pipeline, start, name, kind, scope) {
    super(pipeline, start)
    this.title = name // may contain lone surrogates
    this.kind = kind
    this.scope = scope
    this.info = null // CallInfo: what all calls to the same place share
    this.target = '' // the part of the info's open attribute after its origin
    this.observer = null // measures its end. A span with an observer may be unsampled
    this.request = null // the span of the request that contains it
    this.callShape = null // CallInfo of a call whose repetitions are counted
    this.nextCall = null // the first call of the next shape
    this.run = null // the run of repeated calls that it belongs to
  }

  get name () { return this.details === null || this.details.name === '' ? this.title.toWellFormed() : this.details.name }
  get instrumentationScope () { return this.scope }

  /** Takes trace, flags and parent from a TraceContext and generates a span id. */
  inheritFrom (parent, parentKind) {
    // Not copyTrace: its call site sees many classes, while this one sees few, which V8 optimises better.
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

  /** Sets the attributes of a call. No key may occur twice. `list` is a flat list of the attributes of this call alone, or null. */
  // HOT, once per recorded call.
  setCallInfo (info, target, list) {
    const { attributes, attributeValueLength } = this.pipeline.limits
    // A lone surrogate in the target is replaced when it is written or read, as in any attribute.
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

  /** Marks work that continued after the response. Stages are not marked: they end with the request, or one turn of the event loop later. */
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

/** Runs `fn(argument)` in a span, which ends with the function or its promise. An error is recorded and rethrown. */
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

/** Runs `fn(span)` when nothing is recorded. It does not wait for the end of the work. */
function runUnrecorded (span, contextManager, context, fn) {
  const result = contextManager.call(context, fn, span)
  // knex and Prisma send a query when its own `then` is called. Whether that happens must not depend on the sampler, so call it here too.
  return isPromise(result) && result.then !== promiseThen ? result.then(same) : result
}

function same (value) {
  return value
}

// Does not use `read`: this property access only ever reads `then`, which V8 can cache.
function isPromise (value) {
  try {
    return value !== null && typeof value === 'object' && typeof value.then === 'function'
  } catch {
    return false
  }
}

// An SDK's span runs code that is not ours: it reads the error, and processors run at its end. Their errors must not replace the user's.
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
