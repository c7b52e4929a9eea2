'use strict'

// The W3C `traceparent` header, level 2 (https://www.w3.org/TR/trace-context-2/):
//
//   00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03
//   |  |                                |                |
//   0  3  trace id, 32 digits           36 parent id, 16 53 flags
//
// A caller decides every byte of it, so it is read by position and never
// searched or split: a header sent twice, which Node joins with ', ', is then
// wrong by its length and needs no rule of its own.

module.exports = { parseTraceparent, formatTraceparent }

const { Buffer } = require('node:buffer')
const { writeIds, HEX_CHARS } = require('./ids')

const LENGTH = 55
const DASH = 0x2d
const SPACE = 0x20
const TAB = 0x09
const ZERO = 0x30

// 0x01 sampled and 0x02 random are what level 2 knows. Unknown bits are not
// passed on: they may mean something that we do not do.
const KNOWN_FLAGS = 0x03

// What two chars are worth, read at once as a little-endian number: the byte that they are the digits of, marked as valid,
// or 0. Of its 128 KiB only the three pages that digits lie in are ever written, so it takes 12 KiB of memory.
const VALID = 0x100
const PAIRS = new Uint16Array(0x10000)
for (let byte = 0; byte < 256; byte++) PAIRS[HEX_CHARS[byte]] = VALID | byte

// The marks of the lower three bytes of a word that is put together from four; the fourth is shifted out.
const MARKS = VALID << 16 | VALID << 8 | VALID

const VERSION_00 = VALID
const VERSION_FF = VALID | 0xff

// The bytes of the header that is parsed. A char of a string costs some forty
// instructions, since V8 asks anew each time how the string is stored; a byte
// a few. More than 64 bytes, which V8 would keep in its own heap and move.
const incoming = Buffer.alloc(LENGTH * 3)
const incomingView = new DataView(incoming.buffer, incoming.byteOffset, LENGTH)

// The outgoing header in the making. Writing into it and taking one string is
// twice as fast as joining hex strings, which make a rope that is flattened
// when the header is sent.
const outgoing = Buffer.alloc(LENGTH)
outgoing.latin1Write('00-00000000000000000000000000000000-0000000000000000-00')
const outgoingView = new DataView(outgoing.buffer, outgoing.byteOffset, LENGTH)

// HOT, once per request with a caller. Budget: 0 objects, 0 strings; one for a
// header of another length, of which only its white space and the first 55
// chars behind it are read.
// On true it sets t0 to t3 (trace id), p0 and p1 (parent id) and flags of target;
// on false target is as it was.
function parseTraceparent (value, target) {
  if (typeof value !== 'string') return false
  if (value.length === LENGTH) return parseKnown(value, false, target)
  let start = 0
  let end = value.length
  while (start < end && isSpace(value.charCodeAt(start))) start++
  while (end > start && isSpace(value.charCodeAt(end - 1))) end--
  if (end - start < LENGTH) return false
  const isLonger = end - start > LENGTH
  if (isLonger && value.charCodeAt(start + LENGTH) !== DASH) return false
  return parseKnown(value.slice(start, start + LENGTH), isLonger, target)
}

// HOT. The part that all versions have in common, 55 chars; what is not ASCII becomes bytes that are no digits. Each
// position is a constant in the code, and no function is called for a byte: V8 would not inline so many.
function parseKnown (value, isLonger, target) {
  incoming.utf8Write(value, 0)
  if (incomingView.getUint8(2) !== DASH || incomingView.getUint8(35) !== DASH || incomingView.getUint8(52) !== DASH) return false

  const version = PAIRS[incomingView.getUint16(0, true)]
  const a = PAIRS[incomingView.getUint16(3, true)]
  const b = PAIRS[incomingView.getUint16(5, true)]
  const c = PAIRS[incomingView.getUint16(7, true)]
  const d = PAIRS[incomingView.getUint16(9, true)]
  const e = PAIRS[incomingView.getUint16(11, true)]
  const f = PAIRS[incomingView.getUint16(13, true)]
  const g = PAIRS[incomingView.getUint16(15, true)]
  const h = PAIRS[incomingView.getUint16(17, true)]
  const i = PAIRS[incomingView.getUint16(19, true)]
  const j = PAIRS[incomingView.getUint16(21, true)]
  const k = PAIRS[incomingView.getUint16(23, true)]
  const l = PAIRS[incomingView.getUint16(25, true)]
  const m = PAIRS[incomingView.getUint16(27, true)]
  const n = PAIRS[incomingView.getUint16(29, true)]
  const o = PAIRS[incomingView.getUint16(31, true)]
  const p = PAIRS[incomingView.getUint16(33, true)]
  const q = PAIRS[incomingView.getUint16(36, true)]
  const r = PAIRS[incomingView.getUint16(38, true)]
  const s = PAIRS[incomingView.getUint16(40, true)]
  const t = PAIRS[incomingView.getUint16(42, true)]
  const u = PAIRS[incomingView.getUint16(44, true)]
  const v = PAIRS[incomingView.getUint16(46, true)]
  const w = PAIRS[incomingView.getUint16(48, true)]
  const x = PAIRS[incomingView.getUint16(50, true)]
  const flags = PAIRS[incomingView.getUint16(53, true)]
  if ((version & flags &
    a & b & c & d & e & f & g & h & i & j & k & l &
    m & n & o & p & q & r & s & t & u & v & w & x & VALID) === 0) return false

  // Versions after 00 may add fields, after a dash; ff will never be one.
  if (version === VERSION_00 ? isLonger === true : version === VERSION_FF) return false
  const t0 = a << 24 ^ b << 16 ^ c << 8 ^ d ^ MARKS
  const t1 = e << 24 ^ f << 16 ^ g << 8 ^ h ^ MARKS
  const t2 = i << 24 ^ j << 16 ^ k << 8 ^ l ^ MARKS
  const t3 = m << 24 ^ n << 16 ^ o << 8 ^ p ^ MARKS
  const p0 = q << 24 ^ r << 16 ^ s << 8 ^ t ^ MARKS
  const p1 = u << 24 ^ v << 16 ^ w << 8 ^ x ^ MARKS
  if ((t0 | t1 | t2 | t3) === 0 || (p0 | p1) === 0) return false

  target.t0 = t0
  target.t1 = t1
  target.t2 = t2
  target.t3 = t3
  target.p0 = p0
  target.p1 = p1
  target.flags = flags & KNOWN_FLAGS
  return true
}

// HOT, once per outgoing call. Budget: 1 string. What we send is always version
// 00, whatever version came in.
function formatTraceparent (context) {
  writeIds(outgoingView, context, 3, 36)
  outgoing[54] = ZERO | (context.flags & KNOWN_FLAGS)
  return outgoing.latin1Slice(0, LENGTH)
}

function isSpace (char) {
  return char === SPACE || char === TAB
}
