'use strict'

// OTLP bodies encoded by protobufjs, independent of our encoder, to test the test harness itself. Also single fields, with padded lengths
// as our encoder writes them.

const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root')

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const SPAN_ID = 'b7ad6b7169203331'
const PARENT_ID = '00f067aa0ba902b7'

module.exports = { encodeRequest, requestOf, field, TRACE_ID, SPAN_ID, PARENT_ID }

/** @returns {Buffer} the body of one request */
function encodeRequest (request) {
  return Buffer.from(opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest.encode(request).finish())
}

/** Returns one resource and one scope with the given spans. Their fields are added to valid ids. */
function requestOf (...spans) {
  return {
    resourceSpans: [{
      resource: { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] },
      scopeSpans: [{
        scope: { name: 'light-trace', version: '1.2.3' },
        schemaUrl: 'https://opentelemetry.io/schemas/1.37.0',
        spans: spans.map((span) => ({ traceId: Buffer.from(TRACE_ID, 'hex'), spanId: Buffer.from(SPAN_ID, 'hex'), ...span }))
      }]
    }]
  }
}

/** Returns a length-delimited field, with its length in `lengthBytes` bytes. */
function field (tag, bytes, lengthBytes = 4) {
  const header = [tag]
  for (let i = 0; i < lengthBytes; i++) header.push((Math.floor(bytes.length / 128 ** i) & 0x7f) | (i < lengthBytes - 1 ? 0x80 : 0))
  return Buffer.concat([Buffer.from(header), bytes])
}
