'use strict'

// Counts the spans of an OTLP ExportTraceServiceRequest without decoding them. It descends to `spans` and skips each span by its length,
// reading two or three bytes per span.
//
//   ExportTraceServiceRequest 1 → ResourceSpans 2 → ScopeSpans 2 → Span

module.exports = countSpans

const RESOURCE_SPANS = 0x0A
const SCOPE_SPANS = 0x12
const SPAN = 0x12

let at = 0 // where readLength stopped; saves an object per field

// → the number of spans, or -1 if the bytes are not a valid message
function countSpans (body) {
  let spans = 0
  const ok = eachField(body, 0, body.length, RESOURCE_SPANS, (start, end) =>
    eachField(body, start, end, SCOPE_SPANS, (start, end) =>
      eachField(body, start, end, SPAN, () => { spans++; return true })))
  return ok ? spans : -1
}

// All fields of these messages are length-delimited (wire type 2).
function eachField (body, start, end, wantedTag, visit) {
  at = start
  while (at < end) {
    const tag = body[at++]
    if ((tag & 7) !== 2 || tag >= 0x80) return false
    const length = readLength(body)
    const from = at
    if (length < 0 || from + length > end) return false
    if (tag === wantedTag && !visit(from, from + length)) return false
    at = from + length
  }
  return true
}

function readLength (body) {
  let value = 0
  for (let shift = 0; shift < 35; shift += 7) {
    const byte = body[at++]
    value += (byte & 0x7F) * 2 ** shift
    if (byte < 0x80) return value
  }
  return -1
}
