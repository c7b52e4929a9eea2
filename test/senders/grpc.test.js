'use strict'

// The SDKs of JavaScript, Python and Go send over gRPC, each with a gRPC of its own: grpc-js, the one in C, and grpc-go.

const { join } = require('node:path')
const { test } = require('tap')
const { startViewer } = require('../viewer/support')
const { run } = require('../../scripts/run')

const PYTHON = process.env.LIGHT_TRACE_PYTHON
const GO = process.env.LIGHT_TRACE_GO_SENDER
const DEADLINE_MS = 60_000

async function start (t) {
  const started = await startViewer(t)
  return { ...started, grpcPort: await started.viewer.listenGrpc(0) }
}

async function must (t, command, args) {
  const { code, output } = await run(command, args, { env: { PATH: process.env.PATH }, deadlineMs: DEADLINE_MS })
  t.equal(code, 0, output)
  t.equal(output, '', 'without a warning')
}

for (const compression of ['none', 'gzip']) {
  test(`Python's spans and log lines, compression ${compression}`, async (t) => {
    const { json, grpcPort } = await start(t)
    await must(t, PYTHON, [join(__dirname, 'send_grpc.py'), `http://localhost:${grpcPort}`, compression])
    const { traces } = await json('/api/traces')
    t.match(traces, [{ service: 'stock', route: 'GET /items/{id}', status: 200, spans: 2, lines: 1, root: true }])
    const { rows } = await json(`/api/traces/${traces[0].id}/rows`)
    t.match(rows.map(({ name }) => name), ['GET /items/{id}', 'count', 'no stock'])
    t.match(await json('/api/stats'), { received: { spans: 2, logs: 1 }, refused: { requests: 0 }, grpc: { messages: 2 } })
  })

  test(`Go's spans, compression ${compression}`, async (t) => {
    const { json, grpcPort } = await start(t)
    await must(t, GO, [`localhost:${grpcPort}`, ...compression === 'none' ? [] : [compression]])
    const { traces } = await json('/api/traces')
    t.match(traces, [{ service: 'stock-go', route: 'GET /items/{id}', status: 500, state: 'error', spans: 2, root: true }])
    const { rows } = await json(`/api/traces/${traces[0].id}/rows`)
    const { attributes, scope } = await json(`/api/traces/${traces[0].id}/spans/${rows[1].id}`)
    t.match([attributes, scope], [[{ key: 'tags', value: ['a', 'b'] }], { name: 'main.go', version: '1.0' }])
    t.match(await json('/api/stats'), { refused: { requests: 0 }, grpc: { messages: 1 } })
  })

  test(`JavaScript's spans, metrics and log lines, compression ${compression}`, async (t) => {
    const { json, grpcPort } = await start(t)
    const to = { url: `http://localhost:${grpcPort}`, compression }
    const { BasicTracerProvider, BatchSpanProcessor } = require('@opentelemetry/sdk-trace-base')
    const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-grpc')
    const tracers = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter(to))] })
    for (let i = 0; i < 2000; i++) tracers.getTracer('shop').startSpan(`work ${i}`).end()
    await tracers.forceFlush()
    await tracers.shutdown()
    const { MeterProvider, PeriodicExportingMetricReader } = require('@opentelemetry/sdk-metrics')
    const { OTLPMetricExporter } = require('@opentelemetry/exporter-metrics-otlp-grpc')
    const meters = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter(to) })] })
    meters.getMeter('shop').createCounter('orders').add(1)
    await meters.shutdown()
    const { LoggerProvider, BatchLogRecordProcessor } = require('@opentelemetry/sdk-logs')
    const { OTLPLogExporter } = require('@opentelemetry/exporter-logs-otlp-grpc')
    const loggers = new LoggerProvider({ processors: [new BatchLogRecordProcessor(new OTLPLogExporter(to))] })
    loggers.getLogger('shop').emit({ body: 'an order' })
    await loggers.shutdown()
    const { received, refused, grpc } = await json('/api/stats')
    t.match({ received, refused }, { received: { spans: 2000, logs: 1 }, refused: { requests: 0 } })
    t.ok(received.metrics >= 1)
    t.equal(grpc.messages, received.requests + received.logs + received.metrics)
  })
}

test('what is refused reaches the sender as an error that it understands', async (t) => {
  const { grpcPort } = await start(t)
  const { BasicTracerProvider, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-base')
  const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-grpc')
  const exporter = new OTLPTraceExporter({ url: `http://localhost:${grpcPort}` })
  const results = []
  const noting = { export: (spans, done) => exporter.export(spans, (result) => { results.push(result); done(result) }), shutdown: () => exporter.shutdown(), forceFlush: () => exporter.forceFlush() }
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(noting)] })
  provider.getTracer('shop').startSpan('large').setAttribute('text', 'x'.repeat(65 * 1024 * 1024)).end()
  await provider.forceFlush()
  await provider.shutdown()
  t.match(results, [{ code: 1, error: { code: 8, message: /larger than 64 MiB/ } }])
})
