'use strict'

// The stock SDK 3.x, put together as its documentation does, from a node_modules of its own: as ../server/sdk2.js.

const api = require('@opentelemetry/api')
const { AsyncLocalStorageContextManager } = require('@opentelemetry/context-async-hooks')
const { W3CTraceContextPropagator } = require('@opentelemetry/core')
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-proto')
const { resourceFromAttributes } = require('@opentelemetry/resources')
const { TracerProvider, BatchSpanProcessor, ParentBasedSampler, AlwaysOnSampler } = require('@opentelemetry/sdk-trace')
const countedPipeline = require('../server/counted-pipeline')
const versionsOf = require('../server/versions')

module.exports = { api, pipeline, provider, registerGlobals, load: require, versions }

function pipeline () {
  return countedPipeline({
    ...api,
    BatchSpanProcessor,
    OTLPTraceExporter,
    processorArguments: (exporter, options) => [{ exporter, ...options }]
  })
}

function provider (processor) {
  return new TracerProvider({
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

function versions (names) {
  return versionsOf(__filename, ['@opentelemetry/sdk-trace', ...names])
}
