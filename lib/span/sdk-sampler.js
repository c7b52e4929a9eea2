'use strict'

// A Sampler of the OpenTelemetry SDK, or anything with its shape, asked as the SDK asks. It is the user's
// code: what it answers is checked, and what is no answer is "not sampled", logged once.

const { cleanTracestate } = require('../context/tracestate')
const { DROP, RECORD, RECORD_AND_SAMPLE } = require('./head-samplers')

class SdkSampler {
  #sampler
  #report

  constructor (sampler, report) {
    this.#sampler = sampler
    this.#report = report
    // Its answer depends on more than the ids, see SpanStarter.
    this.isCustom = true
  }

  /**
   * @param {Context} context with the parent, where there is one
   * @param {TraceContext} trace the ids that the span will have
   * @param {string} name
   * @param {number} kind as the API counts
   * @param {object} attributes those known at the start
   * @param {Link[]} links
   * @returns {{ decision: number, attributes: object | undefined, tracestate: string | undefined }}
   */
  ask (context, trace, name, kind, attributes, links) {
    try {
      const result = this.#sampler.shouldSample(context, trace.traceId, name, kind, attributes, links)
      const { decision, attributes: added, traceState } = result
      if (decision === DROP || decision === RECORD || decision === RECORD_AND_SAMPLE) {
        return { decision, attributes: isObject(added) ? added : undefined, tracestate: textOf(traceState) }
      }
      this.#warn(`answered ${typeof decision === 'number' ? decision : typeof decision} as its decision`)
    } catch (error) {
      this.#warn(`failed: ${error?.message}`)
    }
    return { decision: DROP, attributes: undefined, tracestate: undefined }
  }

  toString () {
    return String(this.#sampler)
  }

  #warn (what) {
    this.#report.once('LT_WARN_SAMPLER', `the sampler ${what}; such spans are not sampled`)
  }
}

function textOf (traceState) {
  return traceState === undefined || traceState === null ? undefined : cleanTracestate(traceState.serialize())
}

function isObject (value) {
  return value !== null && typeof value === 'object'
}

module.exports = { SdkSampler }
