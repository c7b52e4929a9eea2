'use strict'

// The decision at the head of a trace, taken before anything but the context is allocated.

const { SAMPLED } = require('../context/trace-context')

const DROP = 0
const RECORD = 1
const RECORD_AND_SAMPLE = 2

/** Decides by ids and flags alone. `hasParent` says that they came from a caller. */
class HeadSampler {
  constructor (parentBased) {
    this.parentBased = parentBased
    this.isCustom = false // ids and flags are enough to decide, see SdkSampler
  }

  // HOT, once per request.
  decide (context, hasParent) {
    if (hasParent && this.parentBased) return (context.flags & SAMPLED) !== 0 ? RECORD_AND_SAMPLE : DROP
    return this.decideRoot(context)
  }
}

class AlwaysOn extends HeadSampler {
  decideRoot () { return RECORD_AND_SAMPLE }
  toString () { return samplerName('AlwaysOnSampler', this) }
}

class AlwaysOff extends HeadSampler {
  decideRoot () { return DROP }
  toString () { return samplerName('AlwaysOffSampler', this) }
}

/**
 * W3C consistent probability sampling by the trace id: its least significant 56 bits are random, and the
 * trace is taken when they are at least (1 − ratio)·2^56. All services with the same ratio agree.
 * https://www.w3.org/TR/trace-context-2/#random-trace-id-flag
 */
class Ratio extends HeadSampler {
  constructor (ratio, parentBased) {
    super(parentBased)
    this.ratio = ratio
    // 2^56 is beyond a double's integers; the threshold is kept as 24 high and 32 low bits.
    const threshold = 72057594037927936n - BigInt(Math.round(ratio * 72057594037927936))
    this.high = Number(threshold >> 32n)
    this.low = Number(threshold & 0xffffffffn)
  }

  decideRoot (context) {
    const high = context.t2 & 0xffffff
    if (high !== this.high) return high > this.high ? RECORD_AND_SAMPLE : DROP
    return (context.t3 >>> 0) >= this.low ? RECORD_AND_SAMPLE : DROP
  }

  toString () { return samplerName(`TraceIdRatioBased{${this.ratio}}`, this) }
}

function samplerName (name, sampler) {
  return sampler.parentBased ? `ParentBased{root=${name}}` : name
}

/** The sampler that an option stands for: the user's own object, or one of ours by name. */
function samplerOf (option, report) {
  if (typeof option.shouldSample !== 'function') return headSampler(option)
  const { SdkSampler } = require('./sdk-sampler') // few have one
  return new SdkSampler(option, report)
}

/** @param {{ kind: 'always_on' | 'always_off' | 'ratio', ratio: number, parentBased: boolean }} options */
function headSampler ({ kind, ratio, parentBased }) {
  if (kind === 'always_on' || (kind === 'ratio' && ratio >= 1)) return new AlwaysOn(parentBased)
  if (kind === 'always_off' || (kind === 'ratio' && ratio <= 0)) return new AlwaysOff(parentBased)
  return new Ratio(ratio, parentBased)
}

/** Writes a decision into the trace that goes on: the sampled flag, and a trace state of the sampler's. */
function applyDecision (trace, { decision, tracestate }) {
  trace.flags = decision === RECORD_AND_SAMPLE ? trace.flags | SAMPLED : trace.flags & ~SAMPLED
  if (tracestate !== undefined) trace.tracestate = tracestate
}

/** Lets through so many a second, with a burst of one second's worth. Time is given, so it reads no clock. */
class RateLimit {
  constructor (perSecond) {
    this.perSecond = perSecond
    // Less than one a second is one, less often; none is none.
    this.burst = perSecond > 0 ? Math.max(1, perSecond) : 0
    this.tokens = this.burst
    this.filledAt = 0
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

module.exports = { samplerOf, headSampler, applyDecision, RateLimit, DROP, RECORD, RECORD_AND_SAMPLE }
