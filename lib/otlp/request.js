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
    const head = Buffer.allocUnsafe(5 + this.resource.length)
    head[0] = 0x0a
    putLength(head, 1, this.resource.length + chunkBytes)
    head.set(this.resource, 5)
    return head
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
const SCOPE_SPANS_HEADER_BYTES = 5

/**
 * Cuts the bytes of a chunk in two between spans, for a collector that found them too large.
 * @returns {{ bytes: Buffer, spans: number }[] | null} two in memory of their own, or null if there is nothing to cut
 */
function halvesOf (bytes, length, spans) {
  const keep = spans >> 1
  if (keep === 0) return null
  const cut = findCut(bytes, length, keep)
  if (cut === null) return null
  const { scopeSpans, bodyStart, firstSpan, at, scopeSpansEnd } = cut
  const isBetweenScopes = at === firstSpan
  const first = Buffer.from(bytes.subarray(0, isBetweenScopes ? scopeSpans : at))
  if (!isBetweenScopes) putLength(first, scopeSpans + 1, at - bodyStart)
  const second = isBetweenScopes
    ? Buffer.from(bytes.subarray(scopeSpans, length))
    : Buffer.concat([bytes.subarray(scopeSpans, firstSpan), bytes.subarray(at, length)]) // its header, its scope, its other spans
  if (!isBetweenScopes) putLength(second, 1, firstSpan - bodyStart + scopeSpansEnd - at)
  return [{ bytes: first, spans: keep }, { bytes: second, spans: spans - keep }]
}

/** Finds where the span after the first `keep` begins, and the scope_spans that it is in. */
function findCut (bytes, length, keep) {
  let seen = 0
  let scopeSpans = 0
  while (scopeSpans < length) {
    const body = fieldAt(bytes, scopeSpans, length)
    if (body === null || bytes[scopeSpans] !== TAG_SCOPE_SPANS) return null
    let firstSpan = -1
    for (let at = body.start; at < body.end;) {
      const field = fieldAt(bytes, at, body.end)
      if (field === null) return null
      if (bytes[at] === TAG_SPAN) {
        if (firstSpan === -1) firstSpan = at
        if (seen === keep) {
          // The scope_spans before the cut get their length anew, in the four bytes that the encoder always takes.
          return body.start - scopeSpans === SCOPE_SPANS_HEADER_BYTES ? { scopeSpans, bodyStart: body.start, firstSpan, at, scopeSpansEnd: body.end } : null
        }
        seen++
      }
      at = field.end
    }
    scopeSpans = body.end
  }
  return null
}

/** Returns the bounds of the length-delimited field at `at`, or null if it is none or reaches over `end`. */
function fieldAt (bytes, at, end) {
  if (bytes[at++] % 8 !== 2) return null
  let length = 0
  for (let i = 0; i < 5 && at < end; i++) {
    const byte = bytes[at++]
    length += (byte & 0x7f) * 2 ** (7 * i)
    if (byte < 0x80) return length <= end - at ? { start: at, end: at + length } : null
  }
  return null
}

function putLength (bytes, at, length) {
  for (let i = 0; i < 3; i++) bytes[at + i] = (length >> 7 * i & 0x7f) | 0x80
  bytes[at + 3] = length >> 21 & 0x7f
}

module.exports = { ExportRequestPrefix, encodeScope, halvesOf }
