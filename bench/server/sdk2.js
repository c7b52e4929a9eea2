'use strict'

// The stock SDK 2.x, put together as its documentation does. ../sdk3/sdk.js is the same of SDK 3.x.

const api = require('@opentelemetry/api')
const { AsyncLocalStorageContextManager } = require('@opentelemetry/context-async-hooks')
const { W3CTraceContextPropagator } = require('@opentelemetry/core')
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-proto')
const { resourceFromAttributes } = require('@opentelemetry/resources')
const { BasicTracerProvider, BatchSpanProcessor, ParentBasedSampler, AlwaysOnSampler } = require('@opentelemetry/sdk-trace-base')
const countedPipeline = require('./counted-pipeline')
const versionsOf = require('./versions')

// load: requires a package from the folder of this SDK's.
module.exports = { api, pipeline, provider, registerGlobals, load: require, versions }

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

function versions (names) {
  return versionsOf(__filename, ['@opentelemetry/sdk-trace-base', ...names])
}
