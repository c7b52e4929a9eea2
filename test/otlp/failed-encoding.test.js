'use strict'

// A bug in the encoder loses the span that it cannot write. The handler that ends the span notices nothing.

const { test } = require('tap')
const Fastify = require('fastify')
const { trace } = require('@opentelemetry/api')
const lightTrace = require('../..')
const { ProtoWriter } = require('../../lib/otlp/proto-writer')
const { startSink } = require('../support/otlp-sink')

const FIRST = 'at the start of a chunk'
const LATER = 'behind others'

// Simulates a bug: fails when part of the span is already in the chunk.
const { string } = ProtoWriter.prototype
ProtoWriter.prototype.string = function failing (tag, value) {
  if (value === FIRST || value === LATER) throw new RangeError('out of bounds')
  return string.call(this, tag, value)
}

test('a span that cannot be written is dropped and counted, and the others arrive complete', async (t) => {
  const sink = await startSink(t)
  const lines = []
  const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: sink.url }, registerGlobals: true })
  app.get('/', async () => {
    const { tracer } = app.lightTrace
    const other = trace.getTracer('another library')
    tracer.startSpan('a child').addEvent(FIRST).end()
    await app.lightTrace.flush()
    tracer.startSpan('a child').end()
    other.startSpan('a child').addEvent(LATER).end()
    return 'ok'
  })
  await app.ready()
  t.equal((await app.inject('/')).statusCode, 200)
  await app.lightTrace.flush()
  t.same(sink.spans.map(({ name }) => name), ['a child', 'GET /'])
  const { accepted, delivered, dropped } = app.lightTrace.stats().spans
  t.same({ accepted, delivered, dropped }, { accepted: 4, delivered: 2, dropped: { not_encoded: 2 } })
  t.match(lines, [{ code: 'LT_WARN_BUG', msg: /^Bug: a span could not be encoded: RangeError: out of bounds/ }])
})
