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

const LENGTH = 55
const DASH = 0x2d
const SPACE = 0x20
const TAB = 0x09
const ZERO = 0x30

// 0x01 sampled and 0x02 random are what level 2 knows. Unknown bits are not
// passed on: they may mean something that we do not do.
const KNOWN_FLAGS = 0x03

// Any bit above the lowest four marks what is not a lowercase hex digit, so all
// digits are or-ed together and judged once.
const NOT_HEX = 0x80
const DIGIT = new Uint8Array(128).fill(NOT_HEX)
for (let digit = 0; digit < 16; digit++) DIGIT[digit.toString(16).charCodeAt(0)] = digit
const DIGIT_CODE = Buffer.from('0123456789abcdef')

// What readHex saw since it was last cleared. A typed array, because writing
// a module's `let` is a fifth slower on all of our Nodes.
const seen = new Uint32Array(1)

// The outgoing header in the making. Writing into it and taking one string is
// twice as fast as joining hex strings, which make a rope that is flattened
// when the header is sent.
const outgoing = Buffer.alloc(LENGTH)
outgoing.latin1Write('00-00000000000000000000000000000000-0000000000000000-00')

// HOT, once per request with a caller. Budget: 0 objects, 0 strings, each of
// the 55 chars read once; a longer header costs no more, its white space aside.
// On true it sets t0 to t3 (trace id), p0 and p1 (parent id) and flags of target;
// on false target is as it was.
function parseTraceparent (value, target) {
  if (typeof value !== 'string') return false
  let start = 0
  let end = value.length
  while (start < end && isSpace(value.charCodeAt(start))) start++
  while (end > start && isSpace(value.charCodeAt(end - 1))) end--
  if (end - start < LENGTH) return false
  if (end - start > LENGTH && value.charCodeAt(start + LENGTH) !== DASH) return false
  if (value.charCodeAt(start + 2) !== DASH || value.charCodeAt(start + 35) !== DASH ||
    value.charCodeAt(start + 52) !== DASH) return false

  seen[0] = 0
  const version = readHex(value, start, 2)
  const t0 = readHex(value, start + 3, 8)
  const t1 = readHex(value, start + 11, 8)
  const t2 = readHex(value, start + 19, 8)
  const t3 = readHex(value, start + 27, 8)
  const p0 = readHex(value, start + 36, 8)
  const p1 = readHex(value, start + 44, 8)
  const flags = readHex(value, start + 53, 2)
  if (seen[0] > 0x0f) return false

  // Versions after 00 may add fields, after a dash; ff will never be one.
  if (version === 0 ? end - start > LENGTH : version === 0xff) return false
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
  writeHex(context.t0, 3)
  writeHex(context.t1, 11)
  writeHex(context.t2, 19)
  writeHex(context.t3, 27)
  writeHex(context.s0, 36)
  writeHex(context.s1, 44)
  outgoing[54] = ZERO | (context.flags & KNOWN_FLAGS)
  return outgoing.latin1Slice(0, LENGTH)
}

function isSpace (char) {
  return char === SPACE || char === TAB
}

// Chars beyond ASCII leave their high bits in `seen`; the table is never read
// past its end, which would cost the optimised code.
function readHex (value, at, length) {
  let word = 0
  let all = 0
  for (let i = at; i < at + length; i++) {
    const char = value.charCodeAt(i)
    const digit = DIGIT[char & 0x7f]
    all |= digit | (char & ~0x7f)
    word = word << 4 | digit
  }
  seen[0] |= all
  return word
}

function writeHex (word, at) {
  for (let i = at + 7; i >= at; i--) {
    outgoing[i] = DIGIT_CODE[word & 0x0f]
    word >>>= 4
  }
}
