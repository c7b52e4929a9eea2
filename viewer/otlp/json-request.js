'use strict'

// Converts OTLP JSON to OTLP protobuf, so that the rest of the viewer reads only one format. In JSON, ids are hex, enums are numbers (some
// senders write their names), 64-bit integers are text or numbers, and names are lowerCamelCase.
// https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
//
// A field of the wrong type throws Malformed. Unknown fields are ignored.

const { Message } = require('./proto-writer')
const { Malformed } = require('./proto-reader')
const { LEVELS } = require('./names')

const DEPTH_MAX = 64
const TOO_DEEP = '[nested too deep]'

const SEVERITIES = ['UNSPECIFIED', ...LEVELS.map((level) => level.toUpperCase()).flatMap((level) => [level, `${level}2`, `${level}3`, `${level}4`])]

const UINT64 = /^\d{1,20}$/
const INT64 = /^-?\d{1,19}$/
const HEX = /^(?:[0-9a-f]{2})*$/i

/** @param {any} json the parsed body. @returns {Buffer} an ExportTraceServiceRequest. @throws Malformed */
function requestFromJson (json) {
  return requestOf(json, json?.resourceSpans, 'resourceSpans', (from) => [from.scopeSpans ?? from.instrumentationLibrarySpans, 'scopeSpans', (scoped) => [scoped.spans, 'spans', span]])
}

/** The same for log records. Returns an ExportLogsServiceRequest. */
function logsFromJson (json) {
  return requestOf(json, json?.resourceLogs, 'resourceLogs', (from) => [from.scopeLogs, 'scopeLogs', (scoped) => [scoped.logRecords, 'logRecords', logRecord]])
}

function requestOf (json, list, name, scopesIn) {
  const request = new Message()
  if (!isObject(json)) throw new Malformed('the body is not an object')
  for (const item of listOf(list, name)) request.message(1, ofResource(item, scopesIn(item)))
  return request.finish()
}

function ofResource (from, [list, name, itemsIn]) {
  const message = new Message()
  if (present(from.resource)) message.message(1, attributed(object(from.resource, 'resource'), 1))
  for (const item of listOf(list, name)) message.message(2, ofScope(item, itemsIn(item)))
  text(message, 3, from.schemaUrl, 'schemaUrl')
  return message
}

function ofScope (from, [list, name, write]) {
  const message = new Message()
  const scope = from.scope ?? from.instrumentationLibrary
  if (present(scope)) {
    const inner = new Message()
    text(inner, 1, object(scope, 'scope').name, 'name')
    text(inner, 2, scope.version, 'version')
    attributes(inner, 3, scope.attributes)
    message.message(1, inner)
  }
  for (const item of listOf(list, name)) message.message(2, write(item))
  text(message, 3, from.schemaUrl, 'schemaUrl')
  return message
}

