'use strict'

// The schema URL of the conventions is set on the resource and on our own scope, and a tracer's schema URL on its scope, for every way of
// export.

const { test } = require('tap')
const { trace } = require('@opentelemetry/api')
const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-base')
const { ProtobufTraceSerializer } = require('@opentelemetry/otlp-transformer')
const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')

const Request = opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest
const CONVENTIONS = /^https:\/\/opentelemetry\.io\/schemas\/1\.\d+\.0$/
const MINE = 'https://example.com/schemas/1.2.3'

// trace.getTracer of API 1.9 ignores its third argument.
const routes = (app) => app.get('/', async () => {
  trace.getTracerProvider().getTracer('mine', '1.0.0', { schemaUrl: MINE }).startSpan('mine').end()
  return 'ok'
})

/** Returns a map from scope name to schema URL, with the resource's under ''. */
function schemas (body) {
  const found = {}
  for (const resourceSpans of Request.decode(body).resourceSpans) {
    found[''] = resourceSpans.schemaUrl ?? ''
    for (const { scope, schemaUrl } of resourceSpans.scopeSpans) found[scope.name] = schemaUrl ?? ''
  }
  return found
}

function check (t, found, own = CONVENTIONS) {
  if (own !== null) t.match(found[''], own)
  t.match(found['light-trace'], CONVENTIONS)
  t.equal(found.mine, MINE)
}

test('schema URLs are exported over OTLP', async (t) => {
  const sink = await startSink(t)
  const bodies = []
  sink.respond = (req, body) => { bodies.push(body); return { status: 200 } }
  const { app } = await tracedApp(t, { listen: false, routes, trace: { registerGlobals: true, spanProcessors: undefined, exporter: { url: sink.url } } })
  await app.inject('/')
  await app.lightTrace.flush()
  check(t, Object.assign({}, ...bodies.map(schemas)))
})

test('schema URLs reach span processors', { skip: without('sdk') }, async (t) => {
  const exporter = new InMemorySpanExporter()
  const { app } = await tracedApp(t, { listen: false, routes, trace: { registerGlobals: true, spanProcessors: [new SimpleSpanProcessor(exporter)] } })
  await app.inject('/')
  await app.lightTrace.flush()
  const spans = exporter.getFinishedSpans()
  t.match(spans[0].resource.schemaUrl, CONVENTIONS)
  check(t, schemas(ProtobufTraceSerializer.serializeRequest(spans)), null)
})

test('schema URLs reach a tracer provider of the app', { skip: without('sdk') }, async (t) => {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const { app } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/', async () => { app.lightTrace.tracerProvider.getTracer('mine', '1.0.0', { schemaUrl: MINE }).startSpan('mine').end(); return 'ok' }),
    trace: { spanProcessors: undefined, tracerProvider: provider }
  })
  await app.inject('/')
  check(t, schemas(ProtobufTraceSerializer.serializeRequest(exporter.getFinishedSpans())), null)
})
