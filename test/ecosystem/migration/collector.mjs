// What the tracers send, read by decoders that are not ours: OTLP by OpenTelemetry's own messages, and the traces of dd-trace as
// its agent gets them. Spans of both have the same form.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { decodeMulti } from '@msgpack/msgpack'

const require = createRequire(import.meta.url)
const { opentelemetry } = require('otlp-messages/build/src/generated/root')
const { collector, trace } = opentelemetry.proto
const Request = collector.trace.v1.ExportTraceServiceRequest

/** @returns {Promise<{ url: string, spans: object[], calls: object[], close: () => Promise<void> }>} calls: what /upstream was sent */
export async function startCollector () {
  const spans = []
  const calls = []
  const server = createServer(async (request, response) => {
    const pieces = []
    for await (const piece of request) pieces.push(piece)
    const body = Buffer.concat(pieces)
    if (request.url.endsWith('/v1/traces')) spans.push(...ofOtlp(body, request.url))
    if (/^\/v0\.\d\/traces$/.test(request.url)) spans.push(...ofDatadog(body))
    if (request.url === '/upstream') calls.push(request.headers)
    response.setHeader('content-type', 'application/json')
    response.end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    spans,
    calls,
    async close () {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    }
  }
}

// sentTo: the path before /v1/traces, which tells two exporters of one process apart.
function ofOtlp (body, url) {
  const sentTo = url.slice(0, -'/v1/traces'.length)
  return Request.decode(body).resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ scope, spans }) => spans.map((span) => ({
    sentTo,
    traceId: hex(span.traceId),
    spanId: hex(span.spanId),
    parentSpanId: hex(span.parentSpanId),
    scope: scope.name,
    name: span.name,
    kind: trace.v1.Span.SpanKind[span.kind].slice('SPAN_KIND_'.length),
    isError: span.status?.code === trace.v1.Status.StatusCode.STATUS_CODE_ERROR,
    attributes: Object.fromEntries(span.attributes.map(({ key, value }) => [key, valueOf(value)])),
    events: span.events.map(({ name }) => name)
  }))))
}

function ofDatadog (body) {
  const [traces] = decodeMulti(body, { useBigInt64: true })
  return traces.flatMap((spans) => {
    const upper = spans.map(({ meta }) => meta['_dd.p.tid']).find((tid) => tid !== undefined) ?? '0'.repeat(16)
    return spans.map(({ trace_id: traceId, span_id: spanId, parent_id: parentId, name, resource, error, meta, metrics }) => ({
      sentTo: '',
      traceId: upper + hex64(traceId),
      spanId: hex64(spanId),
      parentSpanId: hex64(parentId),
      scope: name,
      name: resource,
      kind: (meta['span.kind'] ?? 'internal').toUpperCase(),
      isError: error === 1,
      attributes: { ...meta, ...metrics },
      events: meta['error.stack'] === undefined ? [] : ['exception']
    }))
  })
}

function hex64 (number) {
  return BigInt(number).toString(16).padStart(16, '0')
}

function hex (bytes) {
  return Buffer.from(bytes ?? []).toString('hex')
}

function valueOf (value) {
  const { stringValue, intValue, doubleValue, boolValue, arrayValue } = value
  if (arrayValue) return arrayValue.values.map(valueOf)
  return stringValue ?? (intValue === null || intValue === undefined ? undefined : Number(intValue)) ?? doubleValue ?? boolValue
}
