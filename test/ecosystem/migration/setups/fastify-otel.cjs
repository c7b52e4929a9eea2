'use strict'

// @fastify/otel without an instrumentation of node:http.

const FastifyOtelInstrumentation = require('@fastify/otel')
const { NodeSDK } = require('@opentelemetry/sdk-node')

const sdk = new NodeSDK({ instrumentations: [new FastifyOtelInstrumentation({ registerOnInitialization: true })] })
sdk.start()
globalThis.shutDownTracing = () => sdk.shutdown()
