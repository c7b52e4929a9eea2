'use strict'

// What remains of a chunk after thinning, read with an independent decoder. protobufjs encodes the spans, in chunks of our encoder's
// format. test/faults/thinning.test.js uses the spans of a whole application.

const { test } = require('tap')
const { thin, LEVEL_MAX } = require('../../lib/features/thinning/thin')
const { decodeSpans } = require('../support/otlp-decode')
const { encodeChunk, spanOf } = require('../support/encoded-chunk')
const { field } = require('../support/otlp-encode')

const CLIENT = 3
const FAILED = { code: 2 }

/** A chunk with the fields that `thin` needs besides the bytes. Old bytes follow after its end. */
function chunkOf (...runs) {
  const bytes = encodeChunk(...runs)
  return { bytes: Buffer.concat([bytes, Buffer.alloc(50, 0xff)]), length: bytes.length, failedLevel: 0, chunkBytes: bytes.length }
}

const read = (bytes) => decodeSpans(field(0x0a, bytes, 5))
const shown = ({ name, traceState }) => `${name} ${traceState}`

test('a level keeps the traces whose first random bits are ones, and sets their threshold', async (t) => {
  const nibbles = Array.from('0123456789abcdef', (digit) => spanOf(digit))
  const chunk = chunkOf(nibbles)
  for (const [level, first, th] of [[1, 8, '8'], [2, 12, 'c'], [3, 14, 'e'], [4, 15, 'f']]) {
    const left = thin(chunk, level)
    t.strictSame(read(left.bytes).map(shown), nibbles.slice(first).map(({ name }) => `${name} ot=th:${th}`), th)
    t.match(left, { spans: 16 - first, level, failedLevel: 0 })
  }
})

test('kept spans are unchanged except for their trace state', async (t) => {
  const all = [[spanOf('0'), spanOf('ff', { kind: CLIENT, parentSpanId: Buffer.alloc(8, 7), flags: 0x301, droppedAttributesCount: 3, status: { code: 2, message: 'no' }, events: [{ name: 'e', timeUnixNano: 5 }], links: [{ traceId: Buffer.alloc(16, 9), spanId: Buffer.alloc(8, 9) }] })], [spanOf('1'), spanOf('2')], [spanOf('f0'), spanOf('3')]]
  const chunk = chunkOf(...all)
  const left = read(thin(chunk, 1).bytes)
  const before = read(chunk.bytes.subarray(0, chunk.length)).filter((span) => left.some(({ spanId }) => spanId === span.spanId))
  t.equal(left.length, 2)
  t.strictSame(left.map((span) => ({ ...span, traceState: '' })), before)
  t.strictSame(left.map(({ scope, traceState }) => [scope.name, traceState]), [['scope 0', 'ot=th:8'], ['scope 2', 'ot=th:8']])
})

test('thinning twice equals thinning once with the higher level', async (t) => {
  const spans = Array.from({ length: 64 }, (_, i) => spanOf((i * 4).toString(16).padStart(2, '0')))
  const once = thin(chunkOf(spans), 3)
  const first = thin(chunkOf(spans), 1)
  const twice = thin({ ...first, length: first.bytes.length, chunkBytes: first.bytes.length }, 3)
  t.strictSame(read(twice.bytes), read(once.bytes))
})

test('an existing threshold is kept if it is higher, and raised if it is lower', async (t) => {
  const stay = [
    ['ffff', 'ot=th:ff', 'ot=th:ff'],
    ['ffff', 'ot=th:4', 'ot=th:c'],
    ['ffff', 'ot=th:0', 'ot=th:c'],
    ['ffff', 'vendor=1', 'ot=th:c,vendor=1'],
    ['ffff', 'vendor=1,ot=xx:1;th:8', 'ot=th:c;xx:1,vendor=1'],
    ['0000', 'ot=rv:ffffffffffffff', 'ot=th:c;rv:ffffffffffffff'],
    ['ffff', Array.from({ length: 32 }, (_, i) => `k${i}=v`).join(','), `ot=th:c,${Array.from({ length: 31 }, (_, i) => `k${i}=v`).join(',')}`]
  ]
  const spans = stay.map(([random, traceState]) => spanOf(random, { traceState }))
  const go = [spanOf('ffff', { traceState: 'ot=rv:00000000000000' }), ...Array.from({ length: 12 }, () => spanOf('0'))]
  t.strictSame(read(thin(chunkOf([...spans, ...go]), 2).bytes).map(({ traceState }) => traceState), stay.map(([,, after]) => after))
})

