'use strict'

// `maxSampledPerSecond`: lets through so many a second, with a burst of one second's worth. Time is given, so it reads
// no clock.

const { withoutThreshold } = require('../context/ot-member')
const { DROP, RECORD_AND_SAMPLE } = require('./head-samplers')

// After something was dropped, for so long nobody can say how probable it is to be let through.
const BIASED_MS = 1000

class RateLimit {
  constructor (perSecond) {
    this.perSecond = perSecond
    // Less than one a second is one, less often; none is none.
    this.burst = perSecond > 0 ? Math.max(1, perSecond) : 0
    this.tokens = this.burst
    this.filledAt = 0
    this.droppedAt = -Infinity
  }

  take (nowMs) {
    const gained = (nowMs - this.filledAt) * this.perSecond / 1000
    this.filledAt = nowMs
    this.tokens = Math.min(this.burst, this.tokens + gained)
    if (this.tokens < 1) return false
    this.tokens--
    return true
  }

  /** The decision about a trace that the sampler has taken. A threshold in its trace state holds only while nothing is dropped. */
  decide (context, nowMs) {
    const isTaken = this.take(nowMs)
    if (!isTaken) this.droppedAt = nowMs
    if (nowMs - this.droppedAt < BIASED_MS) context.tracestate = withoutThreshold(context.tracestate)
    return isTaken ? RECORD_AND_SAMPLE : DROP
  }
}

module.exports = { RateLimit }
