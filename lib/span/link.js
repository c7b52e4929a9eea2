'use strict'

// What a link of the user's points to, copied when it is added: its owner may change it later, and none of
// its code may run when the span is written, where a throw would end the process.

const { stateOf } = require('../context/trace-context')

/** The SpanContext of a link, or undefined where it is none. */
function linkedContext (link) {
  try {
    const { traceId, spanId, traceFlags, traceState, isRemote } = link.context
    if (!isHex(traceId, /^[0-9a-f]{32}$/) || !isHex(spanId, /^[0-9a-f]{16}$/)) return undefined
    const context = { traceId, spanId, traceFlags: typeof traceFlags === 'number' ? traceFlags & 0xff : 0 }
    const tracestate = serialized(traceState)
    if (tracestate !== '') context.traceState = stateOf(tracestate)
    if (typeof isRemote === 'boolean') context.isRemote = isRemote
    return context
  } catch {
    return undefined
  }
}

function isHex (value, pattern) {
  return typeof value === 'string' && pattern.test(value)
}

/** A trace state that cannot be read loses itself, not the link. */
function serialized (traceState) {
  try {
    if (traceState === undefined || traceState === null) return ''
    const { cleanTracestate } = require('../context/tracestate')
    return cleanTracestate(traceState.serialize())
  } catch {
    return ''
  }
}

function attributesOf (link) {
  try {
    return link.attributes
  } catch {
    return undefined
  }
}

module.exports = { linkedContext, attributesOf }
