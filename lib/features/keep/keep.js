'use strict'

// `keep`: decides at the end of a request whether it is exported although the sampler did not take it, with a limit per second.
//
// As long as few requests fail or are slow, each of them is kept. Above the limit, the trace id decides, as in a rate-limiting sampler.
// The lower one of the sampler's and this threshold then tells how many failed or slow requests a span represents.

const { ALWAYS, randomnessOf, thresholdOf, withThreshold } = require('../../context/tracestate.js')
const { SAMPLED } = require('../../context/trace-context.js')
const { read } = require('../../span/attributes.js')
const { KeepServerSpan } = require('./keep-span.js')
const { Recorder } = require('./recorder.js')
const { FairRate, RouteRate } = require('../../sampling/sampler.js')

// Callers choose trace ids, and could choose ids that are always kept. Above a debt of this many seconds of the rate, nothing is kept.
const DEBT_SECONDS_MAX = 4

class Keep {
  /** @param {{ notKept: number }} stats counts requests that are over the limit */
  constructor (settings, stats, report, recorder = null) {
    this.settings = settings
    this.recorder = recorder // of unsampled requests, or null
    this.rate = settings.maxPerSecond === Infinity ? null : new FairRate(settings.maxPerSecond)
    this.stats = stats
    /** @type {Report} */ this.report = report
  }

  /** Creates the span of a request that is decided at its end. */
  serverSpan (pipeline, start, route, peer, url) { return new KeepServerSpan(pipeline, start, route, peer, url, this) }

  /** 'error', 'slow', or '' if the settings do not keep the request. `outcome`: see lib/span/outcome.js. */
  reasonFor (outcome, durationMs, slowAfterMs) {
    if (outcome !== '' && this.settings[outcome]) return 'error'
    return this.settings.slow && durationMs >= slowAfterMs ? 'slow' : ''
  }

  /**
   * The tracestate with which a request that has a reason is exported; null if it is over the limit.
   * @param {ServerSpan} span @param {number} now milliseconds on the monotonic clock
   */
  take (span, now) {
    const { tracestate, route, flags } = span
    const threshold = this.rate === null ? ALWAYS : this.thresholdFor(tracestate, span.t2, route, now)
    if ((flags & SAMPLED) !== 0) return threshold === '' ? tracestate : lower(tracestate, threshold)
    if (threshold !== '') return withThreshold(tracestate, threshold)
    this.stats.notKept++
    this.report.warn('LT_WARN_KEEP_LIMIT', `more than ${this.rate.perSecond} requests a second failed or were slow: a sample of ` +
      'them is kept with an adjusted sampling threshold, stats().spans.notKept counts the rest (`keep.maxPerSecond`)')
    return null
  }

  thresholdFor (tracestate, t2, route, now) {
    const { rate } = this
    rate.settle(now)
    if (rate.debt > DEBT_SECONDS_MAX * rate.brakeOver) return ''
    const random = randomnessOf(tracestate)
    if (route.keepRate?.owner !== rate) route.keepRate = new RouteRate(now, rate)
    return thresholdOf(rate.take(route.keepRate, random === '' ? t2 & 0xffffff : parseInt(random.slice(0, 6), 16), now))
  }
}

/** The tracestate of a sampled request, with the lower one of the sampler's threshold and this one. */
function lower (tracestate, threshold) {
  const own = thresholdOf(tracestate)
  // Hex fractions without trailing zeros sort like text. Without a threshold, the sampler took all requests or its probability is unknown.
  return threshold === ALWAYS || threshold < own ? withThreshold(tracestate, threshold) : tracestate
}

const ASKED_ALONE = Object.freeze({ errors: false, aborted: false, slow: false }) // if only `keep.recorder` is set

/** An application's part: `keep`, which `configFile` can change, and the recorder. */
class KeepPart {
  #tracer
  #recorder = null

  constructor (tracer) {
    this.#tracer = tracer
    this.settings = tracer.settings.keep // applied in `decided`, when the output of spans is known
  }

  /** @param {object | null} settings from the options or `configFile` */
  use (settings) {
    const tracer = this.#tracer
    const { output, ownStarter, stats, report } = tracer
    this.settings = settings
    const isUnheard = output !== null && output.sdkSpans !== null
    if (isUnheard && settings !== null) report.warn('LT_WARN_KEEP', "keep has no effect: the tracer provider's sampler decides")
    const asked = settings ?? (this.#recorder === null ? null : { ...ASKED_ALONE, maxPerSecond: tracer.settings.recorder.keptPerSecond })
    tracer.keep = asked === null || isUnheard ? null : new Keep(asked, stats, report, this.#recorder)
    if (ownStarter === null) return
    ownStarter.keep = tracer.keep
    ownStarter.decidesByIds = tracer.decidesByIds
  }

  /** Creates the recorder. It holds encoded spans for a collector, and span processors would miss spans that are only recorded. */
  decided () {
    const { settings: { recorder }, output, mode, stats, report, omit } = this.#tracer
    if (recorder !== null && mode === 'native' && !output.isBeside) this.#recorder = new Recorder(recorder, output, stats, report, omit)
    else if (recorder !== null) report.warn('LT_WARN_RECORDER', `keep.recorder has no effect: spans must go to a collector and nowhere else, and here ${output.reason}`, 'no effect')
    this.use(this.settings)
  }

  loopBlocked () { this.#recorder?.loopBlocked() }
  stats () { return this.#recorder === null ? {} : { recorder: this.#recorder.state } }
  flush () { this.#recorder?.finishReleases() }
  stop () { this.#recorder?.close() }

  /** Sends the recorded spans, see index.d.ts. */
  async snapshot (options) {
    const { settings: { recorder }, report } = this.#tracer
    if (this.#recorder !== null) return this.#recorder.snapshot(read(options, 'seconds'), read(options, 'reason'))
    return nothingToTake(report, recorder === null ? 'the option `keep.recorder` is not set' : 'the application is not ready')
  }
}

function nothingToTake (report, why) {
  report.warn('LT_WARN_RECORDER', `no snapshot taken: ${why}`, 'no effect')
  return { spans: 0, missed: 0 }
}

module.exports = { attach: (tracer) => new KeepPart(tracer), nothingToTake, Keep }
