'use strict'

// Reads an OTLP ExportTraceServiceRequest with independent code: the decoder that protobufjs generated from OpenTelemetry's .proto files.
// It is stricter than a collector. An unknown field, a repeated attribute key, invalid UTF-8 or a wrong length is an error here. A
// collector forgives these, so a test that reads spans back from one would not notice them.

const { Reader } = require('protobufjs/minimal')
const { gunzipSync } = require('node:zlib')
const proto = require('@opentelemetry/otlp-transformer/build/src/generated/root').opentelemetry.proto

const Request = proto.collector.trace.v1.ExportTraceServiceRequest
const { Span, Status } = proto.trace.v1

const GZIP_MAGIC = 0x1f // no protobuf message starts with this byte, since it would mean wire type 7
const INVALID_IDS = /^0*$/
const PLAIN = { enumerable: true, configurable: true, writable: true }
const REPLACEMENT = '\ufffd'
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const { common, resource: { v1: { Resource } }, trace } = proto
boundMessages([
  common.v1.AnyValue, common.v1.ArrayValue, common.v1.KeyValueList, common.v1.KeyValue, common.v1.InstrumentationScope,
  Resource, trace.v1.ResourceSpans, trace.v1.ScopeSpans, Span, Span.Event, Span.Link, Status, Request
])

/**
 * @param {Buffer} body one request body
 * @param {{ gzip?: boolean }} [options] from the content-encoding header; without it the first byte decides
 * @returns {object[]} its spans in order, flat and readable. Times are BigInt nanoseconds, an int64 attribute is a
 *   Number (or a BigInt if a Number would be inexact), ids are lowercase hex, parentSpanId is '' for a root.
 * @throws {Error} if the body violates the OTLP specification
 */
function decodeSpans (body, { gzip = body[0] === GZIP_MAGIC } = {}) {
  const request = Request.decode(strictReader(gzip ? gunzipSync(body) : body))
  return request.resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ scope, schemaUrl, spans }) =>
      spans.map((span) => readable(span, {
        resource: attributesOf(resource?.attributes),
        scope: { name: scope?.name ?? '', version: scope?.version ?? '' },
        schemaUrl: schemaUrl ?? ''
      }))))
}

// A field that was not sent gets the default of its type. protobufjs returns null for it.
function readable (span, origin) {
  return {
    ...origin,
    traceId: id(span.traceId, 16, 'trace_id'),
    spanId: id(span.spanId, 8, 'span_id'),
    parentSpanId: span.parentSpanId?.length ? id(span.parentSpanId, 8, 'parent_span_id') : '',
    traceState: span.traceState ?? '',
    flags: span.flags ?? 0,
    name: span.name ?? '',
    kind: enumName(Span.SpanKind, span.kind ?? 0, 'SPAN_KIND_'),
    start: bigint(span.startTimeUnixNano),
    end: bigint(span.endTimeUnixNano),
    attributes: attributesOf(span.attributes),
    droppedAttributesCount: span.droppedAttributesCount ?? 0,
    events: span.events.map(readableEvent),
    droppedEventsCount: span.droppedEventsCount ?? 0,
    links: span.links.map(readableLink),
    droppedLinksCount: span.droppedLinksCount ?? 0,
    status: {
      code: enumName(Status.StatusCode, span.status?.code ?? 0, 'STATUS_CODE_'),
      message: span.status?.message ?? ''
    }
  }
}

function readableEvent (event) {
  return {
    name: event.name ?? '',
    time: bigint(event.timeUnixNano),
    attributes: attributesOf(event.attributes),
    droppedAttributesCount: event.droppedAttributesCount ?? 0
  }
}

function readableLink (link) {
  return {
    traceId: id(link.traceId, 16, 'link trace_id'),
    spanId: id(link.spanId, 8, 'link span_id'),
    traceState: link.traceState ?? '',
    flags: link.flags ?? 0,
    attributes: attributesOf(link.attributes),
    droppedAttributesCount: link.droppedAttributesCount ?? 0
  }
}

function id (bytes, length, field) {
  const hex = bytes?.toString('hex') ?? ''
  if (hex.length !== 2 * length || INVALID_IDS.test(hex)) throw new Error(`OTLP: ${field} is not a valid id of ${length} bytes: '${hex}'`)
  return hex
}

function bigint (long) {
  if (long === null) return 0n
  return BigInt(long.unsigned ? long.high >>> 0 : long.high) << 32n | BigInt(long.low >>> 0)
}

function enumName (values, number, prefix) {
  const name = values[number]
  if (name === undefined) throw new Error(`OTLP: no ${prefix}… has the value ${number}`)
  return name.slice(prefix.length)
}

function attributesOf (keyValues = []) {
  const attributes = {}
  for (const { key, value } of keyValues) {
    if (!key) throw new Error('OTLP: an attribute without a key')
    if (Object.hasOwn(attributes, key)) throw new Error(`OTLP: attribute '${key}' occurs twice`)
    if (key === '__proto__') Object.defineProperty(attributes, key, { value: valueOf(value), ...PLAIN }) // an ordinary key
    else attributes[key] = valueOf(value)
  }
  return attributes
}

function valueOf (any) {
  switch (any?.value) {
    case 'stringValue': return any.stringValue
    case 'boolValue': return any.boolValue
    case 'intValue': return Number.isSafeInteger(any.intValue.toNumber()) ? any.intValue.toNumber() : bigint(any.intValue)
    case 'doubleValue': return any.doubleValue
    case 'bytesValue': return any.bytesValue
    case 'arrayValue': return any.arrayValue.values.map(valueOf)
    case 'kvlistValue': return attributesOf(any.kvlistValue.values)
    default: return null // OTLP's "empty" is an AnyValue without a value
  }
}

function strictReader (bytes) {
  const reader = Reader.create(bytes)
  reader.string = function () {
    const bytes = this.bytes()
    const text = bytes.utf8Slice() // takes a third of the strict decoder's time
    return text.includes(REPLACEMENT) ? utf8.decode(bytes) : text // the character was either sent, or replaces invalid UTF-8
  }
  reader.skipType = function (wireType) { throw new Error(`OTLP: unknown field of wire type ${wireType} before offset ${this.pos}`) }
  return reader
}

// The generated code ends a message at or after its end and does not check whether a field went beyond it. A wrong length could therefore
// be read as other, plausible fields. It decodes each nested message through its class, where this wrapper compares the positions.
function boundMessages (messages) {
  for (const Message of messages) {
    const { decode } = Message
    Message.decode = function (reader, length, error) {
      const end = length === undefined ? reader.len : reader.pos + length
      const message = decode.call(this, reader, length, error)
      if (reader.pos !== end) throw new Error(`OTLP: a ${Message.name} should end at offset ${end}, its last field ends at ${reader.pos}`)
      return message
    }
  }
}

module.exports = { decodeSpans, strictReader, boundMessages, attributesOf, valueOf, bigint, id, GZIP_MAGIC }
