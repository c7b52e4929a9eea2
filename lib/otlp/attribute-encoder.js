'use strict'

// KeyValue and AnyValue of opentelemetry/proto/common/v1/common.proto. Values were checked and cut when
// they were set; here they are only written.

const { textBound } = require('./proto-writer')

// Tag, two lengths of four bytes, the key's tag and length, AnyValue's tag.
const KEY_VALUE_OVERHEAD = 24
const NUMBER_BOUND = 12

/** Upper bound of the bytes that a flat list of attributes takes. */
function attributesBound (list) {
  let bound = 0
  for (let i = 0; i < list.length; i += 2) bound += KEY_VALUE_OVERHEAD + textBound(list[i]) + valueBound(list[i + 1])
  return bound
}

function valueBound (value) {
  if (typeof value === 'string') return 5 + textBound(value)
  if (!Array.isArray(value)) return NUMBER_BOUND
  let bound = 5
  for (const element of value) bound += 5 + valueBound(element)
  return bound
}

/** Writes a flat list as repeated KeyValue fields under `tag`. */
function writeAttributes (writer, tag, list) {
  for (let i = 0; i < list.length; i += 2) writeAttribute(writer, tag, list[i], list[i + 1])
}

function writeAttribute (writer, tag, key, value) {
  writer.byte(tag)
  const at = writer.reserve4()
  writer.string(0x0a, key)
  writer.byte(0x12)
  const valueAt = writer.reserve4()
  writeValue(writer, value)
  writer.length4(valueAt)
  writer.length4(at)
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
      if (Array.isArray(value)) writeArray(writer, value)
      // null has no field of its own: an empty AnyValue
  }
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

module.exports = { attributesBound, writeAttributes, writeAttribute, valueBound }
