'use strict'

// How a full buffer uses thinning. test/otlp/thinning.test.js tests the result for a single chunk.

const { test } = require('tap')
const { setImmediate: turn } = require('node:timers/promises')
const { Budget, ChunkBuffer } = require('../../lib/export/chunk-buffer')
const { FEATURES } = require('../../lib/features')
const { shrinker } = require('../../lib/features/thinning/thinning')
const { startExporter } = require('../support/chunk-writer')
const { freePort } = require('../../scripts/free-port')
const { decodeSpans } = require('../support/otlp-decode')
const { field } = require('../support/otlp-encode')
const { encodeChunk, spanOf } = require('../support/encoded-chunk')

const BYTES_MAX = 1024 * 1024

const thinning = (t, onGone) => (buffer) => shrinker(buffer, onGone, (error) => t.error(error))

test('thinning stays within the budget, even if each kept span gets longer', async (t) => {
  const budget = new Budget(64 * 1024)
  let gone = 0
  const onGone = (spans) => { gone += spans }
  const buffer = new ChunkBuffer(budget, Infinity, onGone, thinning(t, onGone))
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

test('a failed request keeps its children, wherever two chunks meet', async (t) => {
  const failed = spanOf('0', { status: { code: 2 }, name: 'failed' })
  const childOf = (name) => ({ ...spanOf('0', { kind: 3, parentSpanId: failed.spanId, name }), traceId: failed.traceId })
  const others = (count) => Array.from({ length: count }, () => spanOf('0', { name: 'x'.repeat(1000) }))
  const family = [childOf('one'), childOf('two'), failed, childOf('late')]
  const line = [...others(10), ...family, ...others(10)]
  for (let edge = 8; edge <= line.length - 8; edge++) {
    const buffer = new ChunkBuffer(new Budget(64 * 1024), Infinity, () => {}, thinning(t, () => {}))
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

test('thinning is loaded when half of the memory is used, not earlier', async (t) => {
  const { loads, exporter, write } = await exporterAlone(t)
  while (exporter.bufferBytes < BYTES_MAX * 3 / 8) write(1, 1000)
  await turn()
  t.equal(loads(), 0)
  write(200, 1000)
  await turn()
  t.equal(loads(), 1)
  write(3000, 1000)
  t.equal(loads(), 1)
})

test('a buffer that fills in one turn is thinned, too', async (t) => {
  const { stats, write } = await exporterAlone(t)
  write(3000, 1000)
  t.ok(stats.thinned > 0)
})

test('if thinning cannot be loaded, a full buffer drops the oldest chunks and counts everything', async (t) => {
  const { stats, logged, write, identity } = await exporterAlone(t, () => { throw new Error('the file is gone') })
  write(3000, 1000)
  t.ok(stats.dropped.queue_full > 1500)
  t.equal(identity(), 0)
  t.same(logged.map(({ code }) => code), ['LT_WARN_BUG'])
})

/** An exporter with an unreachable collector. */
async function exporterAlone (t, load = FEATURES.thinning.load) {
  const row = FEATURES.thinning
  const { load: own } = row
  t.teardown(() => { row.load = own })
  let count = 0
  row.load = () => {
    count++
    return load()
  }
  return { loads: () => count, ...startExporter(t, { url: `http://127.0.0.1:${await freePort()}/v1/traces`, areThinned: true, buffer: { maxBytes: BYTES_MAX }, closeTimeoutMs: 100 }) }
}
