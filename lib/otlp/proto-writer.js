'use strict'

// A cursor that writes protobuf into reserved memory. Lengths are padded to four bytes, so that no bytes have to be moved.
//
//   one attribute:  4A 80 80 80 00 | 0A len key | 12 80 80 00 | 0A 80 80 00 value
//                   tag, length    | key        | AnyValue    | string_value

const { Buffer } = require('node:buffer')

const LOOP_LENGTH_MAX = 15 // up to this length a loop over char codes is faster than the call into C++
const LONG_TEXT = 1024 // above this length it is worth counting the bytes

// Bits of Span.flags and Link.flags above the W3C byte: whether it is known if the other span is remote, and whether it is.
const HAS_IS_REMOTE = 0x100
const IS_REMOTE = 0x200

class ProtoWriter {
  /** @param {number} byteCount size of its own memory; 0 for a writer that is pointed at chunks */
  constructor (byteCount = 0) {
    this.bytes = Buffer.alloc(byteCount)
    this.view = new DataView(this.bytes.buffer, this.bytes.byteOffset, byteCount)
    this.position = 0
  }

  /** Points the writer at `position` of a chunk, which must have room for everything that will be written. */
  open (bytes, view, position) {
    this.bytes = bytes
    this.view = view
    this.position = position
  }

  /** The bytes that were written into its own memory. */
  get written () { return this.bytes.subarray(0, this.position) }

  byte (value) { this.bytes[this.position++] = value }

  varint (value) { this.position = putInt64(this.bytes, this.position, value) }

  copy (source) {
    this.bytes.set(source, this.position)
    this.position += source.length
  }

  /** Reserves four bytes for a length, which `length4` fills in. */
  reserve4 () {
    const at = this.position
    this.position += 4
    return at
  }

  length4 (at) { writeLength4(this.view, at, this.position - at - 4) }

  string (tag, value) { this.position = writeString(this.bytes, this.view, this.position, tag, value) }

  double (value) {
    this.view.setFloat64(this.position, value, true)
    this.position += 8
  }

  fixed32 (value) {
    this.view.setInt32(this.position, value, true)
    this.position += 4
  }
}

/** Writes a text field. Returns its end. HOT */
function writeString (bytes, view, at, tag, value) {
  bytes[at] = tag
  const end = writeText(bytes, at + 5, value)
  writeLength4(view, at + 1, end - at - 5)
  return end
}

/** Writes a safe integer as a varint, with ten bytes if it is negative. Returns its end. */
function putInt64 (bytes, at, value) {
  let low = value >>> 0
  let high = Math.floor(value / 0x100000000) >>> 0
  while (high > 0 || low > 0x7f) {
    bytes[at++] = (low & 0x7f) | 0x80
    low = (low >>> 7 | high << 25) >>> 0
    high >>>= 7
  }
  bytes[at++] = low
  return at
}

/** Writes text as UTF-8, with lone surrogates as U+FFFD. Returns its end. HOT */
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

/** Upper bound of what `writeText` writes: three bytes per UTF-16 unit, or the exact number of bytes. */
function textBound (value, isExact = false) {
  return isExact || value.length > LONG_TEXT ? Buffer.byteLength(value) : value.length * 3
}

// KeyValue and AnyValue of opentelemetry/proto/common/v1/common.proto. Values were checked and truncated when they were set.

// The tag and length of the attribute, of its key and of its value.
const KEY_VALUE_OVERHEAD = 15
const NUMBER_BOUND = 11 // the tag and ten bytes of a negative integer

// The encoded fields of keys that were written before. Bounded, because keys may contain user data.
const KNOWN_KEYS_MAX = 1000
const KNOWN_KEY_LENGTH_MAX = 100
const knownKeys = new Map()

/** Upper bound of the bytes that a flat list of attributes takes. If `isExact`, the bytes of short texts are counted too. */
function attributesBound (list, isExact = false) {
  let bound = 0
  for (let i = 0; i < list.length; i += 2) bound += attributeBound(list[i], list[i + 1], isExact)
  return bound
}

