'use strict'

// Attributes that are copied from an earlier span and then patched must equal attributes that are written one by one, whatever was in the
// memory before, and fit into the counted space. They are read with an independent decoder.

const { test } = require('tap')
const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root.js')
const { EMPTY_SHAPE } = require('../../lib/span/attributes')
const { sharedBound, writeShared } = require('../../lib/otlp/attribute-template')
const { writeAttributes, attributesBound, ProtoWriter } = require('../../lib/otlp/proto-writer')
const { randomFrom } = require('../support/random')

const { Span } = opentelemetry.proto.trace.v1
const AHEAD = 7 // a template does not begin at the start of memory

const VALUES = ['', 'x', 'a value of twenty ch', 'another of twenty ch', 'ä value of twenty cha', '日本', '🦊', 'lone \ud800', 'x'.repeat(64), 'x'.repeat(65), 'y'.repeat(300),
  0, -0, 1, 127, 128, 16383, 16384, 2 ** 31 - 1, 2 ** 31, 2 ** 53 - 1, 2 ** 53, -1, 0.5, NaN, Infinity, true, false, null,
  [], [1, 'a'], [[1]], {}, { a: { b: 1 } }, new Uint8Array([1, 2, 3])]

/** Returns what `write` wrote into memory that was filled with other bytes. */
function written (bound, write) {
  const bytes = Buffer.alloc(AHEAD + bound + 16, 0xee)
  const writer = new ProtoWriter()
  writer.open(bytes, new DataView(bytes.buffer, bytes.byteOffset, bytes.length), AHEAD)
  write(writer)
  return { content: bytes.subarray(AHEAD, writer.position), ahead: bytes.subarray(0, AHEAD), behind: bytes.subarray(AHEAD + bound) }
}

const decoded = (bytes) => Span.toObject(Span.decode(bytes)).attributes ?? []
const oneByOne = (list) => decoded(written(attributesBound(list), (writer) => writeAttributes(writer, 0x4a, list)).content)

function shapeOf (keys) {
  let shape = EMPTY_SHAPE
  for (const key of keys) shape = shape.add(key)
  return shape
}

function check (t, list, shape, what) {
  const { content, ahead, behind } = written(sharedBound(list, shape), (writer) => writeShared(writer, list, shape))
  t.strictSame(decoded(content), oneByOne(list), what)
  t.ok(ahead.every((byte) => byte === 0xee) && behind.every((byte) => byte === 0xee), `${what}: nothing is written outside of the space`)
}

test('each span has its own values, whatever changes from span to span', async (t) => {
  const random = randomFrom(11)
  const one = (list) => list[Math.floor(random() * list.length)]
  for (const count of [1, 2, 3, 20]) {
    const keys = Array.from({ length: count }, (_, i) => `template.${count}.${i}`)
    const shape = shapeOf(keys)
    let values = keys.map(() => one(VALUES))
    for (let n = 0; n < 300; n++) { // so many that the template is rebuilt in between
      values = values.map((value) => random() < 0.2 ? one(VALUES) : value)
      check(t, keys.flatMap((key, i) => [key, values[i]]), shape, `${count} attributes, span ${n}`)
    }
  }
})

test('each value can follow each other value', async (t) => {
  for (const [n, first] of VALUES.entries()) {
    const shape = shapeOf([`each.${n}.first`, `each.${n}.last`])
    const list = (value) => [`each.${n}.first`, value, `each.${n}.last`, 'end']
    check(t, list(first), shape, `value ${n}`)
    for (const [m, value] of VALUES.entries()) check(t, list(value), shape, `value ${m} after value ${n}`)
  }
})

test('a value that is an object is written in its current state', async (t) => {
  const shape = shapeOf(['object'])
  const value = ['before']
  check(t, ['object', value], shape, 'the first time')
  value[0] = 'after'
  check(t, ['object', value], shape, 'changed')
})

test('attributes that are too large for a template are written one by one', async (t) => {
  const shape = shapeOf(['long.a', 'long.b'])
  const list = ['long.a', 'x'.repeat(20_000), 'long.b', 1]
  check(t, list, shape, 'long')
  t.equal(shape.template, null)
  check(t, ['long.a', 'x', 'long.b', 1], shape, 'short')
  t.not(shape.template, null)
  check(t, list, shape, 'long, over a short one')
})

test('all templates together take at most half a megabyte', async (t) => {
  const shapes = Array.from({ length: 200 }, (_, n) => shapeOf([`bounded.${n}`]))
  for (const [n, shape] of shapes.entries()) check(t, [`bounded.${n}`, 'x'.repeat(3900)], shape, `shape ${n}`)
  const bytes = shapes.reduce((sum, { template }) => sum + (template === null ? 0 : template.bytes.length), 0)
  t.ok(bytes <= 512 * 1024, `${bytes} bytes`)
})

test('values that change once are copied from then on', async (t) => {
  const shape = shapeOf(['lasting.plan', 'lasting.id'])
  let id = 0
  const send = (plan) => {
    const list = ['lasting.plan', plan, 'lasting.id', `id ${id++}`]
    written(sharedBound(list, shape), (writer) => writeShared(writer, list, shape))
  }
  for (let i = 0; i < 100; i++) send('free')
  t.equal(shape.template.values[0], 'free')
  for (let i = 0; i < 200; i++) send('paid')
  t.equal(shape.template.values[0], 'paid')
})
