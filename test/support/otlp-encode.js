'use strict'

// OTLP bodies written by protobufjs, for the tests of the harness itself: they know what our encoder does not decide.

const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root')

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const SPAN_ID = 'b7ad6b7169203331'
const PARENT_ID = '00f067aa0ba902b7'

module.exports = { encodeRequest, requestOf, TRACE_ID, SPAN_ID, PARENT_ID }

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
