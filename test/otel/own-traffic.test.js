'use strict'

const { AsyncLocalStorage } = require('node:async_hooks')
const { test } = require('tap')
const { context, ROOT_CONTEXT } = require('@opentelemetry/api')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { startSink } = require('../support/otlp-sink')

test('exports of a request create no span if another context manager is registered', async (t) => {
  const storage = new AsyncLocalStorage()
  context.setGlobalContextManager({
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, fn, thisArg, ...args) => storage.run(active, () => fn.apply(thisArg, args)),
    bind: (active, fn) => fn,
    enable () { return this },
    disable () { return this }
  })
  t.teardown(() => context.disable())
  const sink = await startSink(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: sink.url } })
  app.get('/', async (request) => {
    await request.trace.withSpan('work', async () => {})
    await app.lightTrace.flush()
    return 'ok'
  })

  await app.inject('/')
  await app.lightTrace.flush()

  t.same(sink.spans.map(({ name }) => name), ['work', 'GET /'])
})