function attributeBound (key, value, isExact) {
  return KEY_VALUE_OVERHEAD + textBound(key, isExact) + valueBound(value, isExact)
}

function valueBound (value, isExact = false) {
  if (typeof value === 'string') return 5 + textBound(value, isExact)
  if (typeof value !== 'object' || value === null) return NUMBER_BOUND
  if (value instanceof Uint8Array) return 6 + value.length
  let bound = 5
  if (Array.isArray(value)) for (const element of value) bound += 5 + valueBound(element, isExact)
  else for (const key of Object.keys(value)) bound += attributeBound(key, value[key], isExact)
  return bound
}

function writeAttributes (writer, tag, list) {
  for (let i = 0; i < list.length; i += 2) writeAttribute(writer, tag, list[i], list[i + 1])
}

function writeAttribute (writer, tag, key, value) {
  writer.byte(tag)
  const at = writer.reserve4()
  writeKey(writer, key)
  const valueAt = writer.reserve4()
  writeValue(writer, value)
  writer.length4(valueAt)
  writer.length4(at)
}

/** Writes the key and the tag of the value. */
function writeKey (writer, key) {
  const known = knownKeys.get(key)
  if (known !== undefined) return writer.copy(known)
  const start = writer.position
  writer.string(0x0a, key)
  writer.byte(0x12)
  if (knownKeys.size === KNOWN_KEYS_MAX || key.length > KNOWN_KEY_LENGTH_MAX) return
  knownKeys.set(key, Buffer.from(writer.bytes.subarray(start, writer.position)))
}

function writeValue (writer, value) {
  switch (typeof value) {
    case 'string': return writer.string(0x0a, value)
    case 'boolean':
      writer.byte(0x10)
      return writer.byte(value ? 1 : 0)
    case 'number':
      if (Number.isSafeInteger(value)) {
        writer.byte(0x18)
        return writer.varint(value)
      }
      writer.byte(0x21)
      return writer.double(value)
    default:
      if (value !== null) writeObject(writer, value) // null is an AnyValue without a field
  }
}

function writeObject (writer, value) {
  if (value instanceof Uint8Array) {
    writer.byte(0x3a)
    writer.varint(value.length)
    return writer.copy(value)
  }
  const isArray = Array.isArray(value)
  writer.byte(isArray ? 0x2a : 0x32)
  const at = writer.reserve4()
  if (isArray) for (const element of value) writeElement(writer, element)
  else for (const key of Object.keys(value)) writeAttribute(writer, 0x0a, key, value[key])
  writer.length4(at)
}

function writeElement (writer, element) {
  writer.byte(0x0a)
  const at = writer.reserve4()
  writeValue(writer, element)
  writer.length4(at)
}

/** Encodes a flat list with unpadded lengths, for bytes that are encoded once and copied often. */
function encodeAttributes (tag, list) {
  const parts = []
  for (let i = 0; i < list.length; i += 2) {
    parts.push(field(tag, Buffer.concat([text(0x0a, list[i]), field(0x12, encodeValue(list[i + 1]))])))
  }
  return Buffer.concat(parts)
}

function encodeValue (value) {
  if (typeof value === 'string') return text(0x0a, value)
  const writer = new ProtoWriter(valueBound(value))
  writeValue(writer, value)
  return writer.written
}

function field (tag, content) {
  const length = []
  let rest = content.length
  while (rest > 0x7f) {
    length.push((rest & 0x7f) | 0x80)
    rest >>>= 7
  }
  return Buffer.concat([Buffer.from([tag, ...length, rest]), content])
}

function text (tag, value) {
  return field(tag, Buffer.from(value))
}

module.exports = {
  ProtoWriter,
  writeLength4,
  writeString,
  writeText,
  putInt64,
  textBound,
  HAS_IS_REMOTE,
  IS_REMOTE,
  attributeBound,
  attributesBound,
  valueBound,
  writeAttributes,
  writeAttribute,
  writeValue,
  encodeAttributes,
  field,
  text
}
