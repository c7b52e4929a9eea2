'use strict'

// Samplers that decide at the head of a trace, before anything but the context is allocated, by ids and flags alone.
// Who decides by chance writes with which probability into the trace state (`ot=th`), so that whoever counts the spans
// knows for how many each of them stands. https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/

const { SAMPLED } = require('../context/trace-context')

// What a sampler answers, in the numbers of the OpenTelemetry SDK.
const DROP = 0
const RECORD = 1
const RECORD_AND_SAMPLE = 2

// Read only by those who do not follow their caller.
let otMember = null

class HeadSampler {
  constructor (parentBased) {
    if (!parentBased) otMember ??= require('../context/ot-member')
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
    if (otMember.thresholdOf(context.tracestate) !== '') context.tracestate = otMember.withThreshold(context.tracestate, otMember.ALWAYS)
    return RECORD_AND_SAMPLE
  }

  toString () { return samplerName('AlwaysOnSampler', this) }
}

class AlwaysOff extends HeadSampler {
  decideRoot () { return DROP }

  decideAnew (context) {
    context.tracestate = otMember.withoutThreshold(context.tracestate)
    return DROP
  }

  toString () { return samplerName('AlwaysOffSampler', this) }
}

function samplerName (name, sampler) {
  return sampler.parentBased ? `ParentBased{root=${name}}` : name
}

module.exports = { HeadSampler, AlwaysOn, AlwaysOff, samplerName, DROP, RECORD, RECORD_AND_SAMPLE }
