'use strict'

// NodeSDK as its documentation starts it, with instrumentation-http or all auto-instrumentations, and
// the framework's own. Logs are switched off by the case's OTEL_* variables, and metrics but for the real request.

module.exports = async ({ auto, fastify = true, express = false, real = false, lines = false }) => {
  const { NodeSDK } = require('@opentelemetry/sdk-node')
  const { pipeline } = require('../sdk2')
  const versionsOf = require('../versions')
  const spans = pipeline()
  const instrumentations = auto ? autoInstrumentations() : [httpInstrumentation()]
  if (fastify) instrumentations.push(fastifyInstrumentation())
  if (real) instrumentations.push(...realInstrumentations())
  if (lines) instrumentations.push(pinoInstrumentation({}))
  if (express) instrumentations.push(expressInstrumentation())
  const sdk = new NodeSDK({
    serviceName: 'bench',
    spanProcessors: [spans.processor],
    instrumentations
  })
  sdk.start()
  const { trace, metrics } = require('@opentelemetry/api')
  const tracer = trace.getTracer('bench')
  return {
    fastify: real || lines ? { logger: require('./logger')({ isSync: true }) } : {},
    annotate: (request, key, value) => trace.getActiveSpan()?.setAttribute(key, value),
    inSpan: (request, name, fn) => tracer.startActiveSpan(name, async (span) => {
      try {
        return await fn()
      } finally {
        span.end()
      }
    }),
    versions: () => versionsOf(__filename, [
      '@opentelemetry/sdk-node',
      auto ? '@opentelemetry/auto-instrumentations-node' : '@opentelemetry/instrumentation-http',
      ...(fastify ? ['@fastify/otel'] : []),
      ...(real ? ['@opentelemetry/instrumentation-redis', '@opentelemetry/instrumentation-pino'] : []),
      ...(express ? ['@opentelemetry/instrumentation-express'] : [])
    ]),
    // With the collection of its metrics once a window, as light-trace's.
    flush: real ? async () => { await Promise.all([spans.flush(), metrics.getMeterProvider().forceFlush()]) } : spans.flush,
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

function realInstrumentations () {
  const { RedisInstrumentation } = require('@opentelemetry/instrumentation-redis')
  return [new RedisInstrumentation(), pinoInstrumentation({ disableLogSending: true })]
}

function pinoInstrumentation (options) {
  const { PinoInstrumentation } = require('@opentelemetry/instrumentation-pino')
  return new PinoInstrumentation(options)
}

function fastifyInstrumentation () {
  const { FastifyOtelInstrumentation } = require('@fastify/otel')
  return new FastifyOtelInstrumentation({ registerOnInitialization: true })
}

function expressInstrumentation () {
  const { ExpressInstrumentation } = require('@opentelemetry/instrumentation-express')
  return new ExpressInstrumentation()
}
