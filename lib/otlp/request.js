'use strict'

// Encodes what surrounds the spans in one request to the collector, and splits a chunk that is too large for it.
//
//   ExportTraceServiceRequest  0A <len, 4 bytes>          resource_spans
//     ResourceSpans            0A <len> resource
//                              1A <len> schema URL
//                              12 <len, 4 bytes>          scope_spans, from the chunks
//       ScopeSpans             0A <len> scope, then spans

const { Buffer } = require('node:buffer')
const { SCHEMA_URL } = require('../span/recording-span.js')
const { writeLength4, writeString, encodeAttributes, field, text } = require('./proto-writer.js')

const SCOPES_MAX = 256

class ExportRequestPrefix {
  /** @param {{ attributes: object }} resource as config/resource.js resolves it */
  constructor (resource) {
    // By its field number the resource's schema URL comes after scope_spans, but decoders accept any order.
    const attributes = encodeAttributes(0x0a, Object.entries(resource.attributes).flat())
    this.resource = Buffer.concat([field(0x0a, attributes), text(0x1a, SCHEMA_URL)])
  }

  /** Returns the bytes that precede `chunkBytes` bytes of scope_spans. */
  head (chunkBytes) {
    return Buffer.concat([headerOf(0x0a, this.resource.length + chunkBytes), this.resource])
  }
}

const scopes = new Map()

/** HOT, once per span. Returns the first fields of scope_spans. Equal scopes get the identical array, so that identity comparison is enough. */
function encodeScope (scope) {
  return scope.encoded ?? remember(scope)
}

function remember (scope) {
  const { key, name, version = '', schemaUrl = '' } = scope
  let bytes = scopes.get(key)
  if (bytes === undefined) {
    const parts = [field(0x0a, version === '' ? text(0x0a, name) : Buffer.concat([text(0x0a, name), text(0x12, version)]))]
    // By its field number it comes after the spans, but decoders accept any order.
    if (schemaUrl !== '') parts.push(text(0x1a, schemaUrl))
    bytes = new Uint8Array(Buffer.concat(parts)) // the same class as everything that the writer copies, so its code stays monomorphic
    if (scopes.size >= SCOPES_MAX) scopes.clear() // scope names may contain user data: start over instead of growing
    scopes.set(key, bytes)
  }
  scope.encoded = bytes
  return bytes
}

// The bytes of a chunk. Lengths are varints, with or without padding.
//
//   chunk bytes = scope_spans, fields of ResourceSpans
//   scope_spans = 0x12 | length | scope 0x0a ... | span 0x12 ... | span 0x12 ... |
//                                              ^ a cut inside scope_spans repeats the fields before the spans

const TAG_SCOPE_SPANS = 0x12
const TAG_SPAN = 0x12
const TAG_TRACE_STATE = 0x1a
const HEADER_BYTES = 5

/**
 * Cuts the bytes of a chunk in two between spans, for a collector that found them too large.
 * @returns {{ bytes: Buffer, spans: number }[] | null} two halves in memory of their own, or null if it cannot be cut
 */
function halvesOf (bytes, length, spans) {
  const keep = spans >> 1
  const found = spansIn(bytes, length, (run, start, end) => ({ run, start, end, stateStart: end, stateEnd: end, text: '' }))
  if (keep === 0 || found === null || found.length <= keep) return null
  return [{ bytes: chunkOf(bytes, found.slice(0, keep)), spans: keep }, { bytes: chunkOf(bytes, found.slice(keep)), spans: spans - keep }]
}

/**
 * Finds the spans of a chunk, each with its tag and length. Returns null if other fields follow the spans in a scope_spans, because they
 * would be lost.
 * @template T
 * @param {(run: { start: number, end: number }, start: number, end: number, last: T | undefined) => T} make called with `run`, the bounds of
 *   the fields before the spans (one object per scope_spans), the bounds of the span, and the result of the call before
 * @returns {T[] | null}
 */
