'use strict'

// @fastify/otel alone, on the stock SDK. sdk: the SDK's major.

module.exports = ({ sdk = 2 }) => {
  const { pipeline, provider, registerGlobals, load, versions } = require('../sdk')(sdk)
  const { FastifyOtelInstrumentation } = load('@fastify/otel')
  const spans = pipeline()
  const tracerProvider = provider(spans.processor)
  registerGlobals(tracerProvider)
  const instrumentation = new FastifyOtelInstrumentation()
  instrumentation.setTracerProvider(tracerProvider)
  return {
    versions: () => versions(['@fastify/otel', '@opentelemetry/exporter-trace-otlp-proto']),
    async register (app) {
      await app.register(instrumentation.plugin())
    },
    flush: spans.flush,
    counts: spans.counts
  }
}
