'use strict'

// Spans as OTLP JSON. https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding

const { readSpan, readScope, readResource } = require('../otlp/span-detail')
const { escaped } = require('./safe-text')

/** An ExportTraceServiceRequest on one line. It may be read in a terminal: what could drive one is escaped, in C1 as in C0. */
function otlpText (spans) {
  return escaped(JSON.stringify(otlpJson(spans)))
}

function otlpJson (spans) {
  const byResource = new Map()
  for (const span of spans) {
    const { origin } = span
    const byScope = byResource.get(origin.resourceKey) ?? byResource.set(origin.resourceKey, new Map()).get(origin.resourceKey)
    const of = byScope.get(origin.key) ?? byScope.set(origin.key, []).get(origin.key)
    of.push(span)
  }
  return { resourceSpans: [...byResource.values()].map(resourceSpans) }
}

function resourceSpans (byScope) {
  const [[first]] = byScope.values()
  const { resource, resourceSchemaUrl } = first.origin
  return {
    resource: { attributes: readResource(resource).map(keyValue) },
    scopeSpans: [...byScope.values()].map(scopeSpans),
    ...(resourceSchemaUrl !== '' && { schemaUrl: resourceSchemaUrl })
  }
}

function scopeSpans (spans) {
  const { scope, scopeSchemaUrl } = spans[0].origin
  const { name, version, attributes } = readScope(scope)
  return {
    scope: { name, ...(version !== '' && { version }), ...(attributes.length !== 0 && { attributes: attributes.map(keyValue) }) },
    spans: spans.map((span) => spanJson(readSpan(span.bytes, span.from, span.to))),
    ...(scopeSchemaUrl !== '' && { schemaUrl: scopeSchemaUrl })
  }
}

function spanJson (span) {
  return {
    traceId: span.traceId,
    spanId: span.id,
    ...(span.traceState !== '' && { traceState: span.traceState }),
    ...(span.parent !== '' && { parentSpanId: span.parent }),
    ...(span.flags !== 0 && { flags: span.flags }),
    name: span.name,
    kind: span.kind,
    startTimeUnixNano: String(span.startNano),
    endTimeUnixNano: String(span.endNano),
    attributes: span.attributes.map(keyValue),
    ...(span.dropped.attributes !== 0 && { droppedAttributesCount: span.dropped.attributes }),
    ...(span.events.length !== 0 && { events: span.events.map(eventJson) }),
    ...(span.dropped.events !== 0 && { droppedEventsCount: span.dropped.events }),
    ...(span.links.length !== 0 && { links: span.links.map(linkJson) }),
    ...(span.dropped.links !== 0 && { droppedLinksCount: span.dropped.links }),
    status: { ...(span.status.message !== '' && { message: span.status.message }), code: span.status.code }
  }
}

function eventJson ({ name, timeNano, attributes, dropped }) {
  return { timeUnixNano: String(timeNano), name, attributes: attributes.map(keyValue), ...(dropped !== 0 && { droppedAttributesCount: dropped }) }
}

function linkJson ({ trace, span, traceState, attributes, dropped, flags }) {
  return {
    traceId: trace,
    spanId: span,
    ...(traceState !== '' && { traceState }),
    attributes: attributes.map(keyValue),
    ...(dropped !== 0 && { droppedAttributesCount: dropped }),
    ...(flags !== 0 && { flags })
  }
}

function keyValue ({ key, type, value }) {
  return { key, value: anyValue({ type, value }) }
}

function anyValue ({ type, value }) {
  switch (type) {
    case 'string': return { stringValue: value }
    case 'bool': return { boolValue: value }
    case 'int': return { intValue: String(value) }
    case 'double': return { doubleValue: Number.isFinite(value) ? value : String(value) }
    case 'bytes': return { bytesValue: value }
    case 'array': return { arrayValue: { values: value.map(anyValue) } }
    case 'kvlist': return { kvlistValue: { values: value.map(keyValue) } }
    default: return {}
  }
}

module.exports = { otlpText, otlpJson }
