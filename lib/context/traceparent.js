'use strict'

// The W3C `traceparent` header, level 2 (https://www.w3.org/TR/trace-context-2/):
//
//   00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03
//   |  |                                |                |
//   0  3  trace id, 32 digits           36 parent id, 16 53 flags
//
// A caller decides every byte of it, so it is read by position and never searched or split: a header sent twice, which
// Node joins with ', ', is then wrong by its length and needs no rule of its own.

const { Buffer } = require('node:buffer')
const { writeIds } = require('./ids')
const { trimSpace } = require('./tracestate')

const LENGTH = 55
const DASH = 0x2d
const ZERO = 0x30
const ZEROS = 0x30300000

const KNOWN_FLAGS = 0x03 // sampled and random. Unknown bits are not passed on: they may mean something that we do not do

// The bytes of the header that is parsed: a char of a string costs some forty instructions, since V8 asks anew each time
// how the string is stored. Chars that are not ASCII take up to three bytes.
const incoming = Buffer.alloc(LENGTH * 3)
const incomingView = new DataView(incoming.buffer, incoming.byteOffset, incoming.length)
let wrong = 0 // not 0 once something was read that is no lowercase hex digit

// The outgoing header in the making: twice as fast as joining hex strings, a rope that is flattened when the header is sent.
const outgoing = Buffer.alloc(LENGTH)
outgoing.latin1Write('00-00000000000000000000000000000000-0000000000000000-00')
const outgoingView = new DataView(outgoing.buffer, outgoing.byteOffset, LENGTH)

/**
 * Reads a header. If it is valid, t0 to t3 (trace id), p0 and p1 (parent id) and flags of `target` are set; else `target` is
 * as it was. Of a longer header only its white space and the 55 chars behind it are read.
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

// HOT. The part that all versions have in common, 55 chars; what is not ASCII becomes bytes that are no digits.
function parseKnown (value, isLonger, target) {
  incoming.utf8Write(value, 0)
  if (incoming[2] !== DASH || incoming[35] !== DASH || incoming[52] !== DASH) return false

  wrong = 0
  const t0 = word(3)
  const t1 = word(11)
  const t2 = word(19)
  const t3 = word(27)
  const p0 = word(36)
  const p1 = word(44)
  // Both have two digits; a dash, or what stands behind the header, is none.
  const version = digits(incomingView.getUint16(0) | ZEROS)
  const flags = digits(incomingView.getUint16(53) | ZEROS)
  if (wrong !== 0 || (t0 | t1 | t2 | t3) === 0 || (p0 | p1) === 0) return false

  // Versions after 00 may add fields, after a dash; ff will never be one.
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

/** Eight digits. */
function word (at) {
  return digits(incomingView.getInt32(at)) << 16 | digits(incomingView.getInt32(at + 4))
}

/**
 * Four digits at once, the first in the highest byte. A letter is 0x61 to 0x66, a digit 0x30 to 0x39: each byte becomes its value,
 * and has a bit set in `wrong` where its upper half is another or it is ten or more without being a letter, or the reverse.
 */
function digits (chars) {
  const letters = (chars >>> 6) & 0x01010101
  const values = (chars & 0x0f0f0f0f) + letters * 9
  const aboveNine = ((values + 0x06060606) >>> 4) & 0x01010101
  wrong |= (chars & 0xf0f0f0f0) ^ (0x30303030 + letters * 0x30) | (values & 0x10101010) | (aboveNine ^ letters)
  const pairs = (values | values >>> 4) & 0x00ff00ff
  return (pairs | pairs >>> 8) & 0xffff
}

/** The header of an outgoing call: version 00, whatever version came in. HOT, once per outgoing call. Budget: 1 string. */
function formatTraceparent (context) {
  writeIds(outgoingView, context, 3, 36)
  outgoing[54] = ZERO | (context.flags & KNOWN_FLAGS)
  return outgoing.latin1Slice(0, LENGTH)
}

module.exports = { parseTraceparent, formatTraceparent }
