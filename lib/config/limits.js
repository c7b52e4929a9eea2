'use strict'

// How much there may be of anything: what a span may hold, what the buffer may hold, how long we wait.

const { COUNT_MAX, DURATION_MAX_MS, EMPTY, bytes, count, duration, object } = require('./checks')

// OpenTelemetry's own default is 128 of each. Its default length of a value is "no limit", which would let
// one attribute of 100 MB through; 16 KiB hold any stack trace.
const DEFAULT_COUNT = 128
const DEFAULT_VALUE_LENGTH = 16384
const DEFAULT_KEPT_CHILDREN = 64

const DEFAULT_BUFFER_BYTES = 32 * 1024 * 1024
const DEFAULT_FLUSH_DELAY_MS = 1000

const checkBuffer = object({ maxBytes: bytes, flushDelayMs: duration })

const checkLimits = object({
  attributes: count,
  attributeValueLength: count,
  events: count,
  links: count,
  attributesPerEvent: count,
  attributesPerLink: count,
  keptChildren: count
})

module.exports = { checkBuffer, checkLimits, resolveBatch, resolveBuffer, resolveLimits }

// The variables of a span win over those of any signal; the names with PER are those of SDK 2.x.
function resolveLimits (given = EMPTY, env) {
  const limit = (name, ...variables) => given[name] ?? env.integer(variables, { max: COUNT_MAX })
  return Object.freeze({
    attributes: limit('attributes', 'OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT', 'OTEL_ATTRIBUTE_COUNT_LIMIT') ?? DEFAULT_COUNT,
    attributeValueLength: limit('attributeValueLength', 'OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT', 'OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT') ?? DEFAULT_VALUE_LENGTH,
    events: limit('events', 'OTEL_SPAN_EVENT_COUNT_LIMIT') ?? DEFAULT_COUNT,
    links: limit('links', 'OTEL_SPAN_LINK_COUNT_LIMIT') ?? DEFAULT_COUNT,
    attributesPerEvent: limit('attributesPerEvent', 'OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT', 'OTEL_SPAN_ATTRIBUTE_PER_EVENT_COUNT_LIMIT') ?? DEFAULT_COUNT,
    attributesPerLink: limit('attributesPerLink', 'OTEL_LINK_ATTRIBUTE_COUNT_LIMIT', 'OTEL_SPAN_ATTRIBUTE_PER_LINK_COUNT_LIMIT') ?? DEFAULT_COUNT,
    keptChildren: given.keptChildren ?? DEFAULT_KEPT_CHILDREN
  })
}

// OTEL_BSP_MAX_QUEUE_SIZE counts spans. Our bound is bytes and has no fair conversion, so it is not read.
function resolveBuffer (given = EMPTY, env) {
  if (given.maxBytes === undefined && env.text('OTEL_BSP_MAX_QUEUE_SIZE') !== undefined) {
    env.inform('OTEL_BSP_MAX_QUEUE_SIZE is not read: it counts spans, the buffer of light-trace is bounded by buffer.maxBytes')
  }
  return Object.freeze({
    maxBytes: given.maxBytes ?? DEFAULT_BUFFER_BYTES,
    flushDelayMs: given.flushDelayMs ?? env.integer(['OTEL_BSP_SCHEDULE_DELAY'], { max: DURATION_MAX_MS }) ?? DEFAULT_FLUSH_DELAY_MS
  })
}

// Unset, the size of a chunk in bytes decides how many spans go together.
function resolveBatch (env) {
  return Object.freeze({
    maxSpans: env.integer(['OTEL_BSP_MAX_EXPORT_BATCH_SIZE'], { min: 1 }) ?? Infinity
  })
}
