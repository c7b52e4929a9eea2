'use strict'

// Writes protobuf messages from the inside out: an inner message is complete, and its length known, before it is added to the outer one.
// What is short is copied into chunks, because a body of JSON may have millions of values, and a buffer for each would cost 100 bytes more.

const BYTE_MAX = 0x80
const VARINT_BYTES_MAX = 10
const CHUNK_START_BYTES = 32
const CHUNK_BYTES = 16_384
const COPIED_MAX = CHUNK_BYTES / 2
const NOTHING = Buffer.alloc(0)

class Message {
  length = 0
  #full = []
  #chunk = NOTHING // is being filled
  #at = 0

  bytes (field, value) {
    this.#varint(field * 8 + 2)
    this.#varint(value.length)
    this.#add(value)
  }

  /** Lone surrogates become U+FFFD. */
  text (field, value) {
    this.bytes(field, Buffer.from(value, 'utf8'))
  }

  message (field, message) {
    this.#varint(field * 8 + 2)
    this.#varint(message.length)
    message.#addTo(this)
  }

  /** @param {number | bigint} value a negative value is written as 64 bits */
  varint (field, value) {
    this.#varint(field * 8)
    this.packedVarint(value)
  }

  /** A value of a packed list. @param {number | bigint} value */
  packedVarint (value) {
    if (value < 0 || value > 0xffff_ffff) this.#varint64(BigInt.asUintN(64, BigInt(value)))
    else this.#varint(Number(value))
  }

  /** @param {bigint} value */
  fixed64 (field, value) {
    this.#varint(field * 8 + 1)
    this.#room(8).writeBigUInt64LE(BigInt.asUintN(64, value), this.#take(8))
  }

  fixed32 (field, value) {
    this.#varint(field * 8 + 5)
    this.#room(4).writeUInt32LE(value >>> 0, this.#take(4))
  }

  double (field, value) {
    this.#varint(field * 8 + 1)
    this.#room(8).writeDoubleLE(value, this.#take(8))
  }

  finish () {
    this.#close()
    return Buffer.concat(this.#full, this.length)
  }

  #addTo (outer) {
    for (const part of this.#full) outer.#add(part)
    if (this.#at > 0) outer.#add(this.#chunk.subarray(0, this.#at))
  }

  #add (bytes) {
    if (bytes.length <= COPIED_MAX) {
      this.#room(bytes.length).set(bytes, this.#take(bytes.length))
      return
    }
    this.#close()
    this.#full.push(bytes)
    this.length += bytes.length
  }

  #varint (value) {
    const chunk = this.#room(VARINT_BYTES_MAX)
    for (; value >= BYTE_MAX; value = Math.floor(value / BYTE_MAX)) chunk[this.#take(1)] = (value % BYTE_MAX) + BYTE_MAX
    chunk[this.#take(1)] = value
  }

  #varint64 (value) {
    const chunk = this.#room(VARINT_BYTES_MAX)
    for (; value >= 128n; value >>= 7n) chunk[this.#take(1)] = Number(value & 127n) + BYTE_MAX
    chunk[this.#take(1)] = Number(value)
  }

  /** The chunk to write into, with room for so many bytes more. */
  #room (count) {
    const needed = this.#at + count
    if (needed <= this.#chunk.length) return this.#chunk
    const before = this.#chunk
    if (needed > CHUNK_BYTES) this.#close()
    this.#chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(CHUNK_START_BYTES, 2 * needed)))
    before.copy(this.#chunk, 0, 0, this.#at)
    return this.#chunk
  }

  /** @returns {number} where in the chunk the bytes are to be written */
  #take (count) {
    const at = this.#at
    this.#at += count
    this.length += count
    return at
  }

  #close () {
    if (this.#at > 0) this.#full.push(this.#chunk.subarray(0, this.#at))
    this.#chunk = NOTHING
    this.#at = 0
  }
}

module.exports = { Message }
