'use strict'

// The sampler that an option stands for, and what its decision does to a trace.
//
// Head samplers decide when a trace begins, by ids and flags alone, before anything but the context is allocated. Those that
// decide by chance write the probability into the trace state (`ot=th`): it says for how many spans each exported one stands.
// https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/

const { SAMPLED } = require('../context/trace-context')
const {
  ALWAYS, randomnessOf, thresholdOf, withThreshold, withoutThreshold, thresholdText, cleanTracestate
} = require('../context/tracestate')
const { atOnce } = require('../runtime/user-code')
const { FairRate, RouteRate } = require('./per-second')

// What a sampler answers, in the numbers of the OpenTelemetry SDK.
const DROP = 0
const RECORD = 1
const RECORD_AND_SAMPLE = 2

const TWO_56 = 72057594037927936n
// Of the 56 random bits of a trace id, those in its third word.
const HIGH_BITS = 0xffffff

// For so long after a drop by a limit the probability of being let through is unknown.
const BIASED_MS = 1000

/** The sampler of an option: the user's own object, or one of ours by name. */
function samplerOf (option, report) {
  return typeof option.shouldSample === 'function' ? new SdkSampler(option, report) : headSampler(option)
}

/** The sampler of what lib/config/sampler.js made of the option. */
function headSampler ({ kind, ratio, perSecond, parentBased }) {
  switch (kind) {
    case 'per_second': return new PerSecond(perSecond)
    case 'always_on': return new HeadSampler(parentBased, true)
    case 'always_off': return new HeadSampler(parentBased)
    default: return new Ratio(ratio, parentBased)
  }
}

/** Writes a decision into the trace that goes on: the sampled flag, and a trace state of the sampler's. */
function applyDecision (trace, { decision, tracestate }) {
  trace.flags = decision === RECORD_AND_SAMPLE ? trace.flags | SAMPLED : trace.flags & ~SAMPLED
  if (tracestate !== undefined) trace.tracestate = tracestate
}

/** The base of all samplers of ours. By itself it takes each new trace or none. */
class HeadSampler {
  constructor (parentBased, takesAll = false) {
    this.parentBased = parentBased
    this.takesAll = takesAll
    /** @type {false} */
    this.isCustom = false // ids and flags are enough to decide, see SdkSampler
    this.tracestate = '' // of each trace that starts here and is taken, where it is always the same
  }

  /**
   * Decides, and writes the threshold of a trace that it takes into the context.
   * @param {TraceContext | IncomingContext} context
   * @param {boolean} hasParent whether its ids came from a caller
   * @param {number} now milliseconds on the monotonic clock
   * @param {RouteInfo | undefined} route of a request
   */
  // HOT, once per request.
  decide (context, hasParent, now, route) {
    if (!hasParent) return this.decideRoot(context, now, route)
    if (this.parentBased) return (context.flags & SAMPLED) !== 0 ? RECORD_AND_SAMPLE : DROP
    return this.decideAnew(context)
  }

  decideRoot (_context, _now, _route) {
    return this.takesAll ? RECORD_AND_SAMPLE : DROP
  }

  /** The decision about a caller's trace, whatever the caller has decided: a threshold that came holds no longer. */
  decideAnew (context) {
    if (!this.takesAll) context.tracestate = withoutThreshold(context.tracestate)
    else if (thresholdOf(context.tracestate) !== '') context.tracestate = withThreshold(context.tracestate, ALWAYS)
    return this.takesAll ? RECORD_AND_SAMPLE : DROP
  }
}

/**
 * `sampler: 0.1`. W3C consistent probability sampling: a trace is taken when the least significant 56 bits of its id, which are
 * random, are at least (1 - ratio)*2^56. All services with the same ratio agree.
 * https://www.w3.org/TR/trace-context-2/#random-trace-id-flag
 */
class Ratio extends HeadSampler {
  constructor (ratio, parentBased) {
    super(parentBased)
    // 2^56 is beyond a double's integers; the threshold is kept as 24 high and 32 low bits.
    const threshold = TWO_56 - BigInt(Math.round(ratio * Number(TWO_56)))
    this.high = Number(threshold >> 32n)
    this.low = Number(threshold & 0xffffffffn)
    // All its digits: a shorter one would not be the threshold that decides.
    this.threshold = thresholdText(this.high, this.low)
    this.tracestate = withThreshold('', this.threshold)
  }

