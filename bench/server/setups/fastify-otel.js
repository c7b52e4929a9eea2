'use strict'

// @fastify/otel alone, on the stock SDK 2.x.

module.exports = () => {
  const { pipeline, provider, registerGlobals } = require('../sdk2')
  const { FastifyOtelInstrumentation } = require('@fastify/otel')
  const versionsOf = require('../versions')
  const spans = pipeline()
  const tracerProvider = provider(spans.processor)
  registerGlobals(tracerProvider)
  const instrumentation = new FastifyOtelInstrumentation()
  instrumentation.setTracerProvider(tracerProvider)
  return {
    versions: () => versionsOf(__filename, ['@fastify/otel', '@opentelemetry/sdk-trace-base', '@opentelemetry/exporter-trace-otlp-proto']),
    async register (app) {
      await app.register(instrumentation.plugin())
    },
    flush: spans.flush,
    counts: spans.counts
  }
}
