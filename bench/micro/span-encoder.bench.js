'use strict'

const assert = require('node:assert')
const bench = require('./harness')
const { SpanEncoder } = require('../../lib/otlp/span-encoder')
const { openTracer, openChunk, decodeChunk, route, peer, newIncoming } = require('./pipeline')

const tracer = openTracer()
const oneChunk = openChunk()
const encoder = new SpanEncoder(oneChunk)

function endedSpan () {
  const span = tracer.starter.startServer(newIncoming(), route, peer, '/', null)
  span.close(200, '')
  return span
}

function decoded (span) {
  oneChunk.empty()
  encoder.accept(span)
  const [{ spanId, name, attributes }] = decodeChunk(oneChunk.chunk)
  assert.strictEqual(Buffer.from(spanId).toString('hex'), span.spanId)
  return { name, attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)])) }
}

const usual = endedSpan()
bench('span encoder: a request\'s span from its template', {
  step: 7,
  check () {
    const { name, attributes } = decoded(usual)
    assert.strictEqual(name, 'GET /')
    assert.strictEqual(attributes['http.response.status_code'], 200)
    assert.strictEqual(attributes['network.peer.port'], 50123)
  },
  run (times) {
    for (let i = 0; i < times; i++) encoder.accept(usual)
  },
  bytesMax: 4
})

const own = tracer.starter.startServer(newIncoming(), route, peer, '/', null)
for (let i = 0; i < 10; i++) own.setAttribute(`app.attribute.of.twenty${i}`, 'a value of twenty ch')
const { attributeList, attributeShape } = own
own.close(200, '')

// A span releases its attributes once it is encoded.
function refilled () {
  own.attributeList = attributeList
  own.attributeShape = attributeShape
  return own
}

bench('span encoder: the same with ten attributes of its own', {
  check: () => assert.strictEqual(decoded(refilled()).attributes['app.attribute.of.twenty9'], 'a value of twenty ch'),
  run (times) {
    for (let i = 0; i < times; i++) encoder.accept(refilled())
  },
  bytesMax: 4
})
