'use strict'

// OTLP bodies written by protobufjs, for the tests of the harness itself: they know what our encoder does not decide. And single
// fields, whose lengths are padded as those of our encoder are.

const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root')

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const SPAN_ID = 'b7ad6b7169203331'
const PARENT_ID = '00f067aa0ba902b7'

module.exports = { encodeRequest, requestOf, field, TRACE_ID, SPAN_ID, PARENT_ID }

/** @returns {Buffer} the body of one request */
function encodeRequest (request) {
  return Buffer.from(opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest.encode(request).finish())
}

/** One resource, one scope, and the given spans' fields over valid ids. */
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

/** A length-delimited field, its length in so many bytes. */
function field (tag, bytes, lengthBytes = 4) {
  const header = [tag]
  for (let i = 0; i < lengthBytes; i++) header.push((Math.floor(bytes.length / 128 ** i) & 0x7f) | (i < lengthBytes - 1 ? 0x80 : 0))
  return Buffer.concat([Buffer.from(header), bytes])
}
