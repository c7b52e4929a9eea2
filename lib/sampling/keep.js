'use strict'

// `keep`: which requests are exported though the sampler has not taken them, once they have ended, and at most so many a second.
//
// Of those that failed or were slow each is kept, as long as they are few. Else the trace id decides, as a sampler by rate does:
// whether it is sampled or kept, the lower threshold of both says how many such requests a span stands for.

const { ALWAYS, randomnessOf, thresholdOf, withThreshold } = require('../context/tracestate.js')
const { SAMPLED } = require('../context/trace-context.js')
const { FairRate, RouteRate } = require('./sampler.js')

// Callers choose their ids, and could choose such that are always kept. Beyond so many seconds' worth nothing is.
const DEBT_SECONDS_MAX = 4

class Keep {
  /** @param {{ notKept: number }} stats counts what is left out */
  constructor (settings, stats, report) {
    this.settings = settings
    this.rate = settings.maxPerSecond === Infinity ? null : new FairRate(settings.maxPerSecond)
    this.stats = stats
    /** @type {Report} */ this.report = report
  }

  /** 'error', 'slow', or '' where it is not asked for. `outcome`: see lib/span/outcome.js. */
  reasonFor (outcome, durationMs) {
    if (outcome !== '' && this.settings[outcome]) return 'error'
    return durationMs > this.settings.slowerThanMs ? 'slow' : ''
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
    this.report.warn('LT_WARN_KEEP_LIMIT', `more than ${this.rate.perSecond} requests a second failed or were slow: some of ` +
      'them are kept, and say for how many they stand; stats().spans.notKept counts the others; keep.maxPerSecond is the limit')
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

module.exports = { Keep }
