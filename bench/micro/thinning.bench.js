'use strict'

// The cost of a full buffer, per span of a thinned chunk: without a tracestate, and with one written by a sampler.

const assert = require('node:assert')
const bench = require('./harness')
const { thin } = require('../../lib/features/thinning/thin')
const { SpanEncoder } = require('../../lib/otlp/span-encoder')
const { openTracer, openChunk, decodeChunk, route, peer, newIncoming } = require('./pipeline')

for (const [name, sampler, threshold] of [['no trace state', 'always_on', '8'], ["a ratio's trace state", 0.75, 'c']]) {
  const chunk = fullChunk(openTracer({ sampler }))
  const { spans } = chunk
  bench(`thinning: each span of a chunk, with ${name}`, {
    check () {
      const left = thin(chunk, threshold === '8' ? 1 : 2)
      const read = decodeChunk({ bytes: left.bytes, length: left.bytes.length })
      assert.strictEqual(read.length, left.spans)
      assert.ok(read.length > spans / 5 && read.length < spans * 0.7, `${read.length} of ${spans}`)
      assert.ok(read.every(({ traceState }) => traceState === `ot=th:${threshold}`))
    },
    run (times) {
      for (let i = 0; i < times; i += spans) thin(chunk, 1)
    }
  })
}

function fullChunk (tracer) {
  const oneChunk = openChunk()
  const encoder = new SpanEncoder(oneChunk)
  const { chunk } = oneChunk
  while (chunk.length < chunk.capacity - 2000) {
    const span = tracer.starter.startServer(newIncoming(), route, peer, '/', null)
    span.close(200, '')
    if ((span.flags & 1) !== 0) encoder.accept(span)
  }
  return { bytes: chunk.bytes, length: chunk.length, spans: chunk.spans, failedLevel: 0, chunkBytes: chunk.capacity }
}
