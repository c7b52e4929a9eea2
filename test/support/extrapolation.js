'use strict'

// How a backend counts sampled spans. Written from OpenTelemetry's "TraceState: Probability Sampling" and without code of the library:
// integers are BigInt, and text is read with regular expressions.

const TWO_56 = 2n ** 56n
const MEMBER = /^\s*ot=(.*)$/
const THRESHOLD = /^th:([0-9a-f]{1,14})$/

module.exports = { probabilityOf, extrapolate }

/** Returns the probability with which a span was sampled, from its tracestate. Without a threshold it is 1. */
function probabilityOf (tracestate) {
  for (const member of tracestate.split(',')) {
    const value = MEMBER.exec(member)?.[1]
    const digits = value?.split(';').map((part) => THRESHOLD.exec(part)?.[1]).find((found) => found !== undefined)
    if (digits !== undefined) return Number(TWO_56 - BigInt('0x' + digits.padEnd(14, '0'))) / Number(TWO_56)
  }
  return 1
}

/** Returns the estimated number of all spans, and the standard deviation of that estimate (Horvitz-Thompson). */
function extrapolate (spans) {
  let count = 0
  let variance = 0
  for (const span of spans) {
    const probability = probabilityOf(span.traceState)
    count += 1 / probability
    variance += (1 - probability) / probability ** 2
  }
  return { count, deviation: Math.sqrt(variance) }
}
