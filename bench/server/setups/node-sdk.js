'use strict'

// NodeSDK as its documentation starts it, with instrumentation-http or all auto-instrumentations, and
// the framework's own. Metrics and logs are switched off by the case's OTEL_* variables.

module.exports = async ({ auto, fastify = true, express = false }) => {
  const { NodeSDK } = require('@opentelemetry/sdk-node')
  const { pipeline } = require('../sdk2')
  const versionsOf = require('../versions')
  const spans = pipeline()
  const instrumentations = auto ? autoInstrumentations() : [httpInstrumentation()]
  if (fastify) instrumentations.push(fastifyInstrumentation())
  if (express) instrumentations.push(expressInstrumentation())
  const sdk = new NodeSDK({
    serviceName: 'bench',
    spanProcessors: [spans.processor],
    instrumentations
  })
  sdk.start()
  return {
    versions: () => versionsOf(__filename, [
      '@opentelemetry/sdk-node',
      auto ? '@opentelemetry/auto-instrumentations-node' : '@opentelemetry/instrumentation-http',
      ...(fastify ? ['@fastify/otel'] : []),
      ...(express ? ['@opentelemetry/instrumentation-express'] : [])
    ]),
    flush: spans.flush,
    counts: spans.counts
  }
}

function autoInstrumentations () {
  return require('@opentelemetry/auto-instrumentations-node').getNodeAutoInstrumentations()
}

function httpInstrumentation () {
  const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http')
  return new HttpInstrumentation()
}

function fastifyInstrumentation () {
  const { FastifyOtelInstrumentation } = require('@fastify/otel')
  return new FastifyOtelInstrumentation({ registerOnInitialization: true })
}

function expressInstrumentation () {
  const { ExpressInstrumentation } = require('@opentelemetry/instrumentation-express')
  return new ExpressInstrumentation()
}
