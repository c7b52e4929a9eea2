'use strict'

// A cursor that writes protobuf into memory that somebody else reserved. Lengths are fixed-width (padded)
// varints: they are written before the content is known to be over, and nothing is ever shifted.
//
//   one attribute:  4A 80 80 80 00 | 0A len key | 12 80 80 00 | 0A 80 80 00 value
//                   tag, length    | key        | AnyValue    | string_value

const { Buffer } = require('node:buffer')

// Up to this a loop over char codes beats the call into C++, which takes as long as some fifteen of them.
const LOOP_LENGTH_MAX = 15

const LONG_TEXT = 1024

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

  /** Text as UTF-8, without a length. A lone surrogate becomes U+FFFD. */
  text (value) {
    this.position = writeText(this.bytes, this.position, value)
  }

  /** A length-delimited text field. */
  string (tag, value) {
    this.byte(tag)
    const at = this.reserve4()
    this.text(value)
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

  /** An int64 field's value: negative numbers take ten bytes. */
  int64 (value) {
    if (value >= 0) {
      this.varint(value)
      return
    }
    let rest = BigInt.asUintN(64, BigInt(value))
    while (rest > 0x7fn) {
      this.byte(Number(rest & 0x7fn) | 0x80)
      rest >>= 7n
    }
    this.byte(Number(rest))
  }
}

/** Text as UTF-8; a lone surrogate becomes U+FFFD. Returns where it ends. HOT */
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

/** A varint of exactly four bytes, for lengths below 2^28. */
function writeLength4 (view, position, length) {
  view.setInt32(position,
    (length & 0x7f) | 0x80 |
    ((length << 1) & 0x7f00) | 0x8000 |
    ((length << 2) & 0x7f0000) | 0x800000 |
    ((length << 3) & 0x7f000000), true)
}

/** What `text` can take at the most: three bytes for each UTF-16 unit; of long text it is worth counting them. */
function textBound (value) {
  return value.length > LONG_TEXT ? Buffer.byteLength(value) : value.length * 3
}

/** What `varint` takes. */
function varintLength (value) {
  let length = 1
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) length++
  return length
}

module.exports = { ProtoWriter, writeLength4, writeText, textBound, varintLength }
