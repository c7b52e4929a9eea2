'use strict'

// The packages of the fixture: those that all fixtures share, and its sdk.js for the different ones.

const sdk = require('../../sdk')

module.exports = {
  api: require('@opentelemetry/api'),
  Fastify: require('fastify'),
  lightTrace: require('light-trace'),
  ContextManager: require('@opentelemetry/context-async-hooks').AsyncLocalStorageContextManager,
  ZipkinExporter: require('@opentelemetry/exporter-zipkin').ZipkinExporter,
  OtlpExporter: require('@opentelemetry/exporter-trace-otlp-proto').OTLPTraceExporter,
  ...sdk
}
