'use strict'

// What all spans of a tracer share on their way out: limits, resource, scope, counts, and the sink that ended spans go to.

const { SCHEMA_URL, OWN_MAX } = require('../span/recording-span.js')
const { SAMPLED } = require('../context/trace-context.js')

const OPEN_MAX = 10_000 // of the spans that are looked after until they end

/**
 * What happened to every span, as plain counters. At every moment
 *   ended = accepted + unsampled + recorded
 *   accepted = handedOver + delivered + rejected + thinned + sum(dropped) + queued + inFlight
 */
class Stats {
  started = 0
  unsampled = 0
  recorded = 0 // now in the ring of the recorder: neither accepted nor unsampled yet
  notKept = 0 // requests, of the unsampled, that `keep` asked for and its rate left out
  folded = 0 // calls that are in another span: neither started nor ended
  accepted = 0
  handedOver = 0
  delivered = 0
  rejected = 0
  retried = 0 // spans in repeated attempts: only these can be in the collector twice
  thinned = 0 // spans that gave way in a full buffer to others that say for how many they stand
  dropped = Object.create(null) // reason -> spans; `snapshot` hands its keys out
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

/** What sends the spans, as processors and exporters of the SDK 2.x and 3.x want it. They tell resources apart by identity. */
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
  /** @param {Tracer} tracer once it is decided how its spans leave */
  constructor ({ settings, redactor, scope, stats, report, sampler, output: { sink } }) {
    const { limits, clientErrors, resource, namesOpen } = settings
    this.limits = limits
    this.clientErrors = clientErrors // whether what is thrown is recorded where the answer is 4xx
    // No template fits a span whose own attributes may be too many, or a longer url.
    this.templateUrlLengthMax = limits.attributes < OWN_MAX ? -1 : limits.attributeValueLength
    this.redactor = redactor
    this.rootTracestate = sampler.tracestate // what the sampler says of each trace that starts here, if it is always the same
    this.resource = new Resource(resource.attributes)
    this.scope = scope
    this.stats = stats
    /** @type {Report} */ this.report = report
    this.exceptionLog = null // AppLogs, in a LoggingPipeline
    this.sink = sink
    this.onLate = null // what counts a span, once the application has closed
    this.overLimits = { attributes: false, events: false, links: false } // what was said to be left out
    this.open = namesOpen ? new Set() : null // spans that have not ended
    this.wantsStart = sink.started !== undefined || namesOpen
    this.wantsEnding = sink.ending !== undefined
    this.endsNow = new Set() // spans that processors see before they end, and might end themselves
  }

  /** What may leave the process of a flat list of attributes. */
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

  /** Says once that a limit leaves something out, as the specification asks. @param {'attributes' | 'events' | 'links'} what */
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

  /** At an application's end: ends the children that nobody has ended, and each says so. Requests close by themselves. */
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

/** Where exceptions are log records: they go where their spans go. */
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
