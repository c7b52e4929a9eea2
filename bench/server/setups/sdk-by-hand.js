'use strict'

// Spans made by hand with the stock SDK. sdk: its major.

module.exports = ({ sdk }) => {
  const { api, pipeline, provider, registerGlobals, versions } = require('../sdk')(sdk)
  const spans = pipeline()
  const tracerProvider = provider(spans.processor)
  registerGlobals(tracerProvider)
  return {
    versions: () => versions(['@opentelemetry/api', '@opentelemetry/exporter-trace-otlp-proto']),
    async register (app) {
      require('../span-by-hand')(app, { api, tracer: tracerProvider.getTracer('by-hand') })
    },
    flush: spans.flush,
    counts: spans.counts
  }
}
