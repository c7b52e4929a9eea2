'use strict'

// Samplers that decide at the head of a trace, before anything but the context is allocated, by ids and flags alone.
// Who decides by chance writes with which probability into the trace state (`ot=th`), so that whoever counts the spans
// knows for how many each of them stands. https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/

const { SAMPLED } = require('../context/trace-context')
const { randomnessOf, thresholdOf, withThreshold, withoutThreshold, thresholdText, ALWAYS } = require('../context/ot-member')
const { DROP, RECORD_AND_SAMPLE } = require('./decision')

const TWO_56 = 72057594037927936n
// Of the 56 that decide, those in the third word of the trace id.
const HIGH_BITS = 0xffffff

class HeadSampler {
  constructor (parentBased) {
    this.parentBased = parentBased
    this.isCustom = false // ids and flags are enough to decide, see SdkSampler
    this.tracestate = '' // of each trace that starts here and is taken, where it is always the same
  }

  /**
   * Decides, and where a trace that is taken has a threshold of ours writes it into the context.
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
}

class AlwaysOn extends HeadSampler {
  decideRoot () { return RECORD_AND_SAMPLE }

  /** A caller's threshold was for the caller's decision. */
  decideAnew (context) {
    if (thresholdOf(context.tracestate) !== '') context.tracestate = withThreshold(context.tracestate, ALWAYS)
    return RECORD_AND_SAMPLE
  }

  toString () { return samplerName('AlwaysOnSampler', this) }
}

class AlwaysOff extends HeadSampler {
  decideRoot () { return DROP }

  decideAnew (context) {
    context.tracestate = withoutThreshold(context.tracestate)
    return DROP
  }

  toString () { return samplerName('AlwaysOffSampler', this) }
}

/**
 * W3C consistent probability sampling by the trace id: its least significant 56 bits are random, and the
 * trace is taken when they are at least (1 - ratio)*2^56. All services with the same ratio agree.
 * https://www.w3.org/TR/trace-context-2/#random-trace-id-flag
 */
class Ratio extends HeadSampler {
  constructor (ratio, parentBased) {
    super(parentBased)
    this.ratio = ratio
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
    context.tracestate = isTaken ? withThreshold(context.tracestate, this.threshold) : withoutThreshold(context.tracestate)
    return isTaken ? RECORD_AND_SAMPLE : DROP
  }

  takes (high, low) {
    return high === this.high ? low >= this.low : high > this.high
  }

  toString () { return samplerName(`TraceIdRatioBased{${this.ratio}}`, this) }
}

function samplerName (name, sampler) {
  return sampler.parentBased ? `ParentBased{root=${name}}` : name
}

module.exports = { HeadSampler, AlwaysOn, AlwaysOff, Ratio, samplerName, HIGH_BITS }
