'use strict'

// What stands around the spans of one request to the collector, and how they are cut in two where they are too many for it.
//
//   ExportTraceServiceRequest  0A <len, 4 bytes>          resource_spans
//     ResourceSpans            0A <len> resource
//                              1A <len> schema URL
//                              12 <len, 4 bytes>          scope_spans, from the chunks
//       ScopeSpans             0A <len> scope, then spans

const { Buffer } = require('node:buffer')
const { SCHEMA_URL } = require('../span/recording-span')
const { encodeAttributes, field, text } = require('./proto-writer')

const SCOPES_MAX = 256

class ExportRequestPrefix {
  /** @param {{ attributes: object }} resource as config/resource.js resolves it */
  constructor (resource) {
    // The resource's schema URL comes after scope_spans by its number; a reader takes any order.
    const attributes = encodeAttributes(0x0a, Object.entries(resource.attributes).flat())
    this.resource = Buffer.concat([field(0x0a, attributes), text(0x1a, SCHEMA_URL)])
  }

  /** Returns the bytes that stand before `chunkBytes` bytes of scope_spans. */
  head (chunkBytes) {
    return Buffer.concat([headerOf(0x0a, this.resource.length + chunkBytes), this.resource])
  }
}

const scopes = new Map()

/** Returns the first fields of scope_spans: for equal scopes the same bytes, so that they can be compared by identity. */
function encodeScope (scope) {
  return scope.encoded ?? remember(scope)
}

function remember (scope) {
  const { key, name, version = '', schemaUrl = '' } = scope
  let bytes = scopes.get(key)
  if (bytes === undefined) {
    const parts = [field(0x0a, version === '' ? text(0x0a, name) : Buffer.concat([text(0x0a, name), text(0x12, version)]))]
    // By number it comes after the spans; a reader takes any order.
    if (schemaUrl !== '') parts.push(text(0x1a, schemaUrl))
    bytes = new Uint8Array(Buffer.concat(parts)) // as all that the writer copies: one class, one code
    if (scopes.size >= SCOPES_MAX) scopes.clear() // names made of user data: start over rather than grow
    scopes.set(key, bytes)
  }
  scope.encoded = bytes
  return bytes
}

// The bytes of a chunk. Lengths are varints, padded or not.
//
//   chunk bytes = scope_spans, fields of ResourceSpans
//   scope_spans = 0x12 | length | scope 0x0a ... | span 0x12 ... | span 0x12 ... |
//                                              ^ a cut inside of them repeats what precedes its spans

const TAG_SCOPE_SPANS = 0x12
const TAG_SPAN = 0x12
const HEADER_BYTES = 5

/**
 * Cuts the bytes of a chunk in two between spans, for a collector that found them too large.
 * @returns {{ bytes: Buffer, spans: number }[] | null} two in memory of their own, or null if there is nothing to cut
 */
function halvesOf (bytes, length, spans) {
  const keep = spans >> 1
  const found = spansIn(bytes, length)
  if (keep === 0 || found === null || found.length <= keep) return null
  return [{ bytes: chunkOf(found.slice(0, keep)), spans: keep }, { bytes: chunkOf(found.slice(keep)), spans: spans - keep }]
}

/** Finds the spans, each with what its scope_spans begin with; null where there is more behind them, which would be lost. */
function spansIn (bytes, length) {
  const found = []
  for (let at = 0; at < length;) {
    const body = fieldAt(bytes, at, length)
    if (body === null || bytes[at] !== TAG_SCOPE_SPANS || body.start - at !== HEADER_BYTES) return null
    let scope = null
    for (at = body.start; at < body.end;) {
      const field = fieldAt(bytes, at, body.end)
      if (field === null || (scope !== null && bytes[at] !== TAG_SPAN)) return null
      if (bytes[at] === TAG_SPAN) {
        scope ??= bytes.subarray(body.start, at)
        found.push({ scope, span: bytes.subarray(at, field.end) })
      }
      at = field.end
    }
  }
  return found
}

function chunkOf (spans) {
  const runs = new Map() // of one scope_spans each: what they begin with, and the spans
  for (const { scope, span } of spans) {
    if (!runs.has(scope)) runs.set(scope, [scope])
    runs.get(scope).push(span)
  }
  return Buffer.concat(Array.from(runs.values(), (run) => Buffer.concat(run)).flatMap((body) => [headerOf(TAG_SCOPE_SPANS, body.length), body]))
}

/** Returns the bounds of the length-delimited field at `at`, whose tag is one byte; null if it is none or reaches over `end`. */
function fieldAt (bytes, at, end) {
  const tag = bytes[at++]
  if (tag % 8 !== 2 || tag >= 0x80) return null
  let length = 0
  for (let i = 0; i < 5 && at < end; i++) {
    const byte = bytes[at++]
    length += (byte & 0x7f) * 2 ** (7 * i)
    if (byte < 0x80) return length <= end - at ? { start: at, end: at + length } : null
  }
  return null
}

/** Returns a tag and a length in the four bytes that the encoder always takes. */
function headerOf (tag, length) {
  return Buffer.of(tag, (length & 0x7f) | 0x80, ((length >> 7) & 0x7f) | 0x80, ((length >> 14) & 0x7f) | 0x80, (length >> 21) & 0x7f)
}

module.exports = { ExportRequestPrefix, encodeScope, halvesOf }
