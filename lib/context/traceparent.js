'use strict'

// The W3C `traceparent` header, level 2 (https://www.w3.org/TR/trace-context-2/):
//
//   00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03
//   |  |                                |                |
//   0  3  trace id, 32 digits           36 parent id, 16 53 flags
//
// The caller controls every byte, so the header is read by position and never searched or split. A header that is sent twice, which Node
// joins with ', ', has the wrong length and needs no rule of its own.

const { Buffer } = require('node:buffer')
const { writeIds } = require('./ids.js')
const { trimSpace } = require('./tracestate.js')

const LENGTH = 55
const DASH = 0x2d
const ZERO = 0x30

const KNOWN_FLAGS = 0x03 // sampled and random. Unknown bits are not passed on, because they may promise something that we do not do

// The value of each byte as a lowercase hex digit. Other bytes have the bit NO_DIGIT.
const NO_DIGIT = 0x10
const DIGITS = new Uint8Array(256).fill(NO_DIGIT)
for (let digit = 0; digit < 16; digit++) DIGITS[digit.toString(16).charCodeAt(0)] = digit

// The bytes of the header being parsed. Reading a char of a string costs about forty instructions, because V8 checks each time how the
// string is stored. Reading a byte costs a few. A char that is not ASCII takes up to three bytes.
const incoming = Buffer.alloc(LENGTH * 3)
let digitsSeen = 0 // the bitwise OR of all values read from DIGITS

// The bytes of the outgoing header. Twice as fast as joining hex strings, which makes a rope that is flattened when the header is sent.
const outgoing = Buffer.alloc(LENGTH)
outgoing.latin1Write('00-00000000000000000000000000000000-0000000000000000-00')
const outgoingView = new DataView(outgoing.buffer, outgoing.byteOffset, LENGTH)

/**
 * Parses a header. If it is valid, sets t0 to t3 (trace id), p0 and p1 (parent id) and flags of `target`; else `target` is unchanged.
 * Of a longer header, only the surrounding white space and the first 55 chars are parsed.
 * HOT, once per request with a caller. Budget: 0 objects, 0 strings; two strings for a header of another length.
 * @returns {boolean} whether it is valid
 */
function parseTraceparent (value, target) {
  if (typeof value !== 'string') return false
  if (value.length === LENGTH) return parseKnown(value, false, target)
  const text = trimSpace(value)
  const isLonger = text.length > LENGTH
  if (text.length < LENGTH || (isLonger && text.charCodeAt(LENGTH) !== DASH)) return false
  return parseKnown(text.slice(0, LENGTH), isLonger, target)
}

// HOT. Parses the 55 chars that all versions have in common. Chars that are not ASCII become bytes that are not digits.
function parseKnown (value, isLonger, target) {
  incoming.utf8Write(value, 0)
  if (incoming[2] !== DASH || incoming[35] !== DASH || incoming[52] !== DASH) return false

  digitsSeen = 0
  const version = number(0, 2)
  const t0 = number(3, 11)
  const t1 = number(11, 19)
  const t2 = number(19, 27)
  const t3 = number(27, 35)
  const p0 = number(36, 44)
  const p1 = number(44, 52)
  const flags = number(53, 55)
  if ((digitsSeen & NO_DIGIT) !== 0 || (t0 | t1 | t2 | t3) === 0 || (p0 | p1) === 0) return false

  // Later versions than 00 may add fields after a dash. Version ff is invalid.
  if (version === 0 ? isLonger : version === 0xff) return false

  target.t0 = t0
  target.t1 = t1
  target.t2 = t2
  target.t3 = t3
  target.p0 = p0
  target.p1 = p1
  target.flags = flags & KNOWN_FLAGS
  return true
}

function number (from, to) {
  let value = 0
  let seen = 0
  for (let at = from; at < to; at++) {
    const digit = DIGITS[incoming[at]]
    seen |= digit
    value = value << 4 | digit
  }
  digitsSeen |= seen
  return value
}

/** The header of an outgoing call: version 00, whatever version was received. HOT, once per outgoing call. Budget: 1 string. */
function formatTraceparent (context) {
  writeIds(outgoingView, context, 3, 36)
  outgoing[54] = ZERO | (context.flags & KNOWN_FLAGS)
  return outgoing.latin1Slice(0, LENGTH)
}

module.exports = { parseTraceparent, formatTraceparent }
