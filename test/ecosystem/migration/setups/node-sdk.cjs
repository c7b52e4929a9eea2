'use strict'

// The usual setup: all auto-instrumentations, and @fastify/otel.

const FastifyOtelInstrumentation = require('@fastify/otel')
const { getNodeAutoInstrumentations } = require('@opentelemetry/auto-instrumentations-node')
const { NodeSDK } = require('@opentelemetry/sdk-node')

const sdk = new NodeSDK({ instrumentations: [getNodeAutoInstrumentations(), new FastifyOtelInstrumentation({ registerOnInitialization: true })] })
sdk.start()
globalThis.shutDownTracing = () => sdk.shutdown()
