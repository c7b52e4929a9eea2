'use strict'

// Memory that is kept and used again for the next spans.

const { test } = require('tap')
const { Budget, ChunkBuffer } = require('../../lib/export/chunk-buffer')

const MEBI = 1024 * 1024

test('a service with the same need each second reuses its chunks', async (t) => {
  const buffer = new ChunkBuffer(new Budget(32 * MEBI))
  const pieces = new Set()
  for (let second = 0; second < 10; second++) {
    for (const { bytes } of deliver(buffer, 6)) pieces.add(bytes.buffer)
    buffer.trim()
  }
  t.equal(pieces.size, 6)
})

test('chunks that are unused for a second are released, except one', async (t) => {
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

/** Fills `count` chunks, which are then delivered. */
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
