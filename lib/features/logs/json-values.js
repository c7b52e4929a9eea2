'use strict'

// Encodes JSON values of a line as OTLP's AnyValue (opentelemetry/proto/common/v1/common.proto), in one pass.
//
// It reads from one array and writes to another. Both are constants of this module, so V8 puts their address and length into its
// machine code: a byte takes about four instructions, but fifteen if the array is in a field of an object.

const { Buffer } = require('node:buffer')
const { writeLength4, putInt64 } = require('../../otlp/proto-writer.js')

const TEXT_LENGTH_MAX = 2000 // JSON.parse is faster for longer lines
const BYTES_PER_CHARACTER = 3 // UTF-8 bytes for a UTF-16 code unit
const BYTES_PER_BYTE = 6 // output for a byte of JSON; the worst case is an element `-1,`
const MORE_BYTES = 512 // for surrounding fields
const DEPTH_MAX = 32 // of maps and arrays; deeper values become JSON text
const EXACT_DIGITS = 15 // an integer with more digits may be inexact as a number

const TAG_STRING = 0x0a // KeyValue.key, AnyValue.string_value, and the elements of arrays and maps
const TAG_VALUE = 0x12 // KeyValue.value
const TAG_ARRAY = 0x2a
const TAG_MAP = 0x32

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

