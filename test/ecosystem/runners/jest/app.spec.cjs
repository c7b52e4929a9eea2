/* global expect, jest, test */
'use strict'

// Jest runs this. It gives each test file its own globals and modules.

const { trace } = require('@opentelemetry/api')
const fastify = require('fastify')
const lightTrace = require('light-trace')
const { createCollector } = require('light-trace/testing')

test('a request is traced, and the API has its span', async () => {
  const collector = createCollector()
  const app = fastify()
  await app.register(lightTrace, { spanProcessors: [collector] })
  app.get('/', async (request) => trace.getActiveSpan().spanContext().traceId === request.trace.traceId)
  expect(await get(app)).toBe('true')
  expect(await collector.tree()).toBe('SERVER GET /')
  await app.close()
})

test('a broken budget fails with the tree, and a larger budget passes', async () => {
  const collector = createCollector()
  const app = fastify()
  await app.register(lightTrace, { spanProcessors: [collector] })
  app.get('/', async (request) => request.trace.withSpan('look up', () => Promise.all([1, 2].map(() => fetch('http://127.0.0.1:4').catch(() => '')))))
  await get(app)
  await collector.check({ repeats: 2, calls: { http: 2 }, afterResponse: false, open: false })
  await expect(collector.check({ calls: { http: 1 } })).rejects.toThrow(/over budget\nGET \/: http: 2 calls, 1 allowed[^]+CLIENT GET 127\.0\.0\.1\/.* {2}<-- http/)
  const [{ attributes }] = await collector.spans()
  expect(attributes['code.file.path']).toBe(__filename)
  expect(attributes['code.line.number']).toBe(25)
  await app.close()
})

test('fake timers block neither requests nor close', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] })
  try {
    const app = fastify()
    await app.register(lightTrace, { exporter: { url: 'http://127.0.0.1:9' }, buffer: { closeTimeoutMs: 200 } })
    app.get('/', async () => 'ok')
    expect(await get(app)).toBe('ok')
    await app.close()
  } finally {
    jest.useRealTimers()
  }
})

// Not with inject(), which loads an ES module that Jest cannot require before Node 24.9.
async function get (app) {
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (await fetch(`http://127.0.0.1:${app.server.address().port}/`)).text()
}
