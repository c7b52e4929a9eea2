'use strict'

// The export to standard output is read back with protobufjs' JSON reader and OpenTelemetry's .proto files. Only ids are converted before
// that, because OTLP writes them in hex and protobuf's JSON mapping in base64.
// Feature: console

const { test } = require('tap')
const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root')
const { decodeSpans } = require('../support/otlp-decode')
const { startFakeCollector } = require('../support/fake-collector')
const { runInChild } = require('../support/child')

const Request = opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest

const work = async ({ Fastify, lightTrace }, options = {}) => {
  const app = Fastify()
  await app.register(lightTrace, { serviceName: 'shop', sampler: 0.9999999, keep: { errors: true }, ...options })
  app.get('/orders/:id', async (request, reply) => {
    const { trace } = request
    trace.span.setAttributes({ int: 7, double: 0.5, big: 2 ** 60, text: 'ä\ud800"\n', yes: true, list: ['a', 'b'], numbers: [1, 2.5] })
    trace.span.addLink({ context: { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 }, attributes: { l: 1 } })
    await trace.withSpan('child', async (span) => span.addEvent('event', { n: 1 }))
    throw new Error('no')
  })
  await app.inject({ url: '/orders/1?a=b', headers: { 'user-agent': 'test' } })
  await app.close()
}

test('lines of OTLP have the same content as the bytes', async (t) => {
  const { said, stderr } = await runInChild(t, work, { env: { OTEL_TRACES_EXPORTER: 'otlp/stdout' } }).exit
  t.equal(stderr, '')
  const spans = said.flatMap(read)
  const collector = await startFakeCollector(t, { keepSpans: true })
  await runInChild(t, work, { args: [{ exporter: { url: collector.url } }] }).exit
  t.same(comparable(spans), comparable(collector.spans))
  t.same(spans.map(({ name }) => name).sort(), ['GET /orders/:id', 'child'])
  const server = spans.find(({ kind }) => kind === 'SERVER')
  t.match(server, { traceState: 'ot=th:0', status: { code: 'ERROR' }, attributes: { int: 7, double: 0.5, big: 2 ** 60, text: 'ä\ufffd"\n', list: ['a', 'b'] } })
  t.equal(spans.find(({ name }) => name === 'child').parentSpanId, server.spanId)
  t.ok(server.end > server.start && server.start > 1_700_000_000_000_000_000n)
})

test('it can be configured in code, too, and written spans count as handed over', async (t) => {
  const { said } = await runInChild(t, async ({ Fastify, lightTrace, say }) => {
    const app = Fastify()
    await app.register(lightTrace, { exporter: 'otlp/stdout' })
    app.lightTrace.tracer.startSpan('job').end()
    await app.lightTrace.flush()
    say(app.lightTrace.stats())
  }).exit
  t.equal(read(said[0])[0].name, 'job')
  t.match(said[1], { mode: 'otlp/stdout', spans: { accepted: 1, handedOver: 1 } })
})

function read (line) {
  return decodeSpans(Buffer.from(Request.encode(Request.fromObject(withBytes(line))).finish()))
}

function withBytes (value) {
  if (Array.isArray(value)) return value.map(withBytes)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) =>
    [key, /^(?:trace|span|parentSpan)Id$/.test(key) ? Buffer.from(member, 'hex').toString('base64') : withBytes(member)]))
}

// Removes the values that differ between two runs: ids, times and processes.
function comparable (spans) {
  return spans.map(({ name, kind, traceState, flags, attributes, events, links, status, scope, schemaUrl, resource, droppedAttributesCount, parentSpanId }) => ({
    name,
    kind,
    traceState,
    flags,
    attributes,
    links,
    status,
    scope,
    schemaUrl,
    droppedAttributesCount,
    isRoot: parentSpanId === '',
    events: events.map((event) => ({ ...event, time: undefined, attributes: { ...event.attributes, 'exception.stacktrace': undefined } })),
    resource: { ...resource, 'service.instance.id': undefined, 'process.pid': undefined }
  })).sort((a, b) => a.name < b.name ? -1 : 1)
}
