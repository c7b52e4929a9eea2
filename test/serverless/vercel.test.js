'use strict'

// Feature: serverless

const path = require('node:path')
const { test, setTimeout: setTestTimeout } = require('tap')
const { startFakeCollector } = require('../support/fake-collector')
const { unusedUrl } = require('../support/scenarios')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { startFrozen } = require('../support/frozen-server')

const IS_LONG = process.env.LIGHT_TRACE_LONG === '1'
setTestTimeout(IS_LONG ? 600_000 : 60_000)
const SPANS = 2
const VERCEL = { env: { VERCEL: '1', VERCEL_REGION: 'fra1' }, freezesItself: true, hasContext: true }

for (const isFlushAfter of [false, true]) {
  const how = isFlushAfter ? 'with flushAfter' : 'by itself'
  test(`100 of 100 requests are delivered when the process freezes, ${how}`, async (t) => {
    const collector = await startFakeCollector(t)
    const server = await startFrozen(t, 'vercel', { ...VERCEL, isFlushAfter, traceOptions: { exporter: { url: collector.url } } })
    const late = []
    for (let i = 1; i <= 100; i++) {
      const { status } = await server.request(`/orders/${i}`)
      if (status !== 200 || collector.delivered.size !== i * SPANS) late.push(i)
      if (i % 3 === 0) for (const socket of collector.sockets) socket.destroy()
    }
    t.same(late, [])
    t.same(collector.duplicates, [])
  })
}

test('if the code of a preloaded process registers it, it holds the process, too', async (t) => {
  const collector = await startFakeCollector(t)
  const env = { ...VERCEL.env, NODE_OPTIONS: `--require ${path.join(__dirname, '../../register.js')}` }
  const server = await startFrozen(t, 'vercel', { ...VERCEL, env, traceOptions: { exporter: { url: collector.url } } })
  for (let i = 1; i <= 3; i++) await server.request(`/orders/${i}`)
  t.equal(collector.delivered.size, 3 * SPANS)
  t.equal(server.waitedFor, 1)
})

test('with a slow collector, the client has its answer while the process waits', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ status: 200, delayMs: 100 }]
  const server = await startFrozen(t, 'vercel', { ...VERCEL, traceOptions: { exporter: { url: collector.url } } })
  const count = IS_LONG ? 100 : 20
  const late = []
  for (let i = 1; i <= count; i++) {
    await server.request(`/orders/${i}`)
    if (collector.delivered.size !== i * SPANS) late.push(i)
  }
  t.same(late, [])
  t.same(collector.duplicates, [])
})

test('without a collector the process freezes at once', async (t) => {
  const server = await startFrozen(t, 'vercel', { ...VERCEL, traceOptions: { exporter: { url: await unusedUrl() }, closeTimeoutMs: 600_000 } })
  for (let i = 0; i < 5; i++) await server.request(`/orders/${i}`)
  const { spans } = JSON.parse((await server.request('/stats')).body)
  t.equal(spans.queued, 5 * SPANS)
})

test('a hanging collector holds the process for closeTimeoutMs, and delays no answer', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ hang: true }]
  const server = await startFrozen(t, 'vercel', { ...VERCEL, traceOptions: { exporter: { url: collector.url, timeoutMs: 600_000 }, closeTimeoutMs: 200 } })
  t.equal((await server.request('/orders/1')).status, 200)
  t.equal(server.waitedFor, 1)
})

test('without the platform\'s variable, waitUntil is not called', async (t) => {
  const collector = await startFakeCollector(t)
  const server = await startFrozen(t, 'vercel', { ...VERCEL, env: {}, traceOptions: { exporter: { url: collector.url } } })
  await server.request('/orders/1')
  t.equal(server.waitedFor, 0)
})

test('a platform without a context does no harm', async (t) => {
  const collector = await startFakeCollector(t)
  const server = await startFrozen(t, 'vercel', { ...VERCEL, hasContext: false, traceOptions: { exporter: { url: collector.url } } })
  t.equal((await server.request('/orders/1')).status, 200)
  t.equal(server.stderr, '')
})

test('a platform that refuses to wait affects no answer, and flushAfter waits itself', async (t) => {
  const context = Symbol.for('@vercel/request-context')
  let asked = 0
  globalThis[context] = { get: () => ({ waitUntil () { asked++; throw new Error('too late') } }) }
  process.env.VERCEL = '1'
  t.teardown(() => {
    delete globalThis[context]
    delete process.env.VERCEL
  })
  const collector = await startFakeCollector(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: collector.url } })
  app.get('/', async () => 'ok')
  t.equal((await app.inject('/')).body, 'ok')
  t.equal((await lightTrace.flushAfter(app, () => app.inject('/'))()).body, 'ok')
  t.equal(asked, 3)
  t.equal(collector.delivered.size, 2)
})
