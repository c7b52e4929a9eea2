'use strict'

// Cuts the bytes of a chunk in two between spans, for a collector that found them too large.
//
//   chunk bytes = scope_spans, fields of ResourceSpans
//   scope_spans = 0x12 | length | scope 0x0a … | span 0x12 … | span 0x12 … |
//                                              ▲ a cut inside of them repeats what precedes its spans
//
// Lengths are varints, padded or not. Reading our own bytes, it still believes none of them.

const TAG_SCOPE_SPANS = 0x12
const TAG_SPAN = 0x12
const SCOPE_SPANS_HEADER_BYTES = 5

module.exports = { halvesOf }

// → [{ bytes, spans }, { bytes, spans }] in memory of their own, or null where there is nothing to cut.
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
    : Buffer.concat([scopeSpansHeader(firstSpan - bodyStart + scopeSpansEnd - at), bytes.subarray(bodyStart, firstSpan), bytes.subarray(at, length)])
  return [{ bytes: first, spans: keep }, { bytes: second, spans: spans - keep }]
}

// Where the span after the first `keep` begins, and the scope_spans that it is in.
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

// The bounds of the length-delimited field at `at`, or null where it is none or reaches over `end`.
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

function scopeSpansHeader (length) {
  const header = Buffer.alloc(SCOPE_SPANS_HEADER_BYTES)
  header[0] = TAG_SCOPE_SPANS
  putLength(header, 1, length)
  return header
}

function putLength (bytes, at, length) {
  bytes[at] = (length & 0x7f) | 0x80
  bytes[at + 1] = (length >>> 7 & 0x7f) | 0x80
  bytes[at + 2] = (length >>> 14 & 0x7f) | 0x80
  bytes[at + 3] = length >>> 21
}