const UNESCAPED = new Uint8Array(256) // the meaning of an escape, by the character after the backslash; 0: invalid, or a numeric escape
for (const [escape, character] of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t']) UNESCAPED[escape.charCodeAt(0)] = character.charCodeAt(0)

const DIGIT = 1
const numeric = new Uint8Array(256).fill(DIGIT, ZERO, ZERO + 10) // 0: not part of a number
for (const character of '+-.eE') numeric[character.charCodeAt(0)] = 2

const POWERS = new Float64Array(EXACT_DIGITS + 1).map((_, i) => 10 ** i)

const json = Buffer.alloc(TEXT_LENGTH_MAX * BYTES_PER_CHARACTER + MORE_BYTES) // the line
const jsonView = new DataView(json.buffer)
const NOWHERE = json.length - 1 // returned for unusual input. The byte there is zero, at which every function stops
const out = Buffer.allocUnsafeSlow(2 * json.length * BYTES_PER_BYTE + MORE_BYTES) // room for bindings and for the rest of a line
const outView = new DataView(out.buffer)
const cursor = new Int32Array(1) // the next place in `out`. Not a variable: V8 would not know its address

/** Writes a text to `json` as UTF-8; returns where it ends. */
function read (text) {
  const end = json.utf8Write(text, 0)
  // An unclosed string ends here, even after a backslash, and nothing follows it.
  json[end] = json[end + 1] = QUOTE
  json[end + 2] = 0
  return end
}

function isDigits (at, end) {
  while (at < end && numeric[json[at]] === DIGIT) at++
  return at === end
}

// In the functions below, `at` is where something begins. They return the place after it, or NOWHERE.

/** Reads from the brace or comma before a key to the value. */
function writeKey (at) {
  if (json[at + 1] !== QUOTE) return NOWHERE
  const end = writeString(at + 1, Infinity)
  return json[end] === COLON ? end + 1 : NOWHERE
}

/** Writes a field of type AnyValue. */
function writeField (tag, at, lengthMax, depth) {
  const start = cursor[0]
  out[start] = tag
  cursor[0] = start + 5
  const end = writeValue(at, lengthMax, depth)
  writeLength4(outView, start + 1, cursor[0] - start - 5)
  return end
}

function writeValue (at, lengthMax, depth) {
  switch (json[at]) {
    case QUOTE: return writeString(at, lengthMax)
    case OPEN_BRACE: return writeMembers(TAG_MAP, at, lengthMax, depth)
    case OPEN_BRACKET: return writeMembers(TAG_ARRAY, at, lengthMax, depth)
    case 0x74: return writeWord('true', at, 1)
    case 0x66: return writeWord('false', at, 0)
    case 0x6e: return writeWord('null', at, -1) // an AnyValue without a field
    default: return writeNumber(at)
  }
}

function writeString (at, lengthMax) {
  const source = json
  const target = out
  const start = cursor[0] + 5
  let from = at + 1
  let to = start
  let code
  while ((code = source[from++]) !== QUOTE) {
    if (code === BACKSLASH && (code = UNESCAPED[source[from++]]) === 0) return NOWHERE
    target[to++] = code
  }
  if (to - start > lengthMax) return NOWHERE // it may be within the limit, which counts characters
  target[start - 5] = TAG_STRING
  writeLength4(outView, start - 4, to - start)
  cursor[0] = to
  return from
}

/** Writes a map or an array. */
function writeMembers (tag, at, lengthMax, depth) {
  if (depth === DEPTH_MAX) return NOWHERE
  const start = cursor[0]
  out[start] = tag
  cursor[0] = start + 5
  const close = tag === TAG_MAP ? CLOSE_BRACE : CLOSE_BRACKET
  if (json[at + 1] === close) at++
  else {
    do at = tag === TAG_MAP ? writeMember(at, lengthMax, depth + 1) : writeField(TAG_STRING, at + 1, lengthMax, depth + 1)
    while (json[at] === COMMA)
  }
  writeLength4(outView, start + 1, cursor[0] - start - 5)
  return json[at] === close ? at + 1 : NOWHERE
}

/** Writes a member of a map, starting at the brace or comma before it. */
function writeMember (at, lengthMax, depth) {
  const start = cursor[0]
  out[start] = TAG_STRING
  cursor[0] = start + 5
  const end = writeField(TAG_VALUE, writeKey(at), lengthMax, depth)
  writeLength4(outView, start + 1, cursor[0] - start - 5)
  return end
}

function writeWord (word, at, value) {
  for (let i = 1; i < word.length; i++) if (json[at + i] !== word.charCodeAt(i)) return NOWHERE
  if (value >= 0) {
    out[cursor[0]++] = 0x10
    out[cursor[0]++] = value
  }
  return at + word.length
}

function writeNumber (at) {
  const start = json[at] === MINUS ? at + 1 : at
  let end = start
  let value = 0
  let point = 0
  let code
  while (numeric[code = json[end]] === DIGIT || (code === POINT && point === 0)) {
    if (code === POINT) point = end
    else value = value * 10 + (code - ZERO)
    end++
  }
  if (end === start || end - start > EXACT_DIGITS || numeric[code] !== 0) return writeLongNumber(at)
  if (start !== at) value = -value
  if (point === 0) {
    out[cursor[0]] = 0x18
    cursor[0] = putInt64(out, cursor[0] + 1, value)
  } else writeDouble(value / POWERS[end - point - 1]) // correctly rounded, since both numbers are exact
  return end
}

function writeLongNumber (at) {
  let end = at
  while (numeric[json[end]] !== 0) end++
  const text = json.latin1Slice(at, end)
  const number = Number(text)
  if (text === '' || Number.isNaN(number)) return NOWHERE
  if (/^-?\d+$/.test(text)) { // may be a BigInt: as a string, which keeps all digits
    out[cursor[0]] = TAG_STRING
    writeLength4(outView, cursor[0] + 1, text.length)
    cursor[0] += 5 + out.latin1Write(text, cursor[0] + 5)
  } else writeDouble(number)
  return end
}

function writeDouble (number) {
  out[cursor[0]] = 0x21
  outView.setFloat64(cursor[0] + 1, number, true)
  cursor[0] += 9
}

module.exports = { json, jsonView, out, outView, cursor, read, isDigits, writeKey, writeField, writeValue, TAG_STRING, TAG_VALUE, QUOTE, COMMA, OPEN_BRACE, CLOSE_BRACE, NOWHERE, TEXT_LENGTH_MAX, DEPTH_MAX }
