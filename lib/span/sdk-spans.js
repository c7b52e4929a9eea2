'use strict'

// Spans that somebody else's TracerProvider makes, in SDK mode. A request's record is a server span of
// ours that is never sent: it works out attributes, status and exception by the same code as always, and
// passes them on.

const { ServerSpan, SPAN_KIND_SERVER } = require('./server-span')
const { STATUS_ERROR } = require('./recording-span')
const { NonRecordingSpan, wrapSpanContext } = require('./non-recording-span')
const { exceptionAttributes, exceptionOf } = require('./exception')
const { toObject } = require('./attributes')
const { now, toHrTime } = require('./clock')
const { copyTrace } = require('../context/trace-context')
const { readSpanContext, parentIn } = require('../context/parent')

const VALUE_LENGTH_MAX = 16384

// Requests that reach no hook are known only when they have been answered.
const LATE_MS = 5

class SdkSpans {
  #provider
  #report
  #tracers = new WeakMap() // scope → the provider's tracer

  constructor (provider, report) {
    this.#provider = provider
    this.#report = report
  }

  /**
   * @returns {{ span: Span, trace: TraceContext | undefined }} trace undefined where no span came, or one with
   *   ids that are none, as of a provider that does nothing: then what the caller sent goes on as it came
   */
  start (name, options, context, scope) {
    try {
      const span = this.#tracer(scope).startSpan(name, options, context)
      if (typeof span?.spanContext !== 'function' || typeof span.end !== 'function') {
        this.#warn('made no span')
      } else {
        const trace = readSpanContext(span)
        if (trace !== undefined) return { span, trace }
      }
    } catch (error) {
      this.#warn(`failed: ${error?.message}`)
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

  #warn (what) {
    this.#report.once('LT_WARN_PROVIDER', `the tracer provider ${what}; requests go on without such spans`)
  }
}

/** Of a request. What the application sees is the provider's own span. */
class SdkServerSpan extends ServerSpan {
  constructor (pipeline, start, route, peer, url) {
    super(pipeline, start, route, peer, url)
    this.sdkSpan = null
  }

  get apiSpan () { return this.sdkSpan }

  /** The options of the API's startSpan. */
  startOptions (attributes) {
    const options = { kind: SPAN_KIND_SERVER, attributes: { ...toObject(this.ownAttributes()), ...attributes } }
    // The provider's own clock, where it may be: its other spans are by that one too.
    if (now() - this.start > LATE_MS) options.startTime = toHrTime(this.start)
    return options
  }

  /** @param {TraceContext} trace the provider's ids */
  useSdkSpan (span, trace) {
    this.sdkSpan = span
    copyIds(this, trace)
    return this
  }

  finish (endedAt) {
    const { sdkSpan: span, httpStatus, errorType, details } = this
    if (httpStatus !== 0) pass(() => span.setAttribute('http.response.status_code', httpStatus))
    if (errorType !== '') pass(() => span.setAttribute('error.type', errorType))
    if (details !== null) {
      for (const { list } of details.events) pass(() => span.recordException(exceptionOf(list)))
      if (details.statusCode === STATUS_ERROR) pass(() => span.setStatus({ code: STATUS_ERROR }))
    }
    pass(() => span.end())
    super.finish(endedAt)
  }
}

/** A request that the provider did not sample. */
class SdkNonRecordingSpan extends NonRecordingSpan {
  constructor (span, trace) {
    super()
    this.sdkSpan = span
    if (trace !== undefined) copyIds(this, trace)
  }

  get apiSpan () { return this.sdkSpan }
}

/**
 * The SERVER span that instrumentation-http has made for this request. It gets what only Fastify knows,
 * and its owner ends it: before us, so there is nothing to add at the end.
 */
class AdoptedServerSpan extends SdkNonRecordingSpan {
  #error = undefined // what was recorded last: Fastify and the application may both say it

  isRecording () { return true }

  fail (error) {
    if (error !== undefined && this.#error === error) return
    this.#error = error
    pass(() => this.sdkSpan.recordException(exceptionOf(exceptionAttributes(error, VALUE_LENGTH_MAX))))
  }

  /** @param {object} rpc the RPC metadata, from which the owner takes the route for its name and metrics */
  enrich (rpc, route, attributes) {
    if (route.route !== '') rpc.route = route.route
    pass(() => this.sdkSpan.updateName(route.name))
    pass(() => this.sdkSpan.setAttributes(attributes))
  }
}

function copyIds (span, trace) {
  copyTrace(trace, span)
  span.s0 = trace.s0
  span.s1 = trace.s1
}

/** Somebody else's span may throw; each call stands for itself, so that the last one, `end`, is made. */
function pass (call) {
  try {
    call()
  } catch {}
}

module.exports = { SdkSpans, SdkServerSpan, SdkNonRecordingSpan, AdoptedServerSpan }
