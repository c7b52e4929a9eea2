'use strict'

// Runs the contract with the packages of this repository. `npm run test:suite -- interop` runs it with other pairs.
// Feature: sdk

const { AsyncLocalStorage } = require('node:async_hooks')
const tap = require('tap')
const api = require('@opentelemetry/api')
const sdk = require('@opentelemetry/sdk-trace-base')
const { contract } = require('./contract')

// The part of @opentelemetry/context-async-hooks that these tests use.
class ContextManager {
  #storage = new AsyncLocalStorage()
  active () { return this.#storage.getStore() ?? api.ROOT_CONTEXT }
  with (context, fn, self, ...args) { return this.#storage.run(context, () => fn.apply(self, args)) }
  bind (context, target) { return target }
  enable () { return this }
  disable () { return this }
}

contract((name, fn) => tap.test(name, (t) => fn({ after: (end) => t.teardown(end) })), {
  api,
  Fastify: require('fastify'),
  lightTrace: require('../..'),
  ContextManager,
  InMemorySpanExporter: sdk.InMemorySpanExporter,
  provider: (spanProcessors, options) => new sdk.BasicTracerProvider({ spanProcessors, ...options }),
  batch: (exporter) => new sdk.BatchSpanProcessor(exporter),
  simple: (exporter) => new sdk.SimpleSpanProcessor(exporter)
})