test('failed requests are kept unchanged, with their spans', async (t) => {
  const failed = spanOf('00', { status: FAILED })
  const child = { ...spanOf('00', { kind: CLIENT, parentSpanId: failed.spanId }), traceId: failed.traceId }
  const stay = [child, failed, spanOf('00', { kind: 1, status: FAILED })]
  const go = [
    spanOf('00', { kind: CLIENT, parentSpanId: Buffer.alloc(8, 1), status: FAILED }), // a failed call of a request that did not fail
    // Spans with light_trace.kept are thinned, too. `keep` marks only spans that the sampler did not take, so the mark depends on the same
    // random bits as the thinning.
    spanOf('00', { attributes: [{ key: 'light_trace.kept', value: { stringValue: 'slow' } }], traceState: 'ot=th:0' }),
    spanOf('00', { status: { code: 1 } }), spanOf('00', { status: { message: 'not set' } }), ...Array.from({ length: 4 }, () => spanOf('00'))
  ]
  const left = thin(chunkOf([...stay, ...go]), 5)
  t.strictSame(read(left.bytes).map(shown), stay.map(({ name }) => `${name} `))
  t.match(left, { level: 5, failedLevel: 0 })
})

test('failed requests are thinned, too, if they take most of a chunk', async (t) => {
  const failed = Array.from('0123456789abcdef', (digit) => spanOf(digit, { status: FAILED, traceState: 'ot=th:0' }))
  const left = thin(chunkOf([...failed, spanOf('0'), spanOf('f')]), 1)
  t.match(left, { level: 1, failedLevel: 1 })
  t.strictSame(read(left.bytes).map(({ traceState }) => traceState), Array(9).fill('ot=th:8'))
})

test('they are kept if the first levels free nothing because the others have a sampler\'s thresholds', async (t) => {
  for (const [th, digits, level] of [['8', '89abcdef', 2], ['c', 'cdefcdef', 3], ['ff8', 'ffffffff', 10]]) {
    const failed = [spanOf('0', { status: FAILED, traceState: 'ot=th:0' }), spanOf('1', { status: FAILED })]
    const left = thin(chunkOf([...failed, ...Array.from(digits, (digit) => spanOf(digit, { traceState: `ot=th:${th}` }))]), 1)
    t.match(left, { level, failedLevel: 0 }, th)
    t.strictSame(read(left.bytes).slice(0, 2).map(shown), [`${failed[0].name} ot=th:0`, `${failed[1].name} `])
  }
})

test('they are kept in a short chunk that a timer has sealed, even if they take most of it', async (t) => {
  const few = chunkOf([spanOf('0', { status: FAILED }), spanOf('1', { status: FAILED }), spanOf('0'), spanOf('f')])
  const left = thin({ ...few, chunkBytes: 4 * few.length }, 1)
  t.match(left, { level: 1, failedLevel: 0 })
  t.strictSame(read(left.bytes).map(({ traceState }) => traceState), ['', '', 'ot=th:8'])
  const alone = chunkOf([spanOf('0', { status: FAILED })])
  t.match(thin({ ...alone, chunkBytes: 16 * alone.length }, 3), { spans: 1, level: 3, failedLevel: 0 }, 'it still goes on to the next level')
})

test('they are kept in a short chunk of a sampler, too, whichever level the others need', async (t) => {
  const few = chunkOf([spanOf('0', { status: FAILED }), ...Array.from('cdef', (digit) => spanOf(digit, { traceState: 'ot=th:c' }))])
  const left = thin({ ...few, chunkBytes: 4 * few.length }, 1)
  t.match(left, { level: 3, failedLevel: 0 })
  t.strictSame(read(left.bytes).map(({ traceState }) => traceState), ['', 'ot=th:e', 'ot=th:e'])
  const failed = chunkOf([spanOf('0', { status: FAILED }), spanOf('c', { traceState: `ot=th:${'f'.repeat(14)}` })])
  t.match(thin({ ...failed, chunkBytes: 4 * failed.length }, LEVEL_MAX), { level: LEVEL_MAX, failedLevel: 0 }, 'the highest level')
})

