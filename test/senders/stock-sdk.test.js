'use strict'

// OpenTelemetry's JavaScript SDK, with protobuf and JSON, compressed and uncompressed: the viewer shows what it sends.

const { test } = require('tap')
const { context, trace, SpanKind, SpanStatusCode } = require('@opentelemetry/api')
const { resourceFromAttributes } = require('@opentelemetry/resources')
const { BasicTracerProvider, BatchSpanProcessor } = require('@opentelemetry/sdk-trace-base')
const { startViewer } = require('../viewer/support')

const EXPORTERS = {
  protobuf: require('@opentelemetry/exporter-trace-otlp-proto').OTLPTraceExporter,
  JSON: require('@opentelemetry/exporter-trace-otlp-http').OTLPTraceExporter
}

for (const [name, OTLPTraceExporter] of Object.entries(EXPORTERS)) {
  for (const compression of ['none', 'gzip']) {
    test(`the viewer shows the SDK's spans in ${name}, compression ${compression}`, async (t) => {
      const viewer = await startViewer(t)
      const provider = new BasicTracerProvider({
        resource: resourceFromAttributes({ 'service.name': 'shop', 'host.cores': 8 }),
        spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: `${viewer.url}/v1/traces`, compression }))]
      })
      const ids = record(provider.getTracer('checkout', '2.1'))
      await provider.forceFlush()
      t.match((await viewer.json('/api/stats')), { received: { requests: 1, spans: 3 }, dropped: { spans: 0 }, refused: { requests: 0 } })
      const { rows, trace: summary } = await viewer.json(`/api/traces/${ids.trace}/rows`)
      t.match(summary, { service: 'shop', route: 'POST /orders', status: 500, state: 'error', error: { type: 'RangeError', message: 'too many' }, durationMs: 12.5 })
      t.match(rows.map(({ depth, kind, name, status, duration }) => [depth, kind, name, status, duration]), [
        [0, 'SERVER', 'POST /orders', 'ERROR', 12.5], [1, 'CLIENT', 'charge', 'UNSET', 4], [1, 'PRODUCER', 'announce', 'OK', 1]
      ])
      const span = await viewer.json(`/api/traces/${ids.trace}/spans/${ids.root}`)
      const attributes = Object.fromEntries(span.attributes.map(({ key, value, type }) => [key, [value, type]]))
      t.match(attributes, { 'order.id': [7, 'int'], 'order.sum': [9.5, 'double'], 'order.new': [true, 'bool'], 'order.tags': [['a', 'b'], 'array'], 'order.note': ['für dich 🎁', 'string'] })
      t.match(span, { scope: { name: 'checkout', version: '2.1' }, status: { code: 'ERROR', message: 'too many' }, links: [{ trace: 'a'.repeat(32), span: 'b'.repeat(16), held: false }] })
      t.match(span.resource.find(({ key }) => key === 'host.cores'), { value: 8 })
      t.match(span.events.map(({ name: event, at }) => [event, at]), [['checked', 2], ['exception', Number]])
      await provider.shutdown()
    })
  }
}

function record (tracer) {
  const at = (ms) => [1_763_753_000, ms * 1e6]
  const links = [{ context: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 } }]
  const attributes = { 'http.request.method': 'POST', 'http.route': '/orders', 'http.response.status_code': 500, 'order.id': 7, 'order.sum': 9.5, 'order.new': true, 'order.tags': ['a', 'b'], 'order.note': 'für dich 🎁' }
  const root = tracer.startSpan('POST /orders', { kind: SpanKind.SERVER, startTime: at(0), attributes, links }, context.active())
  const inside = trace.setSpan(context.active(), root)
  tracer.startSpan('charge', { kind: SpanKind.CLIENT, startTime: at(1) }, inside).end(at(5))
  tracer.startSpan('announce', { kind: SpanKind.PRODUCER, startTime: at(6) }, inside).setStatus({ code: SpanStatusCode.OK }).end(at(7))
  root.addEvent('checked', at(2))
  root.recordException(new RangeError('too many'), at(8))
  root.setStatus({ code: SpanStatusCode.ERROR, message: 'too many' })
  root.end(at(12.5))
  return { trace: root.spanContext().traceId, root: root.spanContext().spanId }
}

test('metrics and logs of the SDK are answered, counted and not kept', async (t) => {
  const viewer = await startViewer(t)
  const { MeterProvider, PeriodicExportingMetricReader } = require('@opentelemetry/sdk-metrics')
  const { OTLPMetricExporter } = require('@opentelemetry/exporter-metrics-otlp-http')
  const meters = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter({ url: `${viewer.url}/v1/metrics` }) })] })
  meters.getMeter('shop').createCounter('orders').add(1)
  await meters.forceFlush()
  await meters.shutdown()
  const { LoggerProvider, BatchLogRecordProcessor } = require('@opentelemetry/sdk-logs')
  const { OTLPLogExporter } = require('@opentelemetry/exporter-logs-otlp-proto')
  const loggers = new LoggerProvider({ processors: [new BatchLogRecordProcessor(new OTLPLogExporter({ url: `${viewer.url}/v1/logs` }))] })
  loggers.getLogger('shop').emit({ body: 'an order' })
  await loggers.shutdown()
  const { received, refused, traces } = await viewer.json('/api/stats')
  t.ok(received.metrics >= 1)
  t.equal(received.logs, 1)
  t.match([refused.requests, traces], [0, 0])
})
