'use strict'

// OpenTelemetry's own member of the W3C tracestate, in which samplers say how they decided:
//
//   ot=th:e666;rv:6e6d1a75832a2f
//
//   th   the rejection threshold, 1 to 14 hex digits of T = (1 - probability)*2^56 without its trailing zeros
//   rv   14 hex digits of randomness, in the place of the last 56 bits of the trace id
//
// Other keys may stand there too: they are kept. What a caller wrote is not trusted to be valid.
// https://opentelemetry.io/docs/specs/otel/trace/tracestate-handling/
// https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/

const { TraceState } = require('./tracestate')

const VALUE_CHARS_MAX = 256

const THRESHOLD = /^[0-9a-f]{1,14}$/
const RANDOMNESS = /^[0-9a-f]{14}$/

/** The threshold of "every one is taken". */
const ALWAYS = '0'

/** Whether there may be a member to look at: spares the usual tracestate the parser. */
function mayHaveOt (tracestate) {
  return tracestate.includes('ot=')
}

/** The digits of `th`, '' where there are none that are valid. */
function thresholdOf (tracestate) {
  const value = mayHaveOt(tracestate) ? subValue(tracestate, 'th') : ''
  return THRESHOLD.test(value) ? value : ''
}

/** The 14 digits of `rv`, '' where there are none that are valid. */
function randomnessOf (tracestate) {
  const value = mayHaveOt(tracestate) ? subValue(tracestate, 'rv') : ''
  return RANDOMNESS.test(value) ? value : ''
}

/**
 * `tracestate` with this threshold in place of any other. The member comes to the front, as W3C asks of one that
 * was changed; what else it holds and all other members stay.
 * @param {string} tracestate one that `cleanTracestate` let through, or ''
 * @param {string} threshold as `thresholdText` writes it
 */
function withThreshold (tracestate, threshold) {
  if (tracestate === '') return `ot=th:${threshold}`
  const state = new TraceState(tracestate)
  let value = `th:${threshold}`
  for (const part of otherParts(state)) {
    if (value.length + 1 + part.length <= VALUE_CHARS_MAX) value += `;${part}`
  }
  return state.set('ot', value).serialize()
}

/** `tracestate` without a threshold: nobody knows how probable this span was. */
function withoutThreshold (tracestate) {
  if (!mayHaveOt(tracestate)) return tracestate
  const state = new TraceState(tracestate)
  const value = state.get('ot')
  if (value === undefined || !/(?:^|;)th:/.test(value)) return tracestate
  const rest = otherParts(state).join(';')
  return rest === '' ? state.unset('ot').serialize() : state.set('ot', rest).serialize()
}

/** A threshold of 24 high and 32 low bits as `th` has it. */
function thresholdText (high, low) {
  const digits = high.toString(16).padStart(6, '0') + low.toString(16).padStart(8, '0')
  let end = digits.length
  while (end > 1 && digits[end - 1] === '0') end--
  return digits.slice(0, end)
}

function subValue (tracestate, key) {
  const part = partsOf(new TraceState(tracestate)).find((part) => part.startsWith(`${key}:`))
  return part === undefined ? '' : part.slice(key.length + 1)
}

function otherParts (state) {
  return partsOf(state).filter((part) => !part.startsWith('th:'))
}

function partsOf (state) {
  return (state.get('ot') ?? '').split(';').filter((part) => part !== '')
}

module.exports = { thresholdOf, randomnessOf, withThreshold, withoutThreshold, thresholdText, ALWAYS }
