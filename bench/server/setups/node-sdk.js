'use strict'

// NodeSDK, started as in its documentation, with instrumentation-http or all auto-instrumentations, plus the framework's own. sdk: the
// SDK's major. A case's OTEL_* variables switch logs off, and metrics too, except for the real request.

module.exports = async ({ sdk = 2, auto, fastify = true, express = false, real = false, lines = false }) => {
  const { api, pipeline, load, versions } = require('../sdk')(sdk)
  const { NodeSDK } = load('@opentelemetry/sdk-node')
  const spans = pipeline()
  const instrumentations = auto ? load('@opentelemetry/auto-instrumentations-node').getNodeAutoInstrumentations() : [httpInstrumentation()]
  if (fastify) instrumentations.push(fastifyInstrumentation(load))
  if (real) instrumentations.push(...realInstrumentations())
  if (lines) instrumentations.push(pinoInstrumentation({}))
  if (express) instrumentations.push(expressInstrumentation())
  const nodeSdk = new NodeSDK({
    serviceName: 'bench',
    spanProcessors: [spans.processor],
    instrumentations
  })
  nodeSdk.start()
  const { trace, metrics } = api
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
    versions: () => versions([
      '@opentelemetry/sdk-node',
      auto ? '@opentelemetry/auto-instrumentations-node' : '@opentelemetry/instrumentation-http',
      ...(fastify ? ['@fastify/otel'] : []),
      ...(real ? ['@opentelemetry/instrumentation-redis', '@opentelemetry/instrumentation-pino'] : []),
      ...(express ? ['@opentelemetry/instrumentation-express'] : [])
    ]),
    // Collects its metrics once per window, as light-trace does.
    flush: real ? async () => { await Promise.all([spans.flush(), metrics.getMeterProvider().forceFlush()]) } : spans.flush,
    counts: spans.counts
  }
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

function fastifyInstrumentation (load) {
  const { FastifyOtelInstrumentation } = load('@fastify/otel')
  return new FastifyOtelInstrumentation({ registerOnInitialization: true })
}

function expressInstrumentation () {
  const { ExpressInstrumentation } = require('@opentelemetry/instrumentation-express')
  return new ExpressInstrumentation()
}
