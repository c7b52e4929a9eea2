'use strict'

// The control: both collectors return unchanged what protobufjs encoded. If this fails, the fault is not in light-trace.

const { test } = require('tap')
const { randomBytes } = require('node:crypto')
const { gzipSync } = require('node:zlib')
const { collectors } = require('../support/collectors')
const { decodeSpans } = require('../support/otlp-decode')
const { encodeRequest, requestOf, PARENT_ID } = require('../support/otlp-encode')

const everything = {
  parentSpanId: Buffer.from(PARENT_ID, 'hex'),
  traceState: 'a=1',
  flags: 0x301,
  name: 'GET /users/:id',
  kind: 2,
  startTimeUnixNano: '1700000000123456789',
  endTimeUnixNano: '1700000000223456999',
  attributes: [
    { key: 's', value: { stringValue: 'grüße' } },
    { key: 'b', value: { boolValue: false } },
    { key: 'i', value: { intValue: -3 } },
    { key: 'd', value: { doubleValue: 0.25 } },
    { key: 'bytes', value: { bytesValue: Buffer.from([0, 255]) } },
    { key: 'array', value: { arrayValue: { values: [{ stringValue: 'x' }, { intValue: 1 }] } } }
  ],
  droppedAttributesCount: 3,
  events: [{ name: 'exception', timeUnixNano: '1700000000200000001', attributes: [{ key: 'e', value: { intValue: 1 } }], droppedAttributesCount: 2 }],
  droppedEventsCount: 4,
  links: [{ traceId: Buffer.alloc(16, 7), spanId: Buffer.alloc(8, 9), traceState: 'l=1', flags: 1, attributes: [{ key: 'l', value: { stringValue: 'x' } }] }],
  droppedLinksCount: 5,
  status: { code: 2, message: 'no' }
}

for (const collector of collectors) {
  test(`${collector.name} returns every field of a span from another encoder`, async (t) => {
    const traceId = randomBytes(16)
    const body = encodeRequest(requestOf({ ...everything, traceId }, { name: 'bare', spanId: Buffer.from(PARENT_ID, 'hex'), kind: 1, startTimeUnixNano: '1700000000000000001', endTimeUnixNano: '1700000000000000001', traceId }))
    const response = await fetch(collector.tracesUrl, { method: 'POST', body: gzipSync(body), headers: { 'content-type': 'application/x-protobuf', 'content-encoding': 'gzip' } })
    t.equal(response.status, 200)

    const [written, bare] = decodeSpans(body)
    const spans = await collector.spansOf(traceId.toString('hex'), 2)
    t.strictSame(spans, [collector.expect(bare), collector.expect(written)])
  })
}
