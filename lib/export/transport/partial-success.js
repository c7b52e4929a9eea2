'use strict'

// Reads the one thing in a collector's response that matters: ExportTraceServiceResponse.partial_success.
// The bytes come from outside: nothing here throws, recurses or allocates by what they claim.
//
//   ExportTraceServiceResponse  1: partial_success { 1: rejected_spans int64, 2: error_message string }

const { printable } = require('../../runtime/printable')

const WIRE_VARINT = 0
const WIRE_FIXED64 = 1
const WIRE_BYTES = 2
const WIRE_FIXED32 = 5

// A message longer than this is not read to its end.
const MESSAGE_BYTES_MAX = 1024

module.exports = { readPartialSuccess, readStatusMessage }

// → { rejected, message }, or null where there is none or the bytes are something else.
// `rejected` is what was sent, not yet held against the number of spans in the request. Of an answer that was cut off the
// number counts all the same: it comes before the message.
function readPartialSuccess (bytes, isCutOff = false) {
  const reader = { bytes, at: 0, end: bytes.length }
  let found = null
  while (reader.at < reader.end) {
    const tag = varint(reader)
    if (tag === 0x0a) {
      const length = varint(reader)
      if (!(length <= reader.end - reader.at || isCutOff)) return null
      found = partialSuccess({ bytes, at: reader.at, end: Math.min(reader.at + length, reader.end) }, isCutOff)
      reader.at += length
    } else if (!skip(reader, tag)) return null
  }
  return found
}

// The message of a google.rpc.Status { 1: code, 2: message }, which is the body of a failure; '' where there is none.
function readStatusMessage (bytes) {
  const reader = { bytes, at: 0, end: bytes.length }
  while (reader.at < reader.end) {
    const tag = varint(reader)
    if (tag === 0x12) {
      const length = varint(reader)
      if (!(length > 0)) return ''
      return printable(bytes.toString('utf8', reader.at, Math.min(reader.at + length, reader.at + MESSAGE_BYTES_MAX, reader.end)))
    }
    if (!skip(reader, tag)) return ''
  }
  return ''
}

function partialSuccess (reader, isCutOff) {
  let rejected = 0
  let message = ''
  while (reader.at < reader.end) {
    const tag = varint(reader)
    if (tag === 0x08) {
      rejected = varint(reader)
      if (Number.isNaN(rejected)) return null
    } else if (tag === 0x12) {
      const length = varint(reader)
      if (!(length <= reader.end - reader.at || isCutOff)) return null
      message = printable(reader.bytes.toString('utf8', reader.at, Math.min(reader.at + length, reader.at + MESSAGE_BYTES_MAX, reader.end)))
      reader.at += length
    } else if (!skip(reader, tag)) return null
  }
  return { rejected, message }
}

// NaN where the bytes end first or it is longer than ten. An int64 below zero comes out as a number below zero;
// above 2^53 it is rounded, which is exact enough for a count that is clamped.
function varint (reader) {
  let value = 0
  let scale = 1
  for (let i = 0; i < 10; i++) {
    if (reader.at >= reader.end) return NaN
    const byte = reader.bytes[reader.at++]
    value += (byte & 0x7f) * scale
    // Bit 63, the sign, is the last bit of a tenth byte.
    if (byte < 0x80) return i === 9 && byte !== 0 ? value - 2 ** 64 : value
    scale *= 128
  }
  return NaN
}

// Over a field that we do not know; false where that is impossible.
function skip (reader, tag) {
  if (!(tag >= 8)) return false
  const wire = tag % 8
  let length = 0
  if (wire === WIRE_VARINT) length = Number.isNaN(varint(reader)) ? NaN : 0
  else if (wire === WIRE_FIXED64) length = 8
  else if (wire === WIRE_BYTES) length = varint(reader)
  else if (wire === WIRE_FIXED32) length = 4
  else return false
  if (!(length >= 0 && length <= reader.end - reader.at)) return false
  reader.at += length
  return true
}