  decideRoot (context) {
    if (!this.takes(context.t2 & HIGH_BITS, context.t3 >>> 0)) return DROP
    context.tracestate = this.tracestate
    return RECORD_AND_SAMPLE
  }

  decideAnew (context) {
    const random = randomnessOf(context.tracestate)
    const isTaken = random === ''
      ? this.takes(context.t2 & HIGH_BITS, context.t3 >>> 0)
      : this.takes(parseInt(random.slice(0, 6), 16), parseInt(random.slice(6), 16))
    if (!isTaken) return super.decideAnew(context)
    context.tracestate = withThreshold(context.tracestate, this.threshold)
    return RECORD_AND_SAMPLE
  }

  takes (high, low) {
    return high === this.high ? low >= this.low : high > this.high
  }
}

/** `sampler: { perSecond }`. Callers that have decided are followed, and not counted. */
class PerSecond extends HeadSampler {
  constructor (perSecond) {
    super(true)
    this.rate = new FairRate(perSecond)
    this.elsewhere = new RouteRate() // traces that no request has started
  }

  decideRoot (context, now, route) {
    const routeRate = route === undefined ? this.elsewhere : (route.rate ??= new RouteRate())
    const tracestate = this.rate.take(routeRate, context.t2 & HIGH_BITS, now)
    if (tracestate === '') return DROP
    context.tracestate = tracestate
    return RECORD_AND_SAMPLE
  }
}

/** `maxSampledPerSecond`: lets through so many a second, with a burst of one second's worth. Time is given. */
class RateLimit {
  constructor (perSecond) {
    this.perSecond = perSecond
    this.burst = perSecond > 0 ? Math.max(1, perSecond) : 0 // less than one a second is one, less often
    this.tokens = this.burst
    this.filledAt = 0
    this.droppedAt = -Infinity
  }

  /** The decision about a trace that the sampler has taken. A threshold in its trace state holds only while nothing is dropped. */
  decide (context, nowMs) {
    const isTaken = this.take(nowMs)
    if (!isTaken) this.droppedAt = nowMs
    if (nowMs - this.droppedAt < BIASED_MS) context.tracestate = withoutThreshold(context.tracestate)
    return isTaken ? RECORD_AND_SAMPLE : DROP
  }

  take (nowMs) {
    const gained = (nowMs - this.filledAt) * this.perSecond / 1000
    this.filledAt = nowMs
    this.tokens = Math.min(this.burst, this.tokens + gained)
    if (this.tokens < 1) return false
    this.tokens--
    return true
  }
}

/** A Sampler in the shape of the OpenTelemetry SDK's. It is user code: a wrong answer means "not sampled" and is logged once. */
class SdkSampler {
  #sampler
  #report

  constructor (sampler, report) {
    this.#sampler = sampler
    this.#report = report
    /** @type {true} */
    this.isCustom = true // its answer depends on more than the ids, see SpanStarter
    this.tracestate = ''
  }

  /**
   * Asks as the SDK asks, with the ids that the span will have and the attributes that are known at its start.
   * @returns {{ decision: number, attributes: object | undefined, tracestate: string | undefined }}
   */
  ask (context, trace, name, kind, attributes, links) {
    try {
      const result = atOnce(this.#sampler.shouldSample(context, trace.traceId, name, kind, attributes, links))
      const { decision, attributes: added, traceState } = result
      if (decision === DROP || decision === RECORD || decision === RECORD_AND_SAMPLE) {
        return {
          decision,
          attributes: added !== null && typeof added === 'object' ? added : undefined,
          tracestate: traceState === undefined || traceState === null ? undefined : cleanTracestate(traceState.serialize())
        }
      }
      const answer = typeof decision === 'number' ? decision : typeof decision
      this.#report.once('LT_WARN_SAMPLER', `the sampler answered ${answer} as its decision; such spans are not sampled`)
    } catch (error) {
      this.#report.failed('LT_WARN_SAMPLER', 'the sampler failed; such spans are not sampled', error)
    }
    return { decision: DROP, attributes: undefined, tracestate: undefined }
  }
}

module.exports = { samplerOf, headSampler, applyDecision, RateLimit, DROP, RECORD_AND_SAMPLE }
