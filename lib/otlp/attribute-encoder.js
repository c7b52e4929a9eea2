'use strict'

// KeyValue and AnyValue of opentelemetry/proto/common/v1/common.proto. Values were checked and cut when they were set.

const { Buffer } = require('node:buffer')
const { ProtoWriter, textBound } = require('./proto-writer')

// Tag and length, the key's tag and length, the value's.
const KEY_VALUE_OVERHEAD = 15
const NUMBER_BOUND = 11 // a tag and a negative integer

// The fields of keys that were written before, as bytes. Bounded, because keys may be made of anything.
const KNOWN_KEYS_MAX = 1000
const KNOWN_KEY_LENGTH_MAX = 100
const knownKeys = new Map()

/** Upper bound of the bytes that a flat list of attributes takes. Where `isExact`, the bytes of short texts are counted too. */
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

/** Writes a flat list. */
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

/** Writes the key and the value's tag. */
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
        return writer.int64(value)
      }
      writer.byte(0x21)
      return writer.double(value)
    default:
      if (value !== null) writeObject(writer, value) // null has no field of its own: an empty AnyValue
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

/** Returns a flat list as bytes with short lengths, for what is encoded once and copied often. */
function encodeAttributes (tag, list) {
  const parts = []
  for (let i = 0; i < list.length; i += 2) {
    parts.push(field(tag, Buffer.concat([text(0x0a, list[i]), field(0x12, encodeValue(list[i + 1]))])))
  }
  return Buffer.concat(parts)
}

function encodeValue (value) {
  if (typeof value === 'string') return text(0x0a, value)
  const writer = ProtoWriter.alone(valueBound(value))
  writeValue(writer, value)
  return writer.written
}

/** Returns one length-delimited field. */
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

module.exports = { attributeBound, attributesBound, valueBound, writeAttributes, writeAttribute, writeValue, encodeAttributes, field, text }
