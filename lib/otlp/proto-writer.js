'use strict'

// A cursor that writes protobuf into memory that is reserved before. Lengths are padded to four bytes: they are known only when
// the content is written, which is never shifted.
//
//   one attribute:  4A 80 80 80 00 | 0A len key | 12 80 80 00 | 0A 80 80 00 value
//                   tag, length    | key        | AnyValue    | string_value

const { Buffer } = require('node:buffer')

const LOOP_LENGTH_MAX = 15 // up to which a loop over char codes is faster than the call into C++
const LONG_TEXT = 1024 // of which it is worth counting the bytes

// Span.flags and Link.flags beyond the W3C byte: whether it is known that the other span is remote, and whether it is.
const HAS_IS_REMOTE = 0x100
const IS_REMOTE = 0x200

const EMPTY = Buffer.alloc(0)

class ProtoWriter {
  constructor () {
    this.bytes = EMPTY
    this.view = new DataView(EMPTY.buffer)
    this.position = 0
  }

  /** Aims at `position` of a chunk, which must have room for all that will be written. */
  open (bytes, view, position) {
    this.bytes = bytes
    this.view = view
    this.position = position
  }

  /** A writer into memory of its own. */
  static alone (byteCount) {
    const writer = new ProtoWriter()
    const memory = Buffer.alloc(byteCount)
    writer.open(memory, new DataView(memory.buffer, memory.byteOffset, byteCount), 0)
    return writer
  }

  /** What was written into memory of its own. */
  get written () {
    return this.bytes.subarray(0, this.position)
  }

  byte (value) {
    this.bytes[this.position++] = value
  }

  varint (value) {
    const { bytes } = this
    while (value > 0x7f) {
      bytes[this.position++] = (value & 0x7f) | 0x80
      value = value > 0x7fffffff ? Math.floor(value / 128) : value >>> 7
    }
    bytes[this.position++] = value
  }

  copy (source) {
    this.bytes.set(source, this.position)
    this.position += source.length
  }

  /** Leaves four bytes for a length; `length4` fills them in. */
  reserve4 () {
    const at = this.position
    this.position += 4
    return at
  }

  length4 (at) {
    writeLength4(this.view, at, this.position - at - 4)
  }

  /** Writes a length-delimited text field. */
  string (tag, value) {
    this.byte(tag)
    const at = this.reserve4()
    this.position = writeText(this.bytes, this.position, value)
    this.length4(at)
  }

  double (value) {
    this.view.setFloat64(this.position, value, true)
    this.position += 8
  }

  fixed32 (value) {
    this.view.setInt32(this.position, value, true)
    this.position += 4
  }

  /** Writes an int64 field's value: negative numbers take ten bytes. */
  int64 (value) {
    if (value >= 0) return this.varint(value)
    let rest = BigInt.asUintN(64, BigInt(value))
    while (rest > 0x7fn) {
      this.byte(Number(rest & 0x7fn) | 0x80)
      rest >>= 7n
    }
    this.byte(Number(rest))
  }
}

/** Writes text as UTF-8, a lone surrogate as U+FFFD; returns where it ends. HOT */
function writeText (bytes, start, value) {
  const { length } = value
  if (length > LOOP_LENGTH_MAX) return start + bytes.utf8Write(value, start)
  for (let i = 0; i < length; i++) {
    const code = value.charCodeAt(i)
    if (code > 0x7f) return start + bytes.utf8Write(value, start)
    bytes[start + i] = code
  }
  return start + length
}

/** Writes a length below 2^28 as a varint of exactly four bytes. */
function writeLength4 (view, position, length) {
  view.setInt32(position,
    (length & 0x7f) | 0x80 |
    ((length << 1) & 0x7f00) | 0x8000 |
    ((length << 2) & 0x7f0000) | 0x800000 |
    ((length << 3) & 0x7f000000), true)
}

/** Upper bound of what `writeText` writes: three bytes for each UTF-16 unit, or exactly what it takes. */
function textBound (value, isExact = false) {
  return isExact || value.length > LONG_TEXT ? Buffer.byteLength(value) : value.length * 3
}

module.exports = { ProtoWriter, writeLength4, writeText, textBound, HAS_IS_REMOTE, IS_REMOTE }
