'use strict'

const { test } = require('tap')
const { halvesOf } = require('../../lib/otlp/request')
const { startExporter, idOf } = require('../support/chunk-writer')
const { startSink } = require('../support/otlp-sink')
const { decodeSpans } = require('../support/otlp-decode')
const { field } = require('../support/otlp-encode')

// Runs of short spans: enough to test the cut. Decodes as one ResourceSpans.
function chunkOf (...runs) {
  let number = 0
  return Buffer.concat(runs.map((count, index) => field(0x12, Buffer.concat([
    field(0x0a, field(0x0a, Buffer.from(`scope ${index}`), 1), 1),
    ...Array.from({ length: count }, () => field(0x12, span(++number)))
  ]))))
}

function span (number) {
  return Buffer.concat([field(0x0a, Buffer.alloc(16, 1), 1), field(0x12, Buffer.from(idOf(number), 'hex'), 1)])
}

function read (chunk) {
  return decodeSpans(field(0x0a, chunk, 5)).map(({ spanId, scope }) => `${scope.name}:${parseInt(spanId, 16)}`)
}

test('two halves contain all spans, each in its scope', async (t) => {
  for (const runs of [[2], [3], [1, 1], [2, 2], [1, 5], [5, 1], [1, 1, 1, 1, 1], [100, 3, 50], [0, 4], [2, 0, 2]]) {
    const chunk = chunkOf(...runs)
    const spans = runs.reduce((sum, n) => sum + n)
    const [first, second] = halvesOf(chunk, chunk.length, spans)
    t.equal(read(first.bytes).length, first.spans, `${runs}`)
    t.equal(read(second.bytes).length, second.spans, `${runs}`)
    t.strictSame([...read(first.bytes), ...read(second.bytes)], read(chunk), `${runs}`)
    t.equal(Math.abs(second.spans - first.spans) <= 1, true)
  }
})

test('only the used part of the memory is read', async (t) => {
  const chunk = chunkOf(4)
  const padded = Buffer.concat([chunk, Buffer.alloc(1000, 0xff)])
  const [first, second] = halvesOf(padded, chunk.length, 4)
  t.strictSame([...read(first.bytes), ...read(second.bytes)], read(chunk))
})

test('a single span and invalid data cannot be cut', async (t) => {
  t.equal(halvesOf(chunkOf(1), chunkOf(1).length, 1), null)
  t.equal(halvesOf(Buffer.from('not a chunk at all'), 18, 5), null)
  t.equal(halvesOf(chunkOf(4), chunkOf(4).length, 40), null, 'fewer spans than declared')
  const cut = chunkOf(4).subarray(0, 50)
  t.equal(halvesOf(cut, cut.length, 4), null)
})

// T12, M03
test('a request that is too large is sent in smaller ones: a chunk in two, a single span not at all', async (t) => {
  const sink = await startSink(t)
  const bytesMax = 150_000
  sink.respond = (req, body) => ({ status: body.length > bytesMax ? 413 : 200 })
  const { exporter, stats, write, identity } = startExporter(t, { url: sink.url })
  write(2900, 350) // a megabyte in four chunks of 256 KiB
  await exporter.flush()
  t.equal(identity(), 0)
  t.equal(stats.delivered, 2900)
  t.strictSame(sink.spans.map((span) => span.spanId), Array.from({ length: 2900 }, (_, i) => idOf(i + 1)))
  write(1, 200_000)
  await exporter.flush()
  t.equal(stats.dropped.non_retryable, 1)
  write(1)
  await exporter.flush()
  t.equal(stats.delivered, 2901)
  t.equal(identity(), 0)
})
