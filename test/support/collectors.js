'use strict'

// The real collectors that scripts/suites.js started. Spans are read back in the shape of otlp-decode.js. Each collector's expect() returns
// how it stores a span: what it changes or loses.

const { setTimeout: pause } = require('node:timers/promises')

const DEADLINE_MS = 15_000

const jaeger = {
  name: 'Jaeger',
  tracesUrl: process.env.COLLECTOR_JAEGER_TRACES,
  queryUrl: process.env.COLLECTOR_JAEGER_QUERY,

  /** Returns the spans of a trace, ordered by start, when there are `count` of them. */
  async spansOf (traceId, count) {
    for (let deadline = Date.now() + DEADLINE_MS; ; await pause(20)) {
      const { data } = await fetch(`${this.queryUrl}/api/traces/${traceId}`).then((response) => response.json())
      const [trace] = data ?? []
      if (trace?.spans.length >= count) return ordered(trace.spans.map((span) => fromJaeger(span, trace.processes)))
      if (Date.now() > deadline) throw new Error(`Jaeger has ${trace?.spans.length ?? 0} of ${count} spans of trace ${traceId}`)
    }
  },

  // Jaeger has microseconds, arrays as JSON and bytes as base64. It stores no flags, schema URL, dropped counts or fields of links.
  expect ({ flags, schemaUrl, droppedAttributesCount, droppedEventsCount, droppedLinksCount, ...span }) {
    return {
      ...span,
      start: micros(span.start),
      end: micros(span.start) + micros(span.end - span.start),
      attributes: flat(span.attributes),
      resource: flat(span.resource),
      events: span.events.map((event) => ({ name: event.name, time: micros(event.time), attributes: flat(event.attributes) })),
      links: span.links.map((link) => ({ traceId: link.traceId, spanId: link.spanId }))
    }
  }
}

const rotel = {
  name: 'rotel',
  tracesUrl: process.env.COLLECTOR_ROTEL_TRACES,
  queryUrl: process.env.COLLECTOR_ROTEL_QUERY,

  async spansOf (traceId, count) {
    const response = await fetch(`${this.queryUrl}/${traceId}?spans=${count}&timeoutMs=${DEADLINE_MS}`)
    const spans = JSON.parse(await response.text(), (key, value) =>
      ['start', 'end', 'time'].includes(key) ? BigInt(value) : value?.type === 'Buffer' ? Buffer.from(value.data) : value)
    if (response.status !== 200) throw new Error(`rotel exported ${spans.length} of ${count} spans of trace ${traceId}`)
    return ordered(spans)
  },

  expect: (span) => span // it forwards all of OTLP unchanged
}

const collectors = [jaeger, rotel]

if (collectors.some(({ tracesUrl }) => tracesUrl === undefined)) throw new Error('No collectors run: start these tests by `npm run test:suite -- collector`')

module.exports = { collectors, jaeger, rotel }

function fromJaeger (span, processes) {
  const { 'otel.library.name': name, 'otel.library.version': version, 'span.kind': kind, 'otel.status_code': code, 'otel.status_description': message, 'w3c.tracestate': traceState, error, 'internal.span.format': format, ...attributes } = tagsOf(span.tags)
  const { serviceName, tags } = processes[span.processID]
  const parent = span.references.find(({ refType }) => refType === 'CHILD_OF')
  const start = BigInt(span.startTime) * 1000n
  if ((error ?? false) !== (code === 'ERROR')) throw new Error(`Jaeger says error=${error} and status ${code}`)
  return {
    resource: { 'service.name': serviceName, ...tagsOf(tags) },
    scope: { name, version },
    traceId: span.traceID,
    spanId: span.spanID,
    parentSpanId: parent?.spanID ?? '',
    traceState: traceState ?? '',
    name: span.operationName,
    kind: kind.toUpperCase(),
    start,
    end: start + BigInt(span.duration) * 1000n,
    attributes,
    events: span.logs.map(({ timestamp, fields }) => {
      const { event, ...attributes } = tagsOf(fields)
      return { name: event, time: BigInt(timestamp) * 1000n, attributes }
    }),
    links: span.references.filter(({ refType }) => refType === 'FOLLOWS_FROM').map(({ traceID, spanID }) => ({ traceId: traceID, spanId: spanID })),
    status: { code: code ?? 'UNSET', message: message ?? '' }
  }
}

function tagsOf (tags) {
  return Object.fromEntries(tags.map(({ key, value }) => [key, value]))
}

function flat (attributes) {
  return Object.fromEntries(Object.entries(attributes).map(([key, value]) =>
    [key, Buffer.isBuffer(value) ? value.toString('base64') : Array.isArray(value) ? JSON.stringify(value) : value]))
}

function micros (nanos) {
  return nanos / 1000n * 1000n
}

function ordered (spans) {
  return spans.sort((a, b) => a.start < b.start ? -1 : 1)
}
