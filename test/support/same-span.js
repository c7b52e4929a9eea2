'use strict'

// Converts a span from the decoder and a span from a processor to the same shape.

const VARIES = new Set(['network.peer.port', 'server.port'])

function fromBytes (span) {
  return picture(span, {
    dropped: [span.droppedAttributesCount, span.droppedEventsCount, span.droppedLinksCount],
    isChild: span.parentSpanId !== '',
    flags: span.flags & 0xff
  })
}

function fromObject (span) {
  return picture(span, {
    dropped: [span.droppedAttributesCount, span.droppedEventsCount, span.droppedLinksCount],
    isChild: span.parentSpanId !== undefined,
    flags: span.traceFlags
  })
}

// Without the values that differ between two runs: ids, times, ports.
function picture ({ name, kind, traceState, attributes, status, events, links }, more) {
  return {
    name,
    kind,
    traceState,
    status,
    ...more,
    attributes: sorted(attributes),
    events: events.map((event) => [event.name, sorted(event.attributes), event.droppedAttributesCount]),
    links: links.map((link) => [link.traceId, link.spanId, sorted(link.attributes), link.droppedAttributesCount])
  }
}

function sorted (attributes) {
  return Object.entries(attributes).filter(([key, value]) => !(VARIES.has(key) && typeof value === 'number' && value > 1024))
    .sort(([a], [b]) => a < b ? -1 : 1)
    .map(([key, value]) => [key, typeof value === 'number' ? String(value) : typeof value === 'bigint' ? String(value) : JSON.stringify(value)])
}

module.exports = { fromBytes, fromObject }
