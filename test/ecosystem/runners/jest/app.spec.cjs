'use strict'

// Run by Jest, which gives every test file globals and modules of its own.

const { trace } = require('@opentelemetry/api')
const fastify = require('fastify')
const lightTrace = require('light-trace')
const { createCollector } = require('light-trace/testing')

test('a request is traced, and the API knows its span', async () => {
  const collector = createCollector()
  const app = fastify()
  await app.register(lightTrace, { spanProcessors: [collector] })
  app.get('/', async (request) => trace.getActiveSpan().spanContext().traceId === request.trace.traceId)
  expect((await app.inject('/')).body).toBe('true')
  expect(await collector.tree()).toBe('SERVER GET /')
  await app.close()
})

test('fake timers stop neither requests nor close', async () => {
  jest.useFakeTimers()
  try {
    const app = fastify()
    await app.register(lightTrace, { exporter: { url: 'http://127.0.0.1:9' }, closeTimeoutMs: 200 })
    app.get('/', async () => 'ok')
    expect((await app.inject('/')).body).toBe('ok')
    await app.close()
  } finally {
    jest.useRealTimers()
  }
})