function span (from) {
  const message = new Message()
  id(message, 1, from.traceId, 'traceId')
  id(message, 2, from.spanId, 'spanId')
  text(message, 3, from.traceState, 'traceState')
  id(message, 4, from.parentSpanId, 'parentSpanId')
  text(message, 5, from.name, 'name')
  enumeration(message, 6, from.kind, 'kind', 'SPAN_KIND_', ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'])
  time(message, 7, from.startTimeUnixNano, 'startTimeUnixNano')
  time(message, 8, from.endTimeUnixNano, 'endTimeUnixNano')
  attributes(message, 9, from.attributes)
  count(message, 10, from.droppedAttributesCount)
  for (const item of listOf(from.events, 'events')) message.message(11, event(item))
  count(message, 12, from.droppedEventsCount)
  for (const item of listOf(from.links, 'links')) message.message(13, link(item))
  count(message, 14, from.droppedLinksCount)
  if (present(from.status)) message.message(15, status(object(from.status, 'status')))
  if (present(from.flags)) message.fixed32(16, natural(from.flags, 'flags'))
  return message
}

function logRecord (from) {
  const message = new Message()
  time(message, 1, from.timeUnixNano, 'timeUnixNano')
  enumeration(message, 2, from.severityNumber, 'severityNumber', 'SEVERITY_NUMBER_', SEVERITIES)
  text(message, 3, from.severityText, 'severityText')
  if (present(from.body)) message.message(5, anyValue(object(from.body, 'body'), 0))
  attributes(message, 6, from.attributes)
  count(message, 7, from.droppedAttributesCount)
  if (present(from.flags)) message.fixed32(8, natural(from.flags, 'flags'))
  id(message, 9, from.traceId, 'traceId')
  id(message, 10, from.spanId, 'spanId')
  time(message, 11, from.observedTimeUnixNano, 'observedTimeUnixNano')
  text(message, 12, from.eventName, 'eventName')
  return message
}

function event (from) {
  const message = new Message()
  time(message, 1, from.timeUnixNano, 'timeUnixNano')
  text(message, 2, from.name, 'name')
  attributes(message, 3, from.attributes)
  count(message, 4, from.droppedAttributesCount)
  return message
}

function link (from) {
  const message = new Message()
  id(message, 1, from.traceId, 'traceId')
  id(message, 2, from.spanId, 'spanId')
  text(message, 3, from.traceState, 'traceState')
  attributes(message, 4, from.attributes)
  count(message, 5, from.droppedAttributesCount)
  if (present(from.flags)) message.fixed32(6, natural(from.flags, 'flags'))
  return message
}

function status (from) {
  const message = new Message()
  text(message, 2, from.message, 'message')
  enumeration(message, 3, from.code, 'code', 'STATUS_CODE_', ['UNSET', 'OK', 'ERROR'])
  return message
}

function attributed (from, field) {
  const message = new Message()
  attributes(message, field, from.attributes)
  return message
}

function attributes (message, field, list, depth = 0) {
  for (const item of listOf(list, 'attributes')) {
    const inner = new Message()
    text(inner, 1, item.key, 'key')
    if (present(item.value)) inner.message(2, anyValue(object(item.value, 'value'), depth))
    message.message(field, inner)
  }
}

function anyValue (from, depth) {
  const message = new Message()
  if (depth > DEPTH_MAX) message.text(1, TOO_DEEP)
  else if (present(from.stringValue)) text(message, 1, from.stringValue, 'stringValue', true)
  else if (present(from.boolValue)) message.varint(2, from.boolValue === true || from.boolValue === 'true' ? 1 : 0)
  else if (present(from.intValue)) message.varint(3, integer(from.intValue, INT64, 'intValue'))
  else if (present(from.doubleValue)) message.double(4, Number(from.doubleValue)) // "NaN" and "Infinity" are text
  else if (present(from.arrayValue)) {
    const inner = new Message()
    for (const item of listOf(object(from.arrayValue, 'arrayValue').values, 'values')) inner.message(1, anyValue(item, depth + 1))
    message.message(5, inner)
  } else if (present(from.kvlistValue)) {
    const inner = new Message()
    attributes(inner, 1, object(from.kvlistValue, 'kvlistValue').values, depth + 1)
    message.message(6, inner)
  } else if (present(from.bytesValue)) message.bytes(7, Buffer.from(string(from.bytesValue, 'bytesValue'), 'base64'))
  return message
}

function present (value) {
  return value !== undefined && value !== null
}

function isObject (value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function object (value, name) {
  if (!isObject(value)) throw new Malformed(`${name} is not an object`)
  return value
}

function listOf (value, name) {
  if (!present(value)) return []
  if (!Array.isArray(value)) throw new Malformed(`${name} is not a list`)
  for (const item of value) object(item, `an item of ${name}`)
  return value
}

function string (value, name) {
  if (typeof value !== 'string') throw new Malformed(`${name} is not text`)
  return value
}

function text (message, field, value, name, always = false) {
  if (present(value) && (string(value, name) !== '' || always)) message.text(field, value)
}

// The OTLP specification requires hex. Some senders use protobuf's own JSON mapping, which is base64.
function id (message, field, value, name) {
  if (!present(value) || string(value, name) === '') return
  message.bytes(field, Buffer.from(value, HEX.test(value) ? 'hex' : 'base64'))
}

function integer (value, pattern, name) {
  if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value)
  if (typeof value === 'string' && pattern.test(value)) return BigInt(value)
  throw new Malformed(`${name} is not an integer`)
}

function time (message, field, value, name) {
  if (present(value)) message.fixed64(field, integer(value, UINT64, name))
}

function natural (value, name) {
  const number = Number(value)
  if (!Number.isInteger(number) || number < 0 || number > 0xffff_ffff) throw new Malformed(`${name} is not a count`)
  return number
}

function count (message, field, value) {
  if (present(value)) message.varint(field, natural(value, 'a dropped count'))
}

function enumeration (message, field, value, name, prefix, names) {
  if (!present(value)) return
  const number = typeof value === 'string' ? names.indexOf(value.replace(prefix, '')) : value
  if (!Number.isInteger(number) || number < 0) throw new Malformed(`${name} is not one of its values`)
  message.varint(field, number)
}

module.exports = {
  requestFromJson, logsFromJson, requestOf, text, attributes, id, time, integer, natural, enumeration, listOf, object, present, INT64, UINT64
}
