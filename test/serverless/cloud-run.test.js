'use strict'

// Feature: serverless

const { test, setTimeout: setTestTimeout } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { startFakeCollector } = require('../support/fake-collector')
const { unusedUrl } = require('../support/scenarios')
const { startFrozen } = require('../support/frozen-server')

const IS_LONG = process.env.LIGHT_TRACE_LONG === '1'
setTestTimeout(IS_LONG ? 600_000 : 60_000)
const SPANS = 2
const REQUESTS = IS_LONG ? 100 : 25
const CLOUD_RUN = { env: { K_SERVICE: 'shop', K_REVISION: 'shop-1' } }

async function serve (server, count = REQUESTS) {
  for (let i = 1; i <= count; i++) await server.request(`/orders/${i}`)
}

for (const [kind, behaviour] of [['fast', { status: 200 }], ['slow', { status: 200, delayMs: 200 }]]) {
  test(`frozen between requests and ended by SIGTERM, a ${kind} collector has everything once`, async (t) => {
    const collector = await startFakeCollector(t)
    collector.script = [behaviour]
    const server = await startFrozen(t, 'cloud-run', { ...CLOUD_RUN, traceOptions: { exporter: { url: collector.url } } })
    await serve(server)
    const { code, signal, stderr } = await server.terminate()
    t.equal(collector.delivered.size, REQUESTS * SPANS)
    t.same(collector.duplicates, [])
    t.same({ code, signal, stderr }, { code: null, signal: 'SIGTERM', stderr: '' }, 'it ends as without light-trace')
  })
}

test('a hanging collector delays the end by closeTimeoutMs, and the loss is logged', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ hang: true }]
  const server = await startFrozen(t, 'cloud-run', { ...CLOUD_RUN, traceOptions: { exporter: { url: collector.url, timeoutMs: 600_000 }, closeTimeoutMs: 200 } })
  await serve(server, 3)
  const { signal, stderr } = await server.terminate()
  t.equal(signal, 'SIGTERM')
  t.match(stderr, /LT_WARN_LOSS.*6 spans not delivered/)
})

test('without a collector it ends at once, and the loss is logged', async (t) => {
  const server = await startFrozen(t, 'cloud-run', { ...CLOUD_RUN, traceOptions: { exporter: { url: await unusedUrl() }, closeTimeoutMs: 600_000 } })
  await serve(server, 3)
  const { signal, stderr } = await server.terminate()
  t.equal(signal, 'SIGTERM')
  t.match(stderr, /LT_WARN_LOSS/)
})

test('an application that closes itself at SIGTERM still does', async (t) => {
  const collector = await startFakeCollector(t)
  const server = await startFrozen(t, 'cloud-run', { ...CLOUD_RUN, closesItself: true, traceOptions: { exporter: { url: collector.url } } })
  await serve(server, 5)
  const { code, signal } = await server.terminate()
  t.same({ code, signal }, { code: 0, signal: null })
  t.equal(collector.delivered.size, 5 * SPANS)
  t.same(collector.duplicates, [])
})

test('SIGTERM has no listener elsewhere', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ hang: true }]
  const server = await startFrozen(t, 'cloud-run', { traceOptions: { exporter: { url: collector.url, timeoutMs: 600_000 }, closeTimeoutMs: 200 } })
  await serve(server, 3)
  const { signal, stderr } = await server.terminate()
  t.equal(signal, 'SIGTERM')
  t.equal(stderr, '', 'the collector is not waited for, and this is logged')
})

test('if the code of a preloaded process registers it, it listens for SIGTERM', async (t) => {
  process.env.K_SERVICE = 'shop'
  const app = Fastify()
  t.teardown(() => { delete process.env.K_SERVICE })
  const before = process.listenerCount('SIGTERM')
  await app.register(lightTrace, { [Symbol.for('light-trace.automatic')]: true })
  await app.register(lightTrace, { exporter: 'none' })
  t.equal(process.listenerCount('SIGTERM'), before + 1)
  await app.close()
  t.equal(process.listenerCount('SIGTERM'), before)
})
