'use strict'

const { test } = require('tap')
const { readPartialSuccess } = require('../../../lib/export/http/response')
const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root')
const { randomFrom } = require('../../support/random')

const Response = opentelemetry.proto.collector.trace.v1.ExportTraceServiceResponse

const encode = (partialSuccess) => Buffer.from(Response.encode({ partialSuccess }).finish())

test('a partial success from another encoder is read', async (t) => {
  t.strictSame(readPartialSuccess(encode({ rejectedSpans: 3, errorMessage: 'too old' })), { rejected: 3, message: 'too old' })
  t.strictSame(readPartialSuccess(encode({ rejectedSpans: 300, errorMessage: 'é€😀' })), { rejected: 300, message: 'é€😀' })
  t.strictSame(readPartialSuccess(encode({ errorMessage: 'be nice' })), { rejected: 0, message: 'be nice' })
  t.strictSame(readPartialSuccess(encode({})), { rejected: 0, message: '' })
  t.equal(readPartialSuccess(Buffer.alloc(0)), null)
})

// T20
test('a count of any size is a number', async (t) => {
  const varint = (...bytes) => Buffer.from([0x0a, bytes.length + 1, 0x08, ...bytes])
  t.ok(readPartialSuccess(varint(...Array(9).fill(0xff), 0x01)).rejected <= 0, 'minus one')
  t.ok(readPartialSuccess(varint(...Array(9).fill(0x80), 0x01)).rejected < 0, 'minus 2^63')
  t.equal(readPartialSuccess(varint(...Array(8).fill(0xff), 0x7f)).rejected, 2 ** 63, '2^63 - 1, rounded')
  t.equal(readPartialSuccess(varint(...Array(10).fill(0xff), 0x01)), null, 'eleven bytes')
})

test('unknown fields are skipped', async (t) => {
  const bytes = Buffer.concat([
    Buffer.from([0x10, 0x96, 0x01]), // 2: varint
    Buffer.from([0x19, 1, 2, 3, 4, 5, 6, 7, 8]), // 3: fixed64
    Buffer.from([0x25, 1, 2, 3, 4]), // 4: fixed32
    Buffer.from([0x2a, 2, 0xff, 0xff]), // 5: bytes
    encode({ rejectedSpans: 2 })
  ])
  t.equal(readPartialSuccess(bytes).rejected, 2)
})

test('a message is made printable and short', async (t) => {
  const hostile = `\u001b[31mred\u001b[0m\r\nforged line\u202e${'x'.repeat(100_000)}`
  const { message } = readPartialSuccess(encode({ errorMessage: hostile }))
  t.ok(message.length <= 256)
  // eslint-disable-next-line no-control-regex
  t.notMatch(message, /[\u0000-\u001f\u007f-\u009f\u202e]/)
})

// T21
test('bytes in any other format are ignored', async (t) => {
  for (const text of ['<html>', '{"partialSuccess":{"rejectedSpans":"3"}}', '\0\0\0\0', 'ok']) t.equal(readPartialSuccess(Buffer.from(text)), null, text)
  const random = randomFrom(20261121)
  const valid = encode({ rejectedSpans: 123456, errorMessage: 'some words' })
  for (let round = 0; round < 20_000; round++) {
    const bytes = round % 2 === 0
      ? Buffer.from(Array.from({ length: Math.floor(random() * 40) }, () => Math.floor(random() * 256)))
      : Buffer.from(valid).fill(Math.floor(random() * 256), Math.floor(random() * valid.length)).subarray(0, Math.floor(random() * valid.length))
    const read = readPartialSuccess(bytes)
    if (read !== null && (typeof read.rejected !== 'number' || Number.isNaN(read.rejected) || typeof read.message !== 'string')) {
      t.fail(`${bytes.toString('hex')} → ${JSON.stringify(read)}`)
    }
  }
  t.pass('20,000 rounds, no throw')
})

test('parsing takes linear time', async (t) => {
  const many = Buffer.alloc(4 * 1024 * 1024, 0x10) // varint field, varint value, …
  t.equal(readPartialSuccess(many), null)
})
