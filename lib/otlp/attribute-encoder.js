'use strict'

// KeyValue and AnyValue of opentelemetry/proto/common/v1/common.proto. Values were checked and cut when
// they were set; here they are only written.

const { Buffer } = require('node:buffer')
const { ProtoWriter, textBound } = require('./proto-writer')

// Tag, two lengths of four bytes, the key's tag and length, AnyValue's tag.
const KEY_VALUE_OVERHEAD = 24
const NUMBER_BOUND = 12

// The fields of keys that were written before, as bytes: an application has a few, and sets them with every request. Bounded,
// because keys may be made of anything.
const KNOWN_KEYS_MAX = 1000
const KNOWN_KEY_LENGTH_MAX = 100
const knownKeys = new Map()

/** Upper bound of the bytes that a flat list of attributes takes. */
function attributesBound (list) {
  let bound = 0
  for (let i = 0; i < list.length; i += 2) bound += KEY_VALUE_OVERHEAD + textBound(list[i]) + valueBound(list[i + 1])
  return bound
}

function valueBound (value) {
  if (typeof value === 'string') return 5 + textBound(value)
  if (typeof value !== 'object' || value === null) return NUMBER_BOUND
  if (value instanceof Uint8Array) return 6 + value.length
  let bound = 5
  if (Array.isArray(value)) for (const element of value) bound += 5 + valueBound(element)
  else for (const key of Object.keys(value)) bound += KEY_VALUE_OVERHEAD + textBound(key) + valueBound(value[key])
  return bound
}

/** Writes a flat list as repeated KeyValue fields under `tag`. */
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

/** The key and the value's tag. */
function writeKey (writer, key) {
  const known = knownKeys.get(key)
  if (known !== undefined) {
    writer.copy(known)
    return
  }
  const start = writer.position
  writer.string(0x0a, key)
  writer.byte(0x12)
  if (knownKeys.size === KNOWN_KEYS_MAX || key.length > KNOWN_KEY_LENGTH_MAX) return
  knownKeys.set(key, Buffer.from(writer.bytes.subarray(start, writer.position)))
}

function writeValue (writer, value) {
  switch (typeof value) {
    case 'string':
      writer.string(0x0a, value)
      return
    case 'boolean':
      writer.byte(0x10)
      writer.byte(value ? 1 : 0)
      return
    case 'number':
      if (Number.isSafeInteger(value)) {
        writer.byte(0x18)
        writer.int64(value)
      } else {
        writer.byte(0x21)
        writer.double(value)
      }
      return
    default:
      if (value !== null) writeObject(writer, value) // null has no field of its own: an empty AnyValue
  }
}

function writeObject (writer, value) {
  if (Array.isArray(value)) writeArray(writer, value)
  else if (value instanceof Uint8Array) writeBytes(writer, value)
  else writeMap(writer, value)
}

function writeBytes (writer, bytes) {
  writer.byte(0x3a)
  writer.varint(bytes.length)
  writer.copy(bytes)
}

function writeMap (writer, map) {
  writer.byte(0x32)
  const at = writer.reserve4()
  for (const key of Object.keys(map)) writeAttribute(writer, 0x0a, key, map[key])
  writer.length4(at)
}

function writeArray (writer, array) {
  writer.byte(0x2a)
  const at = writer.reserve4()
  for (const element of array) {
    writer.byte(0x0a)
    const elementAt = writer.reserve4()
    writeValue(writer, element)
    writer.length4(elementAt)
  }
  writer.length4(at)
}

/** The same as bytes of their own with the shortest lengths: for what is encoded once and copied often. */
function encodeAttributes (tag, list) {
  const parts = []
  for (let i = 0; i < list.length; i += 2) {
    parts.push(field(tag, Buffer.concat([text(0x0a, list[i]), field(0x12, encodeValue(list[i + 1]))])))
  }
  return Buffer.concat(parts)
}

function encodeValue (value) {
  if (typeof value === 'string') return text(0x0a, value)
  if (Array.isArray(value)) return field(0x2a, Buffer.concat(value.map((element) => field(0x0a, encodeValue(element)))))
  if (value instanceof Uint8Array) return field(0x3a, Buffer.from(value))
  if (typeof value === 'object' && value !== null) return field(0x32, encodeAttributes(0x0a, Object.entries(value).flat()))
  const writer = new ProtoWriter()
  const memory = Buffer.alloc(NUMBER_BOUND)
  writer.open(memory, new DataView(memory.buffer, memory.byteOffset, memory.length), 0)
  writeValue(writer, value)
  return memory.subarray(0, writer.position)
}

/** One length-delimited field. */
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

module.exports = { attributesBound, valueBound, writeAttributes, writeAttribute, writeValue, encodeAttributes, field, text }
