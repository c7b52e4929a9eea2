'use strict'

// The life cycle of a chunk, whose cost about seven hundred spans share.

const assert = require('node:assert')
const bench = require('./harness')
const { Budget, ChunkBuffer } = require('../../lib/export/chunk-buffer')

const buffer = new ChunkBuffer(new Budget(32 * 2 ** 20), undefined, () => assert.fail('nothing is evicted here'))

function life () {
  const chunk = buffer.renew(400)
  chunk.length = 400
  chunk.spans = 1
  buffer.seal()
  const batch = buffer.take(4 * 2 ** 20)
  buffer.release(batch, true)
  return batch
}

bench('chunk buffer: renew, seal, take, release', {
  step: 8,
  check () {
    assert.strictEqual(life().length, 1)
    assert.strictEqual(buffer.sealedSpans, 0)
    assert.strictEqual(buffer.bytes, buffer.chunkBytes)
  },
  run (times) {
    for (let i = 0; i < times; i++) life()
  }
})
