'use strict'

// Spans and log lines as OTLP JSON. https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding

const { readSpan, readScope, readResource } = require('../otlp/span-detail')
const { escaped } = require('./safe-text')

/**
 * Returns an ExportTraceServiceRequest on one line. If there are log lines, the same object also holds an ExportLogsServiceRequest. Control
 * characters (C0 and C1) are escaped, because the text may be printed in a terminal.
 */
function otlpText (spans, lines) {
  return escaped(JSON.stringify(otlpJson(spans, lines)))
}

function otlpJson (spans, lines = []) {
  return {
    ...((spans.length !== 0 || lines.length === 0) && { resourceSpans: byResource(spans, 'scopeSpans', 'spans', (span) => spanJson(readSpan(span.bytes, span.from, span.to))) }),
    ...(lines.length !== 0 && { resourceLogs: byResource(lines, 'scopeLogs', 'logRecords', (line) => recordJson(line.read())) })
  }
}

function byResource (items, scopes, name, jsonOf) {
  const byResource = new Map()
  for (const item of items) {
    const { origin } = item
    const byScope = byResource.get(origin.resourceKey) ?? byResource.set(origin.resourceKey, new Map()).get(origin.resourceKey)
    const of = byScope.get(origin.key) ?? byScope.set(origin.key, []).get(origin.key)
    of.push(item)
  }
  return [...byResource.values()].map((byScope) => ofResource(byScope, scopes, (items) => ofScope(items, name, jsonOf)))
}

function ofResource (byScope, scopes, scopeJson) {
  const [[first]] = byScope.values()
  const { resource, resourceSchemaUrl } = first.origin
  return {
    resource: { attributes: readResource(resource).map(keyValue) },
    [scopes]: [...byScope.values()].map(scopeJson),
    ...(resourceSchemaUrl !== '' && { schemaUrl: resourceSchemaUrl })
  }
}

function ofScope (items, list, jsonOf) {
  const { scope, scopeSchemaUrl } = items[0].origin
  const { name, version, attributes } = readScope(scope)
  return {
    scope: { name, ...(version !== '' && { version }), ...(attributes.length !== 0 && { attributes: attributes.map(keyValue) }) },
    [list]: items.map(jsonOf),
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

function recordJson (record) {
  return {
    timeUnixNano: String(record.timeNano),
    ...(record.observedNano !== 0n && { observedTimeUnixNano: String(record.observedNano) }),
    ...(record.severity !== 0 && { severityNumber: record.severity }),
    ...(record.severityText !== '' && { severityText: record.severityText }),
    body: anyValue(record.body),
    attributes: record.attributes.map(keyValue),
    ...(record.dropped !== 0 && { droppedAttributesCount: record.dropped }),
    ...(record.flags !== 0 && { flags: record.flags }),
    ...(record.traceId !== '' && { traceId: record.traceId }),
    ...(record.spanId !== '' && { spanId: record.spanId }),
    ...(record.eventName !== '' && { eventName: record.eventName })
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
