'use strict'

// The sampler that an option stands for, and what its decision does to a trace.

const { SAMPLED } = require('../context/trace-context')
const { AlwaysOn, AlwaysOff, DROP, RECORD, RECORD_AND_SAMPLE } = require('./head-samplers')

/** The user's own object, or one of ours by name. */
function samplerOf (option, report) {
  if (typeof option.shouldSample !== 'function') return headSampler(option)
  const { SdkSampler } = require('./sdk-sampler') // few have one
  return new SdkSampler(option, report)
}

/** @param {{ kind: 'always_on' | 'always_off' | 'ratio' | 'per_second', ratio?: number, perSecond?: number, parentBased: boolean }} options */
function headSampler ({ kind, ratio, perSecond, parentBased }) {
  if (kind === 'per_second') {
    const { PerSecond } = require('./per-second') // few have one
    return new PerSecond(perSecond)
  }
  if (kind === 'always_on' || (kind === 'ratio' && ratio >= 1)) return new AlwaysOn(parentBased)
  if (kind === 'always_off' || (kind === 'ratio' && ratio <= 0)) return new AlwaysOff(parentBased)
  const { Ratio } = require('./ratio-sampler')
  return new Ratio(ratio, parentBased)
}

function rateLimitOf (perSecond) {
  const { RateLimit } = require('./rate-limit')
  return new RateLimit(perSecond)
}

/** Writes a decision into the trace that goes on: the sampled flag, and a trace state of the sampler's. */
function applyDecision (trace, { decision, tracestate }) {
  trace.flags = decision === RECORD_AND_SAMPLE ? trace.flags | SAMPLED : trace.flags & ~SAMPLED
  if (tracestate !== undefined) trace.tracestate = tracestate
}

module.exports = { samplerOf, headSampler, applyDecision, rateLimitOf, DROP, RECORD, RECORD_AND_SAMPLE }
