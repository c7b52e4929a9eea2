'use strict'

// `lightTrace.run(carrier, fn)`: traces work without a request, such as a job. It continues the trace whose `request.trace.inject()`
// created the carrier.

const { anyOf, attributes, boolean, describeValue, object, optionInvalid, text } = require('../config/checks.js')
const { EMPTY_CONTEXT, RequestContext, ownContextManager } = require('../context/request-context.js')
const { SPAN_KEY } = require('../context/trace-context.js')
const { processState } = require('../runtime/process-state.js')
const { attempt } = require('../runtime/report.js')
const { runInSpan, INVALID_SPAN, remoteSpanOf } = require('../span/child-span.js')

const SPAN_KIND_CONSUMER = 4

const checkOptions = object({
  name: text,
  kind: anyOf('a SpanKind of @opentelemetry/api, 0 to 4', (value) => Number.isInteger(value) && value >= 0 && value <= 4),
  attributes,
  link: boolean
})

// Replaces the tracer when no application is open: the work still runs.
const noTracer = /** @type {Tracer} */ (/** @type {unknown} */ ({
  contextManager: ownContextManager,
  withSpan: (context, name, options, fn) => fn(INVALID_SPAN),
  inject: (context, headers) => headers
}))

/** @param {Tracer} [tracer] of the application that does the work */
function run (carrier, options, fn, tracer = processState.openApps.first()) {
  if (typeof options === 'function') {
    fn = options
    options = {}
  }
  if (typeof fn !== 'function') throw optionInvalid('run(carrier, fn)', 'a function', describeValue(fn))
  const checked = checkOptions('run', options ?? {})
  return tracer === undefined ? runUntraced(fn) : runTraced(tracer, carrier, checked, fn)
}

/** Runs `fn` in its own context, in which nothing is traced. */
function runUntraced (fn, store = null) {
  const context = new RequestContext(noTracer, INVALID_SPAN, null, true)
  context.setStore(store)
  return context.run(fn, context)
}

function runTraced (tracer, carrier, { name = 'process', kind = SPAN_KIND_CONSUMER, attributes, link = false }, fn) {
  const producer = remoteSpanOf({ traceparent: textIn(carrier, 'traceparent'), tracestate: textIn(carrier, 'tracestate') })
  const isLinked = link && producer !== null
  const parents = producer === null || isLinked ? EMPTY_CONTEXT : EMPTY_CONTEXT.setValue(SPAN_KEY, producer)
  const links = isLinked ? [{ context: producer.spanContext() }] : undefined
  const span = tracer.startSpan(name, { kind, attributes, links, root: isLinked }, parents)
  const baggage = tracer.settings.propagators.includes('baggage') ? textIn(carrier, 'baggage') : undefined
  const context = new RequestContext(tracer, span, null, false, undefined, baggage ?? null)
  return runInSpan(tracer.guarded(span), tracer.contextManager, context, fn, context)
}

/** A header of an object or a Map. Its values are strings, or Buffers in Kafka's clients. */
function textIn (carrier, name) {
  return attempt(() => {
    const value = typeof carrier?.get === 'function' ? carrier.get(name) : carrier?.[name]
    return Buffer.isBuffer(value) ? value.toString('latin1') : typeof value === 'string' ? value : undefined
  })
}

module.exports = { run, runUntraced }
