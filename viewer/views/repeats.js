'use strict'

// Calls that came one after the other under a span, and work that nobody waited for, as light-trace names them: see
// docs/outbound.md. Anybody may have sent the span.

const { readSomeAttributes } = require('../otlp/attributes')
const { KIND_CLIENT, KIND_PRODUCER } = require('../otlp/names')
const { safeText, plural } = require('./safe-text')

const [SHAPE, COUNT, DURATION] = ['shape', 'count', 'duration'].map((name) => `light_trace.repeated.${name}`)
const WANTED = new Set([SHAPE, COUNT, DURATION])
const SHAPE_MAX = 200

/** @returns {{ shape: string, count: number, savedMs: number } | undefined} savedMs: what one call in their place would have saved at best */
function repeatsOf (span) {
  if (span.kind === KIND_CLIENT || span.kind === KIND_PRODUCER) return undefined // it makes no calls, and most spans are these
  const found = readSomeAttributes(span, WANTED)
  const [shape, count, seconds] = [found.get(SHAPE), found.get(COUNT), found.get(DURATION)]
  if (typeof shape !== 'string' || !(count > 1)) return undefined
  return { shape: safeText(shape, SHAPE_MAX), count, savedMs: seconds >= 0 && seconds < 1e9 ? seconds * 1000 * (1 - 1 / count) : 0 }
}

/** '12 calls in sequence: redis GET; batching them could save up to 8.1 ms' */
function repeatText ({ shape, count, savedMs }, duration) {
  return `${plural(count, 'call')} in sequence: ${shape}${savedMs > 0 ? `; batching them could save up to ${duration(savedMs)}` : ''}`
}

// What light-trace writes on a span that ended after its request, that nobody ended, and that stands for many calls.
const MARKS = { 'light_trace.after_response': 'afterResponse', 'light_trace.never_ended': 'neverEnded', 'light_trace.fold.count': 'calls' }
const MARK_KEYS = new Set(Object.keys(MARKS))

/** @returns {{ afterResponse?: true, neverEnded?: true, calls?: number }} */
function marksOf (span) {
  if (!span.bytes.subarray(span.from, span.to).includes('light_trace.')) return {} // most spans: nothing is read
  const found = [...readSomeAttributes(span, MARK_KEYS)].filter(([key, value]) => key === 'light_trace.fold.count' ? value > 1 : value === true)
  return Object.fromEntries(found.map(([key, value]) => [MARKS[key], value]))
}

module.exports = { repeatsOf, repeatText, marksOf }
