'use strict'

// The stock SDK of a given major, set up as its documentation describes. SDK 3.x has its own node_modules.

const { createRequire } = require('node:module')
const path = require('node:path')
const countedPipeline = require('./counted-pipeline')
const versionsOf = require('./versions')

const MAJORS = {
  2: {
    file: __filename,
    tracing: '@opentelemetry/sdk-trace-base',
    provider: 'BasicTracerProvider',
    processorArguments: (exporter, options) => [exporter, options]
  },
  3: {
    file: path.join(__dirname, '../sdk3/package.json'),
    tracing: '@opentelemetry/sdk-trace',
    provider: 'TracerProvider',
    processorArguments: (exporter, options) => [{ exporter, ...options }]
  }
}

module.exports = function sdk (major) {
  const { file, tracing, provider, processorArguments } = MAJORS[major]
  const load = createRequire(file) // resolves packages from the folder of this SDK
  const api = load('@opentelemetry/api')
  const { AsyncLocalStorageContextManager } = load('@opentelemetry/context-async-hooks')
  const { W3CTraceContextPropagator } = load('@opentelemetry/core')
  const { OTLPTraceExporter } = load('@opentelemetry/exporter-trace-otlp-proto')
  const { resourceFromAttributes } = load('@opentelemetry/resources')
  const { [provider]: Provider, BatchSpanProcessor, ParentBasedSampler, AlwaysOnSampler } = load(tracing)

  return {
    api,
    load,

    pipeline: () => countedPipeline({ ...api, BatchSpanProcessor, OTLPTraceExporter, processorArguments }),

    provider: (processor) => new Provider({
      resource: resourceFromAttributes({ 'service.name': 'bench' }),
      sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
      spanProcessors: [processor]
    }),

    registerGlobals (tracerProvider) {
      api.trace.setGlobalTracerProvider(tracerProvider)
      api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
      api.propagation.setGlobalPropagator(new W3CTraceContextPropagator())
    },

    versions: (names) => versionsOf(file, [tracing, ...names])
  }
}