function spansIn (bytes, length, make) {
  if (length > bytes.length) return null
  const found = []
  for (let at = 0; at < length;) {
    const runEnd = fieldEnd(bytes, at, length)
    if (runEnd === -1 || bytes[at] !== TAG_SCOPE_SPANS || bodyStart(bytes, at + 1) - at !== HEADER_BYTES) return null
    const run = { start: at + HEADER_BYTES, end: -1 }
    for (at = run.start; at < runEnd;) {
      const end = fieldEnd(bytes, at, runEnd)
      const isSpan = bytes[at] === TAG_SPAN
      if (end === -1 || (run.end !== -1 && !isSpan) || (bytes[at] & 0x87) !== 2) return null // all are length-delimited, with tags of one byte
      if (isSpan) {
        if (run.end === -1) run.end = at
        found.push(make(run, at, end, found[found.length - 1]))
      }
      at = end
    }
  }
  return found
}

/** Copies some spans of a chunk into a new one. If a span has a `text`, that becomes its trace state. Other spans are copied unchanged. */
function chunkOf (bytes, spans) {
  const out = Buffer.allocUnsafeSlow(chunkLength(spans))
  const view = new DataView(out.buffer, out.byteOffset, out.length)
  let run = null
  let runAt = 0
  let at = 0
  for (const span of spans) {
    if (span.run !== run) {
      run = span.run
      runAt = at
      out[at] = TAG_SCOPE_SPANS
      at += HEADER_BYTES
      at += bytes.copy(out, at, run.start, run.end)
    }
    at = writeSpan(out, view, at, bytes, span)
    writeLength4(view, runAt + 1, at - runAt - HEADER_BYTES)
  }
  return out
}

/** Returns the length of the chunk that `chunkOf` makes. */
function chunkLength (spans) {
  let length = 0
  let last = null
  for (const { run, start, end, stateStart, stateEnd, text } of spans) {
    if (run !== last) length += HEADER_BYTES + run.end - run.start
    last = run
    length += end - start
    if (text !== '') length += HEADER_BYTES + text.length - (stateEnd - stateStart)
  }
  return length
}

function writeSpan (out, view, start, bytes, { start: from, end, stateStart, stateEnd, text }) {
  if (text === '') return start + bytes.copy(out, start, from, end)
  let at = start + bytes.copy(out, start, from, stateStart)
  at = writeString(out, view, at, TAG_TRACE_STATE, text)
  at += bytes.copy(out, at, stateEnd, end)
  writeLength4(view, start + 1, at - start - HEADER_BYTES)
  return at
}

/** Returns the end of the field whose tag is at `at`, or -1 if its wire type is unknown or it extends beyond `end`. */
function fieldEnd (bytes, at, end) {
  let tag = bytes[at++]
  const wireType = tag & 7
  while (tag > 0x7f) tag = bytes[at++]
  if (wireType === 2) {
    let byte = bytes[at++]
    let length = byte & 0x7f
    for (let shift = 7; byte > 0x7f; shift += 7) {
      if (shift > 28) return -1
      byte = bytes[at++]
      length |= (byte & 0x7f) << shift
    }
    return length >= 0 && at + length <= end ? at + length : -1
  }
  if (wireType === 0) at = bodyStart(bytes, at)
  else if (wireType === 1) at += 8
  else if (wireType === 5) at += 4
  else return -1
  return at <= end ? at : -1
}

/** Returns the position after the varint at `at`. If the varint is a field's length, that is the start of the field's body. */
function bodyStart (bytes, at) {
  while (bytes[at++] > 0x7f);
  return at
}

/** Returns a tag and a length in four bytes, as the encoder always writes lengths. */
function headerOf (tag, length) {
  return Buffer.of(tag, (length & 0x7f) | 0x80, ((length >> 7) & 0x7f) | 0x80, ((length >> 14) & 0x7f) | 0x80, (length >> 21) & 0x7f)
}

module.exports = { ExportRequestPrefix, encodeScope, halvesOf, spansIn, chunkOf, chunkLength, fieldEnd, bodyStart, TAG_TRACE_STATE }
