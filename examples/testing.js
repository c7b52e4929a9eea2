'use strict'

// For your own tests: an in-memory collector, and a readable tree of what a request did.

const { test } = require('node:test')
const assert = require('node:assert')
const Fastify = require('fastify')
const lightTrace = require('light-trace')
const { createCollector } = require('light-trace/testing')

async function buildApp (traceOptions) {
  const app = Fastify()
  await app.register(lightTrace, traceOptions)
  app.get('/orders/:id', (request) => request.trace.withSpan('load order', async (span) => {
    span.setAttribute('order.id', request.params.id)
    throw new Error('the database is gone')
  }))
  return app
}

test('an order that cannot be loaded is an error of both spans', async (t) => {
  const collector = createCollector()
  const app = await buildApp({ spanProcessors: [collector] })
  t.after(() => app.close())

  await app.inject('/orders/7')

  assert.strictEqual(await collector.tree(), [
    'SERVER GET /orders/:id ERROR error.type=Error',
    '  INTERNAL load order ERROR error.type=Error'
  ].join('\n'))
  const [, loadOrder] = await collector.spans()
  assert.strictEqual(loadOrder.attributes['order.id'], '7')
})
