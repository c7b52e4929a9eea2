'use strict'

// `sampler: 0.1`: loaded where a ratio is asked for.

const { randomnessOf, withThreshold, withoutThreshold, thresholdText } = require('../context/ot-member')
const { HeadSampler, samplerName, DROP, RECORD_AND_SAMPLE } = require('./head-samplers')

const TWO_56 = 72057594037927936n
// Of the 56 that decide, those in the third word of the trace id.
const HIGH_BITS = 0xffffff

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

module.exports = { Ratio, HIGH_BITS }
