'use strict'

// Cuts the bytes of a chunk in two between spans, for a collector that found them too large.
//
//   chunk bytes = runs of ScopeSpans as fields of ResourceSpans
//   run         = 0x12 | length | scope 0x0a … | span 0x12 … | span 0x12 … |
//                                              ▲ a cut inside a run repeats what precedes its spans
//
// Lengths are varints, padded or not. Reading our own bytes, it still believes none of them.

const TAG_SCOPE_SPANS = 0x12
const TAG_SPAN = 0x12
const RUN_HEADER_BYTES = 5

module.exports = { halvesOf }

// → [{ bytes, spans }, { bytes, spans }] in memory of their own, or null where there is nothing to cut.
function halvesOf (bytes, length, spans) {
  const keep = spans >> 1
  if (keep === 0) return null
  const cut = findCut(bytes, length, keep)
  if (cut === null) return null
  const { run, bodyStart, firstSpan, at, runEnd } = cut
  const isBetweenRuns = at === firstSpan
  const first = Buffer.from(bytes.subarray(0, isBetweenRuns ? run : at))
  if (!isBetweenRuns) putLength(first, run + 1, at - bodyStart)
  const second = isBetweenRuns
    ? Buffer.from(bytes.subarray(run, length))
    : Buffer.concat([runHeader(firstSpan - bodyStart + runEnd - at), bytes.subarray(bodyStart, firstSpan), bytes.subarray(at, length)])
  return [{ bytes: first, spans: keep }, { bytes: second, spans: spans - keep }]
}

// Where the span after the first `keep` begins, and the run that it is in.
function findCut (bytes, length, keep) {
  let seen = 0
  let run = 0
  while (run < length) {
    const body = fieldAt(bytes, run, length)
    if (body === null || bytes[run] !== TAG_SCOPE_SPANS) return null
    let firstSpan = -1
    for (let at = body.start; at < body.end;) {
      const field = fieldAt(bytes, at, body.end)
      if (field === null) return null
      if (bytes[at] === TAG_SPAN) {
        if (firstSpan === -1) firstSpan = at
        if (seen === keep) {
          // The run before the cut gets its length anew, in the four bytes that the encoder always takes.
          return body.start - run === RUN_HEADER_BYTES ? { run, bodyStart: body.start, firstSpan, at, runEnd: body.end } : null
        }
        seen++
      }
      at = field.end
    }
    run = body.end
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

function runHeader (length) {
  const header = Buffer.alloc(RUN_HEADER_BYTES)
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
