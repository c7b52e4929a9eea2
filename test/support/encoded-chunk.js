'use strict'

// Spans encoded by protobufjs, in chunks of the same format as our encoder's.

const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root')
const { field } = require('./otlp-encode')

const { Span } = opentelemetry.proto.trace.v1
const SERVER = 2

module.exports = { spanOf, encodeChunk }

let number = 0

/** `random`: the first 24 of the 56 random bits, as hex. The last 32 bits of the trace id are the span's number. */
function spanOf (random, fields = {}) {
  const traceId = Buffer.from(`${'ab'.repeat(9)}${random.padEnd(6, '0').slice(0, 6)}${(++number).toString(16).padStart(8, '0')}`, 'hex')
  const spanId = Buffer.from(number.toString(16).padStart(16, '0'), 'hex')
  return { traceId, spanId, name: `n${number}`, kind: SERVER, startTimeUnixNano: 1, endTimeUnixNano: 2, attributes: [{ key: 'a.key', value: { stringValue: 'x'.repeat(40) } }], ...fields }
}

/** Returns the bytes of a chunk. Each run of spans has its own scope. */
function encodeChunk (...runs) {
  return Buffer.concat(runs.map((spans, index) => field(0x12, Buffer.concat([
    field(0x0a, field(0x0a, Buffer.from(`scope ${index}`), 1), 1),
    field(0x1a, Buffer.from('https://schema.example/1'), 1),
    ...spans.map((span) => field(0x12, Buffer.from(Span.encode(span).finish())))
  ]))))
}
