'use strict'

// The stock SDK 2.x, put together as its documentation does.

const api = require('@opentelemetry/api')
const { AsyncLocalStorageContextManager } = require('@opentelemetry/context-async-hooks')
const { W3CTraceContextPropagator } = require('@opentelemetry/core')
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-proto')
const { resourceFromAttributes } = require('@opentelemetry/resources')
const { BasicTracerProvider, BatchSpanProcessor, ParentBasedSampler, AlwaysOnSampler } = require('@opentelemetry/sdk-trace-base')
const countedPipeline = require('./counted-pipeline')

module.exports = { api, pipeline, provider, registerGlobals }

function pipeline () {
  return countedPipeline({
    ...api,
    BatchSpanProcessor,
    OTLPTraceExporter,
    processorArguments: (exporter, options) => [exporter, options]
  })
}

function provider (processor) {
  return new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'bench' }),
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    spanProcessors: [processor]
  })
}

function registerGlobals (tracerProvider) {
  api.trace.setGlobalTracerProvider(tracerProvider)
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  api.propagation.setGlobalPropagator(new W3CTraceContextPropagator())
}
