'use strict'

// How a backend counts sampled spans, written from OpenTelemetry's "TraceState: Probability Sampling" and from nothing
// of ours: whole numbers as BigInt, text by regular expressions, no bit of the library.

const TWO_56 = 2n ** 56n
const MEMBER = /^\s*ot=(.*)$/
const THRESHOLD = /^th:([0-9a-f]{1,14})$/

module.exports = { probabilityOf, extrapolate }

/** The probability with which a span was taken, by its tracestate; 1 where it says nothing. */
function probabilityOf (tracestate) {
  for (const member of tracestate.split(',')) {
    const value = MEMBER.exec(member)?.[1]
    const digits = value?.split(';').map((part) => THRESHOLD.exec(part)?.[1]).find((found) => found !== undefined)
    if (digits !== undefined) return Number(TWO_56 - BigInt('0x' + digits.padEnd(14, '0'))) / Number(TWO_56)
  }
  return 1
}

/** What the spans say of all that happened, and the standard deviation of that estimate (Horvitz and Thompson). */
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
