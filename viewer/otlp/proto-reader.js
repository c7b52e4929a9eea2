'use strict'

// Reads protobuf field by field, and never outside its bounds. It throws Malformed for input that it cannot read.
//
//   for (let field = reader.next(); field !== 0; field = reader.next()) …
//
// A field's value is in `from` and `to` (length-delimited: text, bytes, messages) or in `lo` and `hi` (numbers:
// the two halves of 64 bits, unsigned).

const VARINT = 0
const FIXED64 = 1
const BYTES = 2
const FIXED32 = 5

const VARINT_BYTES_MAX = 10
const TWO_32 = 0x1_0000_0000

class Malformed extends Error {}

class ProtoReader {
  constructor (bytes, from = 0, to = bytes.length) {
    this.bytes = bytes
    this.at = from
    this.end = to
    this.wire = 0
    this.lo = 0
    this.hi = 0
    this.from = 0
    this.to = 0
  }

  /** The number of the next field, 0 at the end. HOT, some hundred times a span. */
  next () {
    if (this.at >= this.end) return 0
    this.#varint()
    if (this.hi !== 0) throw new Malformed('a field number is too large')
    const field = this.lo >>> 3
    this.wire = this.lo & 7
    if (field === 0) throw new Malformed('a field has number 0')
    switch (this.wire) {
      case VARINT:
        this.#varint()
        break
      case FIXED64:
        this.#need(8)
        this.lo = this.bytes.readUInt32LE(this.at)
        this.hi = this.bytes.readUInt32LE(this.at + 4)
        this.at += 8
        break
      case BYTES:
        this.#varint()
        if (this.hi !== 0) throw new Malformed('a length is too large')
        this.#need(this.lo)
        this.from = this.at
        this.to = this.at += this.lo
        break
      case FIXED32:
        this.#need(4)
        this.lo = this.bytes.readUInt32LE(this.at)
        this.hi = 0
        this.at += 4
        break
      default:
        throw new Malformed(`a field has wire type ${this.wire}`)
    }
    return field
  }

  /** Reads the next number of a packed list of varints. @returns {boolean} false at the end */
  nextPacked () {
    if (this.at >= this.end) return false
    this.#varint()
    this.wire = VARINT
    return true
  }

  /** Moves this reader to another part of the bytes. */
  over (from, to) {
    this.at = from
    this.end = to
    return this
  }

  /** A reader of the message that was just read. */
  message () {
    this.expect(BYTES)
    return new ProtoReader(this.bytes, this.from, this.to)
  }

  /** Broken UTF-8 becomes U+FFFD. */
  text () {
    this.expect(BYTES)
    return this.bytes.utf8Slice(this.from, this.to)
  }

  hex () {
    this.expect(BYTES)
    return this.bytes.hexSlice(this.from, this.to)
  }

  /** An unsigned number; above 2⁵³ it is rounded. */
  number () {
    if (this.wire === BYTES) throw new Malformed('a number was expected')
    return this.hi * TWO_32 + this.lo
  }

  /** A signed 64-bit number as a BigInt. */
  int64 () {
    this.expect(VARINT)
    return BigInt.asIntN(64, (BigInt(this.hi) << 32n) | BigInt(this.lo))
  }

  double () {
    this.expect(FIXED64)
    return this.bytes.readDoubleLE(this.at - 8)
  }

  expect (wire) {
    if (this.wire !== wire) throw new Malformed(`wire type ${wire} was expected, ${this.wire} came`)
  }

  #need (count) {
    if (count > this.end - this.at) throw new Malformed('a field is longer than its message')
  }

  #varint () {
    const { bytes, end } = this
    let at = this.at
    if (at < end && bytes[at] < 0x80) { // most varints have one byte
      this.lo = bytes[at]
      this.hi = 0
      this.at = at + 1
      return
    }
    let lo = 0
    let hi = 0
    const last = Math.min(end, at + VARINT_BYTES_MAX)
    for (let shift = 0; at < last; shift += 7) {
      const byte = bytes[at++]
      const bits = byte & 0x7f
      if (shift < 28) lo += bits * 2 ** shift
      else if (shift === 28) {
        lo += (bits & 0x0f) * 2 ** 28
        hi = bits >>> 4
      } else hi += bits * 2 ** (shift - 32)
      if (byte < 0x80) {
        this.lo = lo
        this.hi = hi % TWO_32 // the tenth byte may hold more than a 64th bit
        this.at = at
        return
      }
    }
    throw new Malformed('a number does not end')
  }
}

module.exports = { ProtoReader, Malformed, VARINT, BYTES }
