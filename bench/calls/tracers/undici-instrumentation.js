'use strict'

// @opentelemetry/instrumentation-undici with the stock SDK 2.x, put together as their documentation does.

const { SpanKind } = require('@opentelemetry/api')
const { UndiciInstrumentation } = require('@opentelemetry/instrumentation-undici')

module.exports = async function open (url) {
  process.env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT = url
  const { pipeline, provider, registerGlobals } = require('../../server/sdk')(2)
  const spans = pipeline()
  const tracerProvider = provider(spans.processor)
  registerGlobals(tracerProvider)
  const instrumentation = new UndiciInstrumentation()
  instrumentation.setTracerProvider(tracerProvider)
  const tracer = tracerProvider.getTracer('bench')
  return {
    subscribe: () => instrumentation.enable(),
    unsubscribe: () => instrumentation.disable(),
    inSpan: (work) => tracer.startActiveSpan('slice', { kind: SpanKind.INTERNAL }, async (span) => {
      await work()
      span.end()
    }),
    flush: spans.flush,
    counts: spans.counts
  }
}
