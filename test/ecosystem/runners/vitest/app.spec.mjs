import { fileURLToPath } from 'node:url'
import { trace } from '@opentelemetry/api'
import fastify from 'fastify'
import lightTrace from 'light-trace'
import { createCollector } from 'light-trace/testing'
import { expect, test, vi } from 'vitest'

test('a request is traced, and the API has its span', async () => {
  const collector = createCollector()
  const app = fastify()
  await app.register(lightTrace, { spanProcessors: [collector] })
  app.get('/', async (request) => trace.getActiveSpan().spanContext().traceId === request.trace.traceId)
  expect((await app.inject('/')).body).toBe('true')
  expect(await collector.tree()).toBe('SERVER GET /')
  await app.close()
})

test('a broken budget fails with the tree, and a larger budget passes', async () => {
  const collector = createCollector()
  const app = fastify()
  await app.register(lightTrace, { spanProcessors: [collector] })
  app.get('/', async () => Promise.all([1, 2].map(() => fetch('http://127.0.0.1:4').catch(() => ''))))
  await app.inject('/')
  await collector.check({ repeats: 2, calls: { http: 2 }, afterResponse: false, open: false })
  await expect(collector.check({ calls: { http: 1 } })).rejects.toThrow(/over budget\nGET \/: http: 2 calls, 1 allowed[^]+<-- http/)
  const [{ attributes }] = await collector.spans()
  expect(attributes['code.file.path']).toBe(fileURLToPath(import.meta.url))
  expect(attributes['code.line.number']).toBe(22)
  await app.close()
})

test('fake timers block neither requests nor close', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval', 'setImmediate', 'Date', 'performance'] })
  try {
    const app = fastify()
    await app.register(lightTrace, { exporter: { url: 'http://127.0.0.1:9' }, buffer: { closeTimeoutMs: 200 } })
    app.get('/', async () => 'ok')
    expect((await app.inject('/')).body).toBe('ok')
    await app.close()
  } finally {
    vi.useRealTimers()
  }
})
