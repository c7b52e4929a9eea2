'use strict'

// Reads what light-trace recorded about calls in sequence under a span, and about work after the response: see docs/outbound.md. Any sender
// may have sent the span, so the values are not trusted.

const { readSomeAttributes } = require('../otlp/attributes')
const { KIND_CLIENT, KIND_PRODUCER } = require('../otlp/names')
const { safeText, plural } = require('./safe-text')

const [SHAPE, COUNT, DURATION] = ['shape', 'count', 'duration'].map((name) => `light_trace.repeated.${name}`)
const WANTED = new Set([SHAPE, COUNT, DURATION])
const SHAPE_MAX = 200

/** @returns {{ shape: string, count: number, savedMs: number } | undefined} savedMs: the most that a single call in their place could save */
function repeatsOf (span) {
  if (span.kind === KIND_CLIENT || span.kind === KIND_PRODUCER) return undefined // these spans make no calls, and most spans are of these kinds
  const found = readSomeAttributes(span, WANTED)
  const [shape, count, seconds] = [found.get(SHAPE), found.get(COUNT), found.get(DURATION)]
  if (typeof shape !== 'string' || !(count > 1)) return undefined
  return { shape: safeText(shape, SHAPE_MAX), count, savedMs: seconds >= 0 && seconds < 1e9 ? seconds * 1000 * (1 - 1 / count) : 0 }
}

/** '12 calls in sequence: redis GET; batching them could save up to 8.1 ms' */
function repeatText ({ shape, count, savedMs }, duration) {
  return `${plural(count, 'call')} in sequence: ${shape}${savedMs > 0 ? `; batching them could save up to ${duration(savedMs)}` : ''}`
}

// The attributes that light-trace sets on a span that ended after the response, never ended, or represents many calls.
const MARKS = { 'light_trace.after_response': 'afterResponse', 'light_trace.never_ended': 'neverEnded', 'light_trace.fold.count': 'calls' }
const MARK_KEYS = new Set(Object.keys(MARKS))

/** @returns {{ afterResponse?: true, neverEnded?: true, calls?: number }} */
function marksOf (span) {
  if (!span.bytes.subarray(span.from, span.to).includes('light_trace.')) return {} // true for most spans, which are then not parsed
  const found = [...readSomeAttributes(span, MARK_KEYS)].filter(([key, value]) => key === 'light_trace.fold.count' ? value > 1 : value === true)
  return Object.fromEntries(found.map(([key, value]) => [MARKS[key], value]))
}

module.exports = { repeatsOf, repeatText, marksOf }
