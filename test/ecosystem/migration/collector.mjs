// Receives what the tracers send and reads it with independent decoders: OTLP with OpenTelemetry's messages, dd-trace's traces in the
// format of its agent, and Sentry's envelopes. All spans have the same form here.

import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { gunzipSync } from 'node:zlib'
import { decodeMulti } from '@msgpack/msgpack'

const require = createRequire(import.meta.url)
const { opentelemetry } = require('otlp-messages/build/src/generated/root')
const { collector, trace } = opentelemetry.proto
const Request = collector.trace.v1.ExportTraceServiceRequest

/**
 * @returns {Promise<{ url: string, spans: object[], errors: object[], calls: object[], until: (has: () => boolean) => Promise<void>,
 *   close: () => Promise<void> }>} errors: those that Sentry was sent; calls: requests to /upstream; until: waits for the condition
 */
export async function startCollector () {
  const spans = []
  const errors = []
  const calls = []
  const arrivals = new EventEmitter()
  const server = createServer(async (request, response) => {
    const pieces = []
    for await (const piece of request) pieces.push(piece)
    const sent = Buffer.concat(pieces)
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent
    const path = request.url.replace(/\/?(?:\?.*)?$/, '')
    if (path.endsWith('/v1/traces')) spans.push(...ofOtlp(body, path))
    if (path.endsWith('/envelope')) {
      spans.push(...ofSentry(body, 'span').flatMap(({ items }) => items).map(ofSentrySpan))
      errors.push(...ofSentry(body, 'event').map(({ exception, contexts }) => ({ message: exception.values[0].value, traceId: contexts.trace.trace_id, spanId: contexts.trace.span_id })))
    }
    if (/^\/v0\.\d\/traces$/.test(request.url)) spans.push(...ofDatadog(body))
    if (request.url === '/upstream') calls.push(request.headers)
    response.setHeader('content-type', 'application/json')
    response.end('{}')
    arrivals.emit('arrival')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    spans,
    errors,
    calls,
    async until (has) {
      while (!has()) await once(arrivals, 'arrival')
    },
    async close () {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    }
  }
}

// sentTo: the path before /v1/traces, which distinguishes two exporters of one process.
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

// An envelope is one line about itself, and for each item a line about the item and a line with its payload.
// https://develop.sentry.dev/sdk/data-model/envelopes/
function ofSentry (body, type) {
  const [, ...lines] = body.toString().trim().split('\n').map((line) => JSON.parse(line))
  return lines.filter((line, index) => index % 2 === 1 && lines[index - 1].type === type)
}

function ofSentrySpan ({ trace_id: traceId, span_id: spanId, parent_span_id: parentSpanId = '', name, is_segment: isSegment, status, attributes }) {
  return {
    sentTo: '',
    traceId,
    spanId,
    parentSpanId,
    scope: attributes['sentry.sdk.name'].value,
    name,
    kind: isSegment ? 'SERVER' : 'INTERNAL',
    isError: status !== 'ok',
    attributes: Object.fromEntries(Object.entries(attributes).map(([key, { value }]) => [key, value])),
    events: []
  }
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
