'use strict'

module.exports = () => {
  const { api, pipeline, provider, registerGlobals } = require('../sdk2')
  const versionsOf = require('../versions')
  const spans = pipeline()
  const tracerProvider = provider(spans.processor)
  registerGlobals(tracerProvider)
  return {
    versions: () => versionsOf(__filename, ['@opentelemetry/api', '@opentelemetry/sdk-trace-base', '@opentelemetry/exporter-trace-otlp-proto']),
    async register (app) {
      require('../span-by-hand')(app, { api, tracer: tracerProvider.getTracer('by-hand') })
    },
    flush: spans.flush,
    counts: spans.counts
  }
}
