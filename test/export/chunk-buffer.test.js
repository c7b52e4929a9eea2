'use strict'

// The memory that is kept for the next spans.

const { test } = require('tap')
const { Budget, ChunkBuffer } = require('../../lib/export/chunk-buffer')
const { decodeSpans } = require('../support/otlp-decode')
const { field } = require('../support/otlp-encode')
const { encodeChunk, spanOf } = require('../support/encoded-chunk')

const MEBI = 1024 * 1024

test('a service that wants so many chunks each second gets the same ones each second', async (t) => {
  const buffer = new ChunkBuffer(new Budget(32 * MEBI))
  const pieces = new Set()
  for (let second = 0; second < 10; second++) {
    for (const { bytes } of deliver(buffer, 6)) pieces.add(bytes.buffer)
    buffer.trim()
  }
  t.equal(pieces.size, 6)
})

test('what is not wanted for a second is given up, but for one', async (t) => {
  const buffer = new ChunkBuffer(new Budget(32 * MEBI))
  deliver(buffer, 8)
  buffer.trim()
  deliver(buffer, 3)
  t.equal(buffer.bytes, 8 * buffer.chunkBytes)
  buffer.trim()
  t.equal(buffer.bytes, 4 * buffer.chunkBytes, 'five of eight were idle')
  buffer.trim()
  t.equal(buffer.bytes, buffer.chunkBytes)
  deliver(buffer, 8)
  t.equal(buffer.bytes, 8 * buffer.chunkBytes)
})

test('thinning stays within the budget, also where each span that it keeps gets longer', async (t) => {
  const budget = new Budget(64 * 1024)
  let gone = 0
  const buffer = new ChunkBuffer(budget, Infinity, (spans) => { gone += spans }, { onFailed: (error) => t.error(error) })
  let most = 0
  let waiting = 0
  for (let i = 0; i < 2000; i++) {
    const bytes = encodeChunk([spanOf('ffffff', { name: 'x'.repeat(100 + i % 7 * 300) })])
    const chunk = buffer.renew(bytes.length)
    bytes.copy(chunk.bytes, 0)
    chunk.length = bytes.length
    chunk.spans = 1
    buffer.seal()
    most = Math.max(most, budget.bytes)
  }
  for (const { spans } of buffer.take(Infinity)) waiting += spans
  t.ok(most <= 64 * 1024, `${most} bytes`)
  t.ok(most > 48 * 1024)
  t.equal(gone + waiting, 2000)
})

test('a failed request keeps its children, wherever the edge between two chunks falls', async (t) => {
  const failed = spanOf('0', { status: { code: 2 }, name: 'failed' })
  const childOf = (name) => ({ ...spanOf('0', { kind: 3, parentSpanId: failed.spanId, name }), traceId: failed.traceId })
  const others = (count) => Array.from({ length: count }, () => spanOf('0', { name: 'x'.repeat(1000) }))
  const family = [childOf('one'), childOf('two'), failed, childOf('late')]
  const line = [...others(10), ...family, ...others(10)]
  for (let edge = 8; edge <= line.length - 8; edge++) {
    const buffer = new ChunkBuffer(new Budget(64 * 1024), Infinity, () => {}, { onFailed: (error) => t.error(error) })
    const fill = (spans) => {
      const bytes = encodeChunk(spans)
      const chunk = buffer.renew(bytes.length)
      bytes.copy(chunk.bytes, 0)
      chunk.length = bytes.length
      chunk.spans = spans.length
    }
    fill(line.slice(0, edge))
    fill(line.slice(edge))
    for (let i = 0; i < 20; i++) fill(others(14))
    buffer.seal()
    const left = buffer.take(Infinity).flatMap(({ bytes, length }) => decodeSpans(field(0x0a, bytes.subarray(0, length), 5)))
    t.same(left.map(({ name }) => name).filter((name) => !name.startsWith('x')), ['one', 'two', 'failed', 'late'], `after ${edge} spans`)
  }
})

/** Fills so many chunks and has them delivered. */
function deliver (buffer, count) {
  for (let i = 0; i < count; i++) {
    const chunk = buffer.renew(1)
    chunk.length = chunk.capacity
    chunk.spans = 1
  }
  buffer.seal()
  const batch = buffer.take(Infinity)
  buffer.release(batch, true)
  return batch
}
