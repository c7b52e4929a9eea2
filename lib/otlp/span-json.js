'use strict'

// Spans as OTLP JSON, for platforms that collect lines of standard output.

const { PARENT_REMOTE } = require('../context/trace-context')
const { SCHEMA_URL } = require('../span/scope')
const { resourceOf, scopeOf, attributesOf, clean, nanos } = require('./json-values')

const HAS_IS_REMOTE = 0x100
const IS_REMOTE = 0x200

/** One line, without its end: an ExportTraceServiceRequest. */
function requestJson (resource, spans) {
  const byScope = new Map()
  for (const span of spans) {
    const group = byScope.get(span.scope.key)
    if (group === undefined) byScope.set(span.scope.key, [span])
    else group.push(span)
  }
  const scopeSpans = [...byScope.values()].map((group) => scopeSpansOf(group[0].scope, group))
  return JSON.stringify({ resourceSpans: [{ resource: resourceOf(resource), schemaUrl: SCHEMA_URL, scopeSpans }] })
}

function scopeSpansOf (scope, spans) {
  return { scope: scopeOf(scope), schemaUrl: scope.schemaUrl, spans: spans.map(spanOf) }
}

// JSON.stringify leaves out what is undefined.
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
    startTimeUnixNano: nanos(span.start),
    endTimeUnixNano: nanos(span.endedAt),
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
  return { timeUnixNano: nanos(time), name: clean(name), attributes: attributesOf(list), droppedAttributesCount: droppedAttributesCount || undefined }
}

function linkOf ({ context, list, droppedAttributesCount }) {
  return {
    traceId: context.traceId,
    spanId: context.spanId,
    traceState: context.traceState === undefined ? undefined : context.traceState.serialize(),
    attributes: attributesOf(list),
    droppedAttributesCount: droppedAttributesCount || undefined,
    flags: context.traceFlags | HAS_IS_REMOTE | (context.isRemote === true ? IS_REMOTE : 0)
  }
}

module.exports = { requestJson }
