'use strict'

// What all spans of a tracer share: limits, resource, scope, counters, and the sink that receives ended spans.

const { SCHEMA_URL, OWN_MAX } = require('../span/recording-span.js')
const { SAMPLED } = require('../context/trace-context.js')

const OPEN_MAX = 10_000 // the most spans that are tracked until they end

/**
 * Counts what happened to every span. At any time:
 *   ended = accepted + unsampled + recorded
 *   accepted = handedOver + delivered + rejected + thinned + sum(dropped) + queued + inFlight
 */
class Stats {
  started = 0
  unsampled = 0
  recorded = 0 // held by the recorder, neither accepted nor unsampled yet
  notKept = 0 // unsampled requests that `keep` matched, but that exceeded its rate
  folded = 0 // calls that were merged into another span, counted neither as started nor as ended
  accepted = 0
  handedOver = 0
  delivered = 0
  rejected = 0
  retried = 0 // spans that were sent again: only these can be in the collector twice
  thinned = 0 // spans dropped from a full buffer, while the others carry an adjusted sampling threshold
  dropped = Object.create(null) // reason -> spans; the keys are part of the public `snapshot`
  exportsOk = 0
  exportsFailed = 0
  lastError = null

  get ended () { return this.accepted + this.unsampled + this.recorded }
  drop (reason, spans) { this.dropped[reason] = (this.dropped[reason] ?? 0) + spans }

  // The public shape of `app.lightTrace.stats()`; `buffer` is { bytes, maxBytes }.
  snapshot (mode, queued, inFlight, buffer) {
    const { exportsOk: ok, exportsFailed: failed, lastError, ...counts } = this
    const spans = { ...counts, ended: this.ended, dropped: { ...this.dropped }, queued, inFlight }
    return { mode, spans, buffer, exports: { ok, failed }, lastError }
  }
}

/** The resource in the form that processors and exporters of SDK 2.x and 3.x expect. They distinguish resources by identity. */
class Resource {
  asyncAttributesPending = false

  constructor (attributes) {
    this.attributes = attributes
  }

  get schemaUrl () { return SCHEMA_URL }

  async waitForAsyncAttributes () {}
  getRawAttributes () { return Object.entries(this.attributes) }

  merge (other) { return new Resource({ ...this.attributes, ...other?.attributes }) }
}

class Pipeline {
  /** @param {Tracer} tracer with its output already chosen */
  constructor ({ settings, redactor, scope, stats, report, sampler, output: { sink } }) {
    const { limits, clientErrors, resource, namesOpen } = settings
    this.limits = limits
    this.clientErrors = clientErrors // whether errors are recorded for 4xx responses
    // Templates do not fit spans with a longer URL. They fit no span if its own attributes alone may exceed the limit.
    this.templateUrlLengthMax = limits.attributes < OWN_MAX ? -1 : limits.attributeValueLength
    this.redactor = redactor
    this.rootTracestate = sampler.tracestate // the sampler's tracestate for traces that start here, if it is always the same
    this.resource = new Resource(resource.attributes)
    this.scope = scope
    this.stats = stats
    /** @type {Report} */ this.report = report
    this.exceptionLog = null // AppLogs, in a LoggingPipeline
    this.sink = sink
    this.onLate = null // counts a span that ends after the application has closed
    this.overLimits = { attributes: false, events: false, links: false } // the limits that were warned about
    this.open = namesOpen ? new Set() : null // spans that have not ended
    this.wantsStart = sink.started !== undefined || namesOpen
    this.wantsEnding = sink.ending !== undefined
    this.endsNow = new Set() // spans that are passed to processors just before they end; a processor might end them itself
  }

  /** Returns the attributes of a flat list that may leave the process. */
  shown (list) { return list }

  started (span, context) {
    if (!this.wantsStart) return
    if (this.open !== null && this.open.size < OPEN_MAX) this.open.add(span)
    this.sink.started?.(span, context)
  }

  attributeCut () {
    this.report.warn('LT_WARN_ATTRIBUTE', 'an attribute was cut or dropped: keys are limited to 1024 characters, values to 1024 members and ' +
      '64 levels of plain data')
  }

  /** Warns once about each limit that was exceeded, as the specification asks. @param {'attributes' | 'events' | 'links'} what */
  overLimit (what) {
    if (this.overLimits[what]) return
    this.overLimits[what] = true
    const max = `${this.limits[what]} ${what}`
    this.report.warn('LT_WARN_LIMIT', `a span exceeded ${max}: the rest were dropped (\`limits.${what}\`)`, what)
  }

  ending (span) {
    this.endsNow.add(span)
    this.sink.ending(span)
    this.endsNow.delete(span)
  }

  // HOT, once per recorded span.
  ended (span) {
    if (this.open !== null) this.open.delete(span)
    if (span.localRoot !== null) span.localRoot.decide(span)
    else this.exportOrDiscard(span)
  }

  /** When the application closes, ends child spans that are still open and marks them. Request spans end by themselves. */
  endOpen () {
    for (const span of this.open ?? []) if (span.info !== undefined) span.setAttribute('light_trace.never_ended', true).end()
  }

  accept (span) {
    this.stats.accepted++
    if (this.onLate !== null) this.onLate()
    else this.sink.accept(span)
  }

  exportOrDiscard (span) {
    if ((span.flags & SAMPLED) !== 0) this.accept(span)
    else this.discard(span)
  }

  discard (span) {
    this.stats.unsampled++
    this.sink.discarded?.(span)
  }
}

/** Used if exceptions are exported as log records. They are exported only if their span is. */
class LoggingPipeline extends Pipeline {
  constructor (tracer, exceptionLog) {
    super(tracer)
    this.exceptionLog = exceptionLog
  }

  accept (span) {
    if (this.onLate === null && span.details !== null) this.exceptionLog.takeExceptions(span)
    super.accept(span)
  }
}

module.exports = { Stats, Pipeline, LoggingPipeline }
