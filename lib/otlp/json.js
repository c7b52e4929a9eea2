'use strict'

// Encodes spans as OTLP JSON, with the parts that metrics share: protobuf's JSON mapping with ids in hex, int64 as decimal strings and
// enums as numbers.
// https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding

const { nanosOf } = require('../runtime/timers.js')
const { PARENT_REMOTE } = require('../context/trace-context.js')
const { SCHEMA_URL } = require('../span/recording-span.js')
const { HAS_IS_REMOTE, IS_REMOTE } = require('./proto-writer.js')

function resourceOf ({ attributes }) {
  return { attributes: attributesOf(Object.keys(attributes).flatMap((key) => [key, attributes[key]])) }
}

function scopeOf ({ name, version }) {
  return { name: clean(name), version: clean(version) }
}

/** Converts a flat list to KeyValue messages. */
function attributesOf (list) {
  const attributes = []
  for (let i = 0; i < list.length; i += 2) attributes.push({ key: clean(list[i]), value: valueOf(list[i + 1]) })
  return attributes
}

function valueOf (value) {
  switch (typeof value) {
    case 'string': return { stringValue: clean(value) }
    case 'boolean': return { boolValue: value }
    case 'number': return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: double(value) }
  }
  if (Array.isArray(value)) return { arrayValue: { values: Array.from(value, valueOf) } }
  if (value === null || typeof value !== 'object') return {} // in OTLP an AnyValue without a value means "empty"
  if (ArrayBuffer.isView(value)) return { bytesValue: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64') }
  return { kvlistValue: { values: Object.keys(value).map((key) => ({ key: clean(key), value: valueOf(value[key]) })) } }
}

/** JSON has no NaN or infinities, so protobuf writes their names. */
function double (value) {
  return Number.isFinite(value) ? value : String(value)
}

/** Replaces lone surrogates: they are invalid in UTF-8, and many parsers refuse them as escapes. */
function clean (text) {
  return text === undefined ? undefined : text.toWellFormed()
}

/** Returns an ExportTraceServiceRequest of a few spans as one line without a line break, for platforms that collect standard output. */
function requestJson (resource, spans) {
  const scopes = new Map(spans.map(({ scope }) => [scope.key, scope]))
  const scopeSpans = Array.from(scopes.values(), (scope) => {
    return { scope: scopeOf(scope), schemaUrl: scope.schemaUrl, spans: spans.filter((span) => span.scope.key === scope.key).map(spanOf) }
  })
  return JSON.stringify({ resourceSpans: [{ resource: resourceOf(resource), schemaUrl: SCHEMA_URL, scopeSpans }] })
}

function spanOf (span) {
  const { details } = span
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    traceState: span.exportedTracestate === '' ? undefined : span.exportedTracestate,
    parentSpanId: span.parentSpanId,
    flags: span.flags | HAS_IS_REMOTE | (span.parentKind === PARENT_REMOTE ? IS_REMOTE : 0),
    name: clean(span.name),
    kind: span.kind + 1,
    startTimeUnixNano: String(nanosOf(span.start)),
    endTimeUnixNano: String(nanosOf(span.endedAt)),
    attributes: attributesOf(span.allAttributes()),
    droppedAttributesCount: span.droppedAttributesCount || undefined,
    events: details === null ? undefined : details.events.map(eventOf),
    droppedEventsCount: span.droppedEventsCount || undefined,
    links: details === null ? undefined : details.links.map(linkOf),
    droppedLinksCount: span.droppedLinksCount || undefined,
    status: details === null ? undefined : { code: details.statusCode, message: details.statusMessage === '' ? undefined : clean(details.statusMessage) }
  }
}

function eventOf ({ name, time, list, droppedAttributesCount }) {
  return { timeUnixNano: String(nanosOf(time)), name: clean(name), attributes: attributesOf(list), droppedAttributesCount: droppedAttributesCount || undefined }
}

function linkOf ({ context, list, droppedAttributesCount }) {
  return {
    traceId: context.traceId,
    spanId: context.spanId,
    traceState: context.tracestate === '' ? undefined : context.tracestate,
    attributes: attributesOf(list),
    droppedAttributesCount: droppedAttributesCount || undefined,
    flags: context.flags | HAS_IS_REMOTE | (context.remote ? IS_REMOTE : 0)
  }
}

module.exports = { resourceOf, scopeOf, attributesOf, double, clean, requestJson }
