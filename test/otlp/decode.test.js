'use strict'

const { test } = require('tap')
const { gzipSync } = require('node:zlib')
const { decodeSpans } = require('../support/otlp-decode')
const { encodeRequest, requestOf, TRACE_ID, SPAN_ID, PARENT_ID } = require('../support/otlp-encode')

test('every field of a span is decoded', async (t) => {
  const [span, ...others] = decodeSpans(encodeRequest(requestOf({
    traceState: 'a=1',
    parentSpanId: Buffer.from(PARENT_ID, 'hex'),
    flags: 0x301,
    name: 'GET /users/:id',
    kind: 2,
    startTimeUnixNano: '1700000000123456789',
    endTimeUnixNano: '1700000000223456789',
    attributes: [
      { key: 's', value: { stringValue: 'grüße' } },
      { key: 'b', value: { boolValue: false } },
      { key: 'i', value: { intValue: -3 } },
      { key: 'big', value: { intValue: '9007199254740993' } },
      { key: 'd', value: { doubleValue: 0.25 } },
      { key: 'bytes', value: { bytesValue: Buffer.from([0, 255]) } },
      { key: 'array', value: { arrayValue: { values: [{ stringValue: 'x' }, { intValue: 1 }] } } },
      { key: 'map', value: { kvlistValue: { values: [{ key: 'k', value: { boolValue: true } }] } } },
      { key: '__proto__', value: { stringValue: 'own' } },
      { key: 'empty', value: {} }
    ],
    droppedAttributesCount: 3,
    events: [{ name: 'exception', timeUnixNano: '1700000000200000001', attributes: [{ key: 'e', value: { intValue: 1 } }], droppedAttributesCount: 2 }],
    droppedEventsCount: 4,
    links: [{ traceId: Buffer.from(TRACE_ID, 'hex'), spanId: Buffer.from(PARENT_ID, 'hex'), traceState: 'l=1', flags: 1, attributes: [] }],
    droppedLinksCount: 5,
    status: { code: 2, message: 'no' }
  })))
  t.same(others, [])
  t.ok(Object.hasOwn(span.attributes, '__proto__'))
  t.strictSame({ ...span, attributes: Object.entries(span.attributes) }, {
    resource: { 'service.name': 'shop' },
    scope: { name: 'light-trace', version: '1.2.3' },
    schemaUrl: 'https://opentelemetry.io/schemas/1.37.0',
    traceId: TRACE_ID,
    spanId: SPAN_ID,
    parentSpanId: PARENT_ID,
    traceState: 'a=1',
    flags: 0x301,
    name: 'GET /users/:id',
    kind: 'SERVER',
    start: 1700000000123456789n,
    end: 1700000000223456789n,
    attributes: [
      ['s', 'grüße'], ['b', false], ['i', -3], ['big', 9007199254740993n], ['d', 0.25], ['bytes', Buffer.from([0, 255])],
      ['array', ['x', 1]], ['map', { k: true }], ['__proto__', 'own'], ['empty', null]
    ],
    droppedAttributesCount: 3,
    events: [{ name: 'exception', time: 1700000000200000001n, attributes: { e: 1 }, droppedAttributesCount: 2 }],
    droppedEventsCount: 4,
    links: [{ traceId: TRACE_ID, spanId: PARENT_ID, traceState: 'l=1', flags: 1, attributes: {}, droppedAttributesCount: 0 }],
    droppedLinksCount: 5,
    status: { code: 'ERROR', message: 'no' }
  })
})

test('a minimal span is a root without status, and gzip is detected', async (t) => {
  const body = encodeRequest(requestOf({}))
  for (const spans of [decodeSpans(body), decodeSpans(gzipSync(body)), decodeSpans(gzipSync(body), { gzip: true })]) {
    t.match(spans, [{ parentSpanId: '', kind: 'UNSPECIFIED', status: { code: 'UNSET', message: '' }, attributes: {}, events: [], links: [] }])
  }
  t.throws(() => decodeSpans(body, { gzip: true }), /incorrect header check/)
  t.same(decodeSpans(Buffer.alloc(0)), [])
})

test('spans of several scopes and resources are flat, each with its own origin', async (t) => {
  const one = requestOf({ name: 'one' }).resourceSpans[0]
  const two = { ...one, resource: { attributes: [{ key: 'service.name', value: { stringValue: 'till' } }] }, scopeSpans: [...one.scopeSpans, ...one.scopeSpans] }
  const spans = decodeSpans(encodeRequest({ resourceSpans: [one, two] }))
  t.same(spans.map((span) => span.resource['service.name']), ['shop', 'till', 'till'])
})

test('errors that a collector would accept are rejected', async (t) => {
  const broken = (span, message) => t.throws(() => decodeSpans(encodeRequest(requestOf(span))), { message })
  broken({ traceId: Buffer.alloc(16) }, /trace_id/)
  broken({ traceId: Buffer.from(SPAN_ID, 'hex') }, /trace_id is not a valid id of 16 bytes/)
  broken({ spanId: Buffer.alloc(0) }, /span_id/)
  broken({ parentSpanId: Buffer.alloc(8) }, /parent_span_id/)
  broken({ links: [{ traceId: Buffer.from(TRACE_ID, 'hex'), spanId: Buffer.alloc(7) }] }, /link span_id/)
  broken({ kind: 9 }, /SPAN_KIND_… has the value 9/)
  broken({ attributes: [{ key: 'a', value: { intValue: 1 } }, { key: 'a', value: { intValue: 1 } }] }, /'a' occurs twice/)
  broken({ attributes: [{ key: '', value: { intValue: 1 } }] }, /without a key/)
})

test('invalid UTF-8, unknown fields and wrong lengths are rejected', async (t) => {
  const body = encodeRequest(requestOf({ name: 'GET /' }))
  const name = body.indexOf('GET /')

  const notUtf8 = Buffer.from(body)
  notUtf8[name] = 0xff
  t.throws(() => decodeSpans(notUtf8), { code: 'ERR_ENCODING_INVALID_ENCODED_DATA' })

  const nameReachesOverTheSpan = Buffer.from(body)
  nameReachesOverTheSpan[name - 1] += 1
  t.throws(() => decodeSpans(nameReachesOverTheSpan), { message: /should end at offset/ })

  const unknownField = Buffer.concat([body, Buffer.from([0x78, 0x01])]) // field 15, a varint
  t.throws(() => decodeSpans(unknownField), { message: /unknown field/ })

  for (let length = 1; length < body.length; length++) {
    try {
      decodeSpans(body.subarray(0, length))
      t.fail(`the first ${length} bytes alone were accepted`)
    } catch (error) {
      if (!/OTLP|index out of range/.test(error.message)) throw error
    }
  }
})
