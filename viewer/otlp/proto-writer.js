'use strict'

// Writes protobuf messages from the inside out: an inner message is complete, and its length known, before it is added to the outer one.

const BYTE_MAX = 0x80

class Message {
  parts = []
  length = 0

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
    for (const part of message.parts) this.parts.push(part)
    this.length += message.length
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
    this.#fixed(field * 8 + 1, Buffer.allocUnsafe(8), (bytes) => bytes.writeBigUInt64LE(BigInt.asUintN(64, value)))
  }

  fixed32 (field, value) {
    this.#fixed(field * 8 + 5, Buffer.allocUnsafe(4), (bytes) => bytes.writeUInt32LE(value >>> 0))
  }

  double (field, value) {
    this.#fixed(field * 8 + 1, Buffer.allocUnsafe(8), (bytes) => bytes.writeDoubleLE(value))
  }

  finish () {
    return Buffer.concat(this.parts, this.length)
  }

  #fixed (tag, bytes, write) {
    this.#varint(tag)
    write(bytes)
    this.#add(bytes)
  }

  #varint (value) {
    const bytes = []
    while (value >= BYTE_MAX) {
      bytes.push((value % BYTE_MAX) + BYTE_MAX)
      value = Math.floor(value / BYTE_MAX)
    }
    bytes.push(value)
    this.#add(Buffer.from(bytes))
  }

  #varint64 (value) {
    const bytes = []
    while (value >= 128n) {
      bytes.push(Number(value & 127n) + BYTE_MAX)
      value >>= 7n
    }
    bytes.push(Number(value))
    this.#add(Buffer.from(bytes))
  }

  #add (bytes) {
    this.parts.push(bytes)
    this.length += bytes.length
  }
}

module.exports = { Message }