test('invalid chunks throw, and do not loop forever', async (t) => {
  const chunk = chunkOf([spanOf('0'), spanOf('f')])
  for (const at of [1, 4]) {
    const bytes = Buffer.from(chunk.bytes.subarray(0, chunk.length))
    bytes.fill(0xff, at)
    t.throws(() => thin({ ...chunk, bytes }, 1), RangeError, `from ${at}`)
  }
  t.throws(() => thin({ ...chunk, bytes: chunk.bytes.subarray(0, chunk.length - 3) }, 1), RangeError)
})

test('the level does not depend on the random bits, and kept spans have its threshold, even if none is dropped', async (t) => {
  const sampled = Array.from('89abcdef', (digit) => spanOf(digit, { traceState: 'ot=th:8' }))
  const left = thin(chunkOf(sampled), 1)
  t.match(left, { level: 2, spans: 4 })
  t.strictSame(read(left.bytes).map(({ traceState }) => traceState), Array(4).fill('ot=th:c'))
  for (const random of ['000000', 'ffffff']) t.match(thin(chunkOf([spanOf(random)]), 3), { level: 3 }, random)
  const always = thin(chunkOf(Array.from({ length: 20 }, () => spanOf('ffffff'))), 1)
  t.match(always, { level: 1, spans: 20 })
  t.strictSame(new Set(read(always.bytes).map(({ traceState }) => traceState)), new Set(['ot=th:8']))
  t.match(thin(chunkOf([spanOf('ffffff', { traceState: 'ot=th:fffffe' })]), LEVEL_MAX), { level: LEVEL_MAX }, 'no level is higher')
  t.match(thin(chunkOf([spanOf('0'), spanOf('0')]), LEVEL_MAX), { spans: 0 })
})

test('a chunk with a long span, and one with hundreds of trace states, can be thinned', async (t) => {
  const long = { key: 'long', value: { stringValue: 'y'.repeat(1024 * 1024) } }
  const left = thin(chunkOf([spanOf('0'), spanOf('f', { attributes: [long] }), spanOf('0', { attributes: [long] })]), 1)
  t.equal(read(left.bytes)[0].attributes.long.length, 1024 * 1024)
  const many = Array.from({ length: 600 }, (_, i) => spanOf(i % 2 === 0 ? '0' : 'f', { traceState: `k=${i}` }))
  t.strictSame(read(thin(chunkOf(many), 1).bytes).map(({ traceState }) => traceState), many.filter((_, i) => i % 2 === 1).map(({ traceState }) => `ot=th:8,${traceState}`))
})

test('a caller\'s threshold is trusted up to a million requests, and replaced above it', async (t) => {
  const said = ['fffff', 'fffff8', 'ffffff', 'ffffff8', 'f'.repeat(14)]
  const stay = said.map((th) => spanOf('ffffff', { traceState: `ot=th:${th};xx:1,vendor=1` }))
  const failed = spanOf('ffffff', { status: FAILED, traceState: 'ot=th:ffffff' })
  const left = thin(chunkOf([...stay, failed, ...Array.from({ length: 60 }, () => spanOf('0'))]), 2)
  t.match(left, { level: 2, failedLevel: 0 })
  t.strictSame(read(left.bytes).map(({ traceState }) => traceState), ['ot=th:fffff;xx:1,vendor=1', ...Array(4).fill('ot=th:c;xx:1,vendor=1'), 'ot=th:0'])
})

test('a chunk\'s own thresholds are trusted, however high', async (t) => {
  const own = chunkOf(Array.from({ length: 4 }, () => spanOf('ffffff', { traceState: 'ot=th:fffffc' })))
  t.match(thin(own, 23), { level: 23, spans: 4 })
  t.strictSame(read(thin(own, 23).bytes).map(({ traceState }) => traceState), Array(4).fill('ot=th:fffffe'))
})

test('the result is no longer than allowed, thresholds included, and the last span with a new one is dropped', async (t) => {
  const [failed, one, two] = [spanOf('0', { status: FAILED }), spanOf('f'), spanOf('f')]
  const chunk = { ...chunkOf([failed, one, two]), chunkBytes: 4096 }
  t.match(thin(chunk, 1), { spans: 3, surplus: 0 })
  t.ok(thin(chunk, 1).bytes.length > chunk.length)
  const left = thin({ ...chunk, bytesMax: chunk.length }, 1)
  t.match(left, { spans: 2, surplus: 1 })
  t.strictSame(read(left.bytes).map(shown), [`${failed.name} `, `${one.name} ot=th:8`])
})
