'use strict'

// What a collector's answer says: whether it is OTLP's at all, and what became of the spans. The body comes from outside: nothing
// here throws, recurses or allocates by what it claims, and only `printable` text of it goes on.
// https://opentelemetry.io/docs/specs/otlp/#otlphttp-response

const { printable } = require('../../runtime/report')
const { dispositionOf, retryAfterMs } = require('./retry')
const { hide } = require('./secrets')

const PROTOBUF_TYPE = /^application\/(x-protobuf|protobuf|vnd\.google\.protobuf)\b/
const JSON_TYPE = /^(application\/json|application\/[\w.-]+\+json\b|text\/json)/
const JSON_BEGINS = /^\s*\{/
// Of spans, or of the data points of metrics.
const REJECTED = /"rejected_?(?:spans|data_?points)"\s*:\s*"?(-?\d+)/i
const REJECTED_KEY = /^rejected_?(?:spans|data_?points)$/i
const HTML_BEGINS = /^\s*<(!doctype\s+html|html)\b/i
// eslint-disable-next-line no-control-regex
const NO_TEXT = /[\u0000-\u0008\u000e-\u001f\ufffd]/
const TEXT_BYTES_MAX = 1024 // of a message or a page

// Tags of protobuf fields: number << 3 | wire type.
const TAG_PARTIAL_SUCCESS = 0x0a
const TAG_REJECTED = 0x08
const TAG_MESSAGE = 0x12
const TAG_BROKEN = 0 // which no field has
const VARINT = 0
const BYTES = 2
const FIXED_BYTES = { 1: 8, 5: 4 }

/**
 * Reads an HttpResponse into the fields of an Outcome. The format is 'empty', 'protobuf', 'json', 'html', 'grpc' or 'other'.
 * A success that is a web page or gRPC is something else's, which has no use for spans. One that is longer than the specification
 * allows is a failure, and no attempt is made again. `secrets`, see secrets.js, are not quoted.
 */
function readAnswer ({ status, fields, body, isCut, isOversized }, wallNow, secrets = []) {
  hide(body, secrets)
  const isTooLong = isOversized && dispositionOf(status) === 'delivered'
  const disposition = isTooLong ? 'refused' : dispositionOf(status)
  const isSuccess = disposition === 'delivered'
  const type = (fields.get('content-type') ?? '').toLowerCase()
  const text = body.toString('utf8', 0, TEXT_BYTES_MAX)
  const isJson = JSON_TYPE.test(type) || (type === '' && JSON_BEGINS.test(text))
  const json = isJson ? parse(body, text, isCut) : undefined
  const format = formatOf(type, body, text, json)
  return {
    status,
    error: null,
    disposition: isSuccess && (format === 'html' || format === 'grpc') ? 'misdirected' : disposition,
    retryAfterMs: retryAfterMs(fields.get('retry-after'), wallNow),
    format,
    partialSuccess: isSuccess ? partialSuccessOf(format, body, json, isCut) : null,
    message: isSuccess ? '' : isTooLong ? 'its answer is longer than 4 MiB' : messageOf(format, body, text, type)
  }
}

// Undefined if it is no JSON. Of one that was cut off only its beginning is known, where the number comes before the message.
function parse (body, text, isCut) {
  if (isCut) return JSON_BEGINS.test(text) ? { partialSuccess: { rejectedSpans: REJECTED.exec(text)?.[1] } } : undefined
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

function formatOf (type, body, text, json) {
  if (type.startsWith('application/grpc')) return 'grpc'
  if (body.length === 0) return 'empty'
  if (PROTOBUF_TYPE.test(type)) return 'protobuf'
  if (json !== undefined) return json !== null && typeof json === 'object' && !Array.isArray(json) ? 'json' : 'other'
  if (type.includes('html') || HTML_BEGINS.test(text)) return 'html'
  return type === '' ? 'protobuf' : 'other'
}

function partialSuccessOf (format, body, json, isCut) {
  if (format === 'protobuf') return readPartialSuccess(body, isCut)
  if (format !== 'json') return null
  const found = own(json, 'partialSuccess') ?? own(json, 'partial_success')
  if (found === null || typeof found !== 'object') return null
  // An int64 is a string of digits in JSON.
  const rejected = Number(found[Object.keys(found).find((key) => REJECTED_KEY.test(key))] ?? 0)
  const message = own(found, 'errorMessage') ?? own(found, 'error_message')
  return { rejected: Number.isFinite(rejected) ? rejected : 0, message: typeof message === 'string' ? printable(message) : '' }
}

function own (object, key) {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

// A failure's body is google.rpc.Status { 1: code, 2: message } by the specification, and whatever a proxy says in practice.
// Of a page nothing is logged.
function messageOf (format, body, text, type) {
  if (format === 'protobuf' && type !== '') return readText(readFields(body, true).get(TAG_MESSAGE))
  if (format === 'json' || type.startsWith('text/plain')) return printable(text)
  return format === 'protobuf' && !NO_TEXT.test(text) ? printable(text) : ''
}

// Reads ExportTraceServiceResponse, 1: partial_success { 1: rejected_spans int64, 2: error_message string }. Null for
// something else. `rejected` is as it came, and counts if the answer was cut off: it comes before the message.
function readPartialSuccess (bytes, isCutOff = false) {
  const response = readFields(bytes, isCutOff)
  const partialSuccess = response.get(TAG_PARTIAL_SUCCESS)
  if (response.has(TAG_BROKEN) || partialSuccess === undefined) return null
  const fields = readFields(partialSuccess, isCutOff)
  if (fields.has(TAG_BROKEN)) return null
  return { rejected: fields.get(TAG_REJECTED) ?? 0, message: readText(fields.get(TAG_MESSAGE)) }
}

function readText (bytes) {
  return bytes === undefined ? '' : printable(bytes.toString('utf8', 0, TEXT_BYTES_MAX))
}

// Returns the last value of each field by its tag, up to what is no field (TAG_BROKEN).
function readFields (bytes, isCutOff) {
  const reader = { bytes, at: 0 }
  const fields = new Map()
  while (reader.at < bytes.length) {
    const tag = varint(reader)
    const value = tag >= 8 ? readValue(reader, tag % 8, isCutOff) : undefined
    if (value === undefined) return fields.set(TAG_BROKEN, true)
    fields.set(tag, value)
  }
  return fields
}

// A number for a varint, bytes for all else; undefined if there is none.
function readValue (reader, wireType, isCutOff) {
  const { bytes } = reader
  const number = wireType === VARINT || wireType === BYTES ? varint(reader) : 0
  if (wireType === VARINT) return Number.isNaN(number) ? undefined : number
  const length = wireType === BYTES ? number : FIXED_BYTES[wireType]
  if (!(length >= 0 && (length <= bytes.length - reader.at || isCutOff))) return undefined
  reader.at += length
  return bytes.subarray(reader.at - length, reader.at)
}

// NaN if the bytes end first or it is longer than ten. An int64 below zero comes out as one; above 2^53 it is rounded.
function varint (reader) {
  let value = 0
  let scale = 1
  for (let i = 0; i < 10; i++) {
    if (reader.at >= reader.bytes.length) return NaN
    const byte = reader.bytes[reader.at++]
    value += (byte & 0x7f) * scale
    // Bit 63, the sign, is the last bit of a tenth byte.
    if (byte < 0x80) return i === 9 && byte !== 0 ? value - 2 ** 64 : value
    scale *= 128
  }
  return NaN
}

module.exports = { readPartialSuccess, readAnswer }
