'use strict'

// The same spans by hand on SDK 3.x, from a node_modules of its own.

const api = require('@opentelemetry/api')
const { AsyncLocalStorageContextManager } = require('@opentelemetry/context-async-hooks')
const { W3CTraceContextPropagator } = require('@opentelemetry/core')
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-proto')
const { resourceFromAttributes } = require('@opentelemetry/resources')
const { TracerProvider, BatchSpanProcessor, ParentBasedSampler, AlwaysOnSampler } = require('@opentelemetry/sdk-trace')
const countedPipeline = require('../server/counted-pipeline')
const spanByHand = require('../server/span-by-hand')
const versionsOf = require('../server/versions')

module.exports = () => {
  const spans = countedPipeline({
    ...api,
    BatchSpanProcessor,
    OTLPTraceExporter,
    processorArguments: (exporter, options) => [{ exporter, ...options }]
  })
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'bench' }),
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    spanProcessors: [spans.processor]
  })
  api.trace.setGlobalTracerProvider(provider)
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  api.propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  return {
    versions: () => versionsOf(__filename, ['@opentelemetry/api', '@opentelemetry/sdk-trace', '@opentelemetry/exporter-trace-otlp-proto']),
    async register (app) {
      spanByHand(app, { api, tracer: provider.getTracer('by-hand') })
    },
    flush: spans.flush,
    counts: spans.counts
  }
}
