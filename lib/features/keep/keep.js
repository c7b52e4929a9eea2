'use strict'

// `keep`: which requests are exported though the sampler has not taken them, once they have ended, and at most so many a second.
//
// Of those that failed or were slow each is kept, as long as they are few. Else the trace id decides, as a sampler by rate does:
// whether it is sampled or kept, the lower threshold of both says how many such requests a span stands for.

const { ALWAYS, randomnessOf, thresholdOf, withThreshold } = require('../../context/tracestate.js')
const { SAMPLED } = require('../../context/trace-context.js')
const { read } = require('../../span/attributes.js')
const { KeepServerSpan } = require('./keep-span.js')
const { Recorder } = require('./recorder.js')
const { FairRate, RouteRate } = require('../../sampling/sampler.js')

// Callers choose their ids, and could choose such that are always kept. Beyond so many seconds' worth nothing is.
const DEBT_SECONDS_MAX = 4

class Keep {
  /** @param {{ notKept: number }} stats counts what is left out */
  constructor (settings, stats, report, recorder = null) {
    this.settings = settings
    this.recorder = recorder // of requests that are not sampled, where there is one
    this.rate = settings.maxPerSecond === Infinity ? null : new FairRate(settings.maxPerSecond)
    this.stats = stats
    /** @type {Report} */ this.report = report
  }

  /** The span of a request whose end decides. */
  serverSpan (pipeline, start, route, peer, url) { return new KeepServerSpan(pipeline, start, route, peer, url, this) }

  /** 'error', 'slow', or '' where it is not asked for. `outcome`: see lib/span/outcome.js. */
  reasonFor (outcome, durationMs, slowAfterMs) {
    if (outcome !== '' && this.settings[outcome]) return 'error'
    return this.settings.slow && durationMs >= slowAfterMs ? 'slow' : ''
  }

  /**
   * The tracestate to export a request with that there is a reason for, or null where it is one too many.
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

/** A sampled request's tracestate: whoever takes all of them by a lower threshold than the sampler's says how many there are. */
function lower (tracestate, threshold) {
  const own = thresholdOf(tracestate)
  // Hex fractions without trailing zeros are in the order of their text. Without one the sampler took all, or does not say.
  return threshold === ALWAYS || threshold < own ? withThreshold(tracestate, threshold) : tracestate
}

const ASKED_ALONE = Object.freeze({ errors: false, aborted: false, slow: false }) // where the recorder alone is asked for

/** An application's part: `keep`, which `configFile` may change, and the recorder. */
class KeepPart {
  #tracer
  #recorder = null

  constructor (tracer) {
    this.#tracer = tracer
    this.settings = tracer.settings.keep // until it is decided how spans leave, and there is something to use them for
  }

  /** @param {object | null} settings as the options or `configFile` say */
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

  /** The recorder holds spans as a collector takes them, and processors would not see those that are only recorded. */
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

  /** Sends what the recorder has, see index.d.ts. */
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
