'use strict'

// NodeSDK as its documentation starts it, with instrumentation-http or all auto-instrumentations, and
// @fastify/otel. Metrics and logs are switched off by the case's OTEL_* variables.

module.exports = async ({ auto }) => {
  const { NodeSDK } = require('@opentelemetry/sdk-node')
  const { FastifyOtelInstrumentation } = require('@fastify/otel')
  const { pipeline } = require('../sdk2')
  const versionsOf = require('../versions')
  const spans = pipeline()
  const others = auto
    ? require('@opentelemetry/auto-instrumentations-node').getNodeAutoInstrumentations()
    : [new (require('@opentelemetry/instrumentation-http').HttpInstrumentation)()]
  const sdk = new NodeSDK({
    serviceName: 'bench',
    spanProcessors: [spans.processor],
    instrumentations: [others, new FastifyOtelInstrumentation({ registerOnInitialization: true })]
  })
  sdk.start()
  return {
    versions: versionsOf(__filename, ['@fastify/otel', '@opentelemetry/sdk-node', auto ? '@opentelemetry/auto-instrumentations-node' : '@opentelemetry/instrumentation-http']),
    flush: spans.flush,
    counts: spans.counts
  }
}
