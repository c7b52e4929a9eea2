'use strict'

// What a collector's answer says, beyond its status: whether it is OTLP's at all, and what became of the spans.
// The body comes from outside: it is bounded before it comes here, and only `printable` text of it goes on.
// https://opentelemetry.io/docs/specs/otlp/#otlphttp-response

const { printable } = require('../../runtime/printable')
const { readPartialSuccess, readStatusMessage } = require('./partial-success')

const PROTOBUF = /^application\/(x-protobuf|protobuf|vnd\.google\.protobuf)\b/
const HTML_BEGINS = /^\s*<(!doctype\s+html|html)\b/i
const TEXT_BYTES = 1024

const EMPTY = 'empty'
const IS_PROTOBUF = 'protobuf'
const IS_JSON = 'json'
const IS_HTML = 'html'
const IS_GRPC = 'grpc'
const OTHER = 'other'

module.exports = { readAnswer }

/**
 * @param {{ fields, body: Buffer, isOversized: boolean }} response
 * @param {boolean} isSuccess by its status
 * @returns {{ format: string, isOtlp: boolean, partialSuccess: object | null, message: string }}
 *   isOtlp false: a success of something else, which has no use for spans; message: why it failed
 */
function readAnswer ({ fields, body, isOversized }, isSuccess) {
  const type = (fields.get('content-type') ?? '').toLowerCase()
  const text = body.toString('utf8', 0, TEXT_BYTES)
  const json = isJsonType(type) || (type === '' && /^\s*\{/.test(text)) ? parse(body, isOversized) : undefined
  const format = formatOf(type, body, text, json)
  return {
    format,
    isOtlp: format !== IS_HTML && format !== IS_GRPC,
    partialSuccess: isSuccess ? partialSuccessOf(format, body, json, isOversized) : null,
    message: isSuccess ? '' : messageOf(format, body, text, type)
  }
}

function formatOf (type, body, text, json) {
  if (type.startsWith('application/grpc')) return IS_GRPC
  if (body.length === 0) return EMPTY
  if (PROTOBUF.test(type)) return IS_PROTOBUF
  if (json !== undefined) return json !== null && typeof json === 'object' && !Array.isArray(json) ? IS_JSON : OTHER
  if (type.includes('html') || HTML_BEGINS.test(text)) return IS_HTML
  return type === '' ? IS_PROTOBUF : OTHER
}

function isJsonType (type) {
  return type.startsWith('application/json') || /^application\/[\w.-]+\+json\b/.test(type) || type.startsWith('text/json')
}

/** Undefined where it is no JSON. Of one that was cut off only its beginning is known. */
function parse (body, isOversized) {
  try {
    return isOversized ? (/^\s*\{/.test(body.toString('latin1', 0, 64)) ? {} : undefined) : JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

function partialSuccessOf (format, body, json, isOversized) {
  if (format === IS_PROTOBUF) return readPartialSuccess(body, isOversized)
  if (format !== IS_JSON) return null
  const found = own(json, 'partialSuccess') ?? own(json, 'partial_success')
  if (found === null || typeof found !== 'object') return null
  // An int64 is a string of digits in JSON.
  const rejected = Number(own(found, 'rejectedSpans') ?? own(found, 'rejected_spans') ?? 0)
  const message = own(found, 'errorMessage') ?? own(found, 'error_message')
  return { rejected: Number.isFinite(rejected) ? rejected : 0, message: typeof message === 'string' ? printable(message) : '' }
}

function own (object, key) {
  return object !== undefined && object !== null && Object.hasOwn(object, key) ? object[key] : undefined
}

// A failure's body is google.rpc.Status by the specification, and whatever a proxy says in practice. Of a page nothing is said.
function messageOf (format, body, text, type) {
  if (format === IS_PROTOBUF && type !== '') return readStatusMessage(body)
  if (format === IS_JSON || type.startsWith('text/plain')) return printable(text)
  return type === '' && format === IS_PROTOBUF && isText(text) ? printable(text) : ''
}

function isText (text) {
  // eslint-disable-next-line no-control-regex
  return !/[\u0000-\u0008\u000e-\u001f\ufffd]/.test(text)
}
