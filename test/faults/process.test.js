'use strict'

// How the process ends, is stopped and continues while spans are being sent. Each test runs in a separate process.

const { test } = require('tap')
const { startFakeCollector } = require('../support/fake-collector')
const { runInChild } = require('../support/child')
const { unusedUrl, oneRequest } = require('../support/scenarios')

// L05, L10
test('a process without further work delivers its spans and exits', async (t) => {
  const collector = await startFakeCollector(t)
  const { code, said, stderr } = await runInChild(t, oneRequest, { args: [collector.url] }).exit
  t.equal(code, 0)
  t.strictSame(said, [1])
  t.equal(collector.delivered.size, 1)
  t.equal(stderr, '')
})

test('an exit code that was set is kept', async (t) => {
  const collector = await startFakeCollector(t)
  const { code } = await runInChild(t, async ({ Fastify, lightTrace }, url) => {
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url } })
    await app.inject('/')
    process.exitCode = 7
  }, { args: [collector.url] }).exit
  t.equal(code, 7)
  t.equal(collector.delivered.size, 1)
})

// If the process waited for this time, it would be killed before.
const TOO_LONG_MS = 600_000

test('without a collector the process exits without waiting, and logs the loss', async (t) => {
  const { code, stderr } = await runInChild(t, oneRequest, { args: [await unusedUrl(), { closeTimeoutMs: TOO_LONG_MS }] }).exit
  t.equal(code, 0)
  t.match(stderr, /LT_WARN_LOSS/)
  t.match(stderr, /exits with 1 span /)
})

test('a hanging collector delays the exit by the close timeout at most', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ hang: true }]
  const { code } = await runInChild(t, oneRequest, { args: [collector.url, { closeTimeoutMs: 300, exporter: { url: collector.url, timeoutMs: TOO_LONG_MS } }] }).exit
  t.equal(code, 0)
})

test('an app that waits for its collector to come back can exit', async (t) => {
  const { code, said } = await runInChild(t, async ({ Fastify, lightTrace, say }, url, closeTimeoutMs) => {
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url }, closeTimeoutMs })
    await app.inject('/')
    await app.lightTrace.flush()
    say(app.lightTrace.stats())
    const resources = () => process.getActiveResourcesInfo().filter((name) => name !== 'PipeWrap' && name !== 'Immediate')
    while (resources().length > 0) await new Promise((resolve) => setImmediate(resolve)) // until the failed socket is closed
    say('nothing is left')
  }, { args: [await unusedUrl(), TOO_LONG_MS] }).exit
  t.equal(code, 0)
  t.equal(said[0].spans.queued, 1)
  t.equal(said[1], 'nothing is left')
})

test('an idle connection to the collector does not keep the process alive', async (t) => {
  const collector = await startFakeCollector(t)
  const { code, said } = await runInChild(t, async ({ Fastify, lightTrace, say }, url) => {
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url } })
    await app.inject('/')
    await app.lightTrace.flush()
    say(app.lightTrace.stats().spans.delivered)
  }, { args: [collector.url] }).exit // the collector keeps its connections for a minute, twice the lifetime of a child
  t.equal(code, 0)
  t.strictSame(said, [1])
})

test('two apps share one beforeExit listener, which is removed after the spans are sent', async (t) => {
  const collector = await startFakeCollector(t)
  const { said } = await runInChild(t, async ({ Fastify, lightTrace, say }, url) => {
    const apps = [Fastify(), Fastify()]
    for (const app of apps) {
      await app.register(lightTrace, { exporter: { url } })
      await app.inject('/')
    }
    await new Promise((resolve) => setImmediate(resolve))
    say(process.listenerCount('beforeExit'))
    for (const app of apps) await app.close()
    say(process.listenerCount('beforeExit'))
  }, { args: [collector.url] }).exit
  t.strictSame(said, [1, 0])
  t.equal(collector.delivered.size, 2)
})

test('a beforeExit listener of the app that creates spans each time causes no endless loop', async (t) => {
  const collector = await startFakeCollector(t)
  const { code } = await runInChild(t, async ({ Fastify, lightTrace }, url) => {
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url } })
    let rounds = 0
    process.on('beforeExit', () => { if (++rounds <= 3) app.inject('/') })
  }, { args: [collector.url] }).exit
  t.equal(code, 0)
  t.equal(collector.delivered.size, 3)
})

// L02
test('SIGTERM with a handler that closes the app delivers everything', async (t) => {
  const collector = await startFakeCollector(t)
  const child = runInChild(t, async ({ Fastify, lightTrace, say }, url) => {
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url } })
    app.get('/', async () => 'ok')
    await app.listen({ port: 0, host: '127.0.0.1' })
    process.on('SIGTERM', () => app.close())
    for (let i = 0; i < 20; i++) await fetch(`http://127.0.0.1:${app.server.address().port}/`)
    say('ready')
  }, { args: [collector.url] })
  await child.said()
  child.kill('SIGTERM')
  const { code } = await child.exit
  t.equal(code, 0)
  // Each fetch has its own span if outbound calls are traced.
  t.ok(collector.delivered.size >= 20)
  t.strictSame(collector.duplicates, [])
})

// L04
test('process.exit does not wait', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ hang: true }]
  const { code } = await runInChild(t, async ({ Fastify, lightTrace }, url, timeoutMs) => {
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url, timeoutMs }, closeTimeoutMs: timeoutMs })
    await app.inject('/')
    process.exit(3)
  }, { args: [collector.url, TOO_LONG_MS] }).exit
  t.equal(code, 3)
})

// L06
test('an uncaught exception or unhandled rejection ends the process as without light-trace', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ hang: true }]
  for (const how of ['throw', 'reject']) {
    const { code, stderr } = await runInChild(t, async ({ Fastify, lightTrace }, url, how) => {
      const app = Fastify()
      await app.register(lightTrace, { exporter: { url } })
      await app.inject('/')
      if (how === 'throw') setImmediate(() => { throw new Error('of the app') })
      else Promise.reject(new Error('of the app'))
    }, { args: [collector.url, how] }).exit
    t.equal(code, 1)
    t.match(stderr, /of the app/)
  }
})

// L09
test('close without a collector does not wait, and logs the loss', async (t) => {
  const { code, said, stderr } = await runInChild(t, async ({ Fastify, lightTrace, say }, url, closeTimeoutMs) => {
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url }, closeTimeoutMs })
    await app.inject('/')
    await app.close()
    say(app.lightTrace.stats().spans)
  }, { args: [await unusedUrl(), TOO_LONG_MS] }).exit
  t.equal(code, 0)
  t.strictSame(said[0].dropped, { shutdown_deadline: 1 })
  t.equal(stderr.match(/LT_WARN/g).length, 1)
})

// L11
test('each worker of a cluster has its own ids and its own instance', async (t) => {
  const collector = await startFakeCollector(t)
  const { code } = await runInChild(t, async ({ Fastify, lightTrace }, url) => {
    const cluster = require('node:cluster')
    if (cluster.isPrimary) {
      for (let i = 0; i < 2; i++) cluster.fork()
      return
    }
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url } })
    for (let i = 0; i < 50; i++) await app.inject('/')
    await app.close()
    cluster.worker.disconnect()
  }, { args: [collector.url] }).exit
  t.equal(code, 0)
  t.equal(collector.delivered.size, 100)
  t.strictSame(collector.duplicates, [])
  t.equal(collector.connections, 2)
})

// L12
test('loading and registering the package adds no handle and no listener to the process', async (t) => {
  const collector = await startFakeCollector(t)
  const { said } = await runInChild(t, async ({ say, Fastify, root }, url) => {
    await Fastify().ready()
    const state = () => [process.getActiveResourcesInfo(), process.eventNames().map((name) => [name, process.listenerCount(name)])]
    const app = Fastify()
    say(state())
    await app.register(require(root), { exporter: { url } }).ready()
    say(state())
  }, { args: [collector.url] }).exit
  t.strictSame(said[1], said[0])
})

// L13
test('a worker thread that ends delivers its spans, and one that is terminated does no harm', async (t) => {
  const collector = await startFakeCollector(t)
  const { code, said } = await runInChild(t, async ({ say, root }, url) => {
    const { Worker } = require('node:worker_threads')
    const source = (last) => `
      const app = require('fastify')()
      app.register(require(${JSON.stringify(root)}), { exporter: { url: ${JSON.stringify(url)} } })
      app.inject('/').then(() => new Promise((resolve) => setImmediate(resolve))).then(() => { ${last} })`
    const natural = new Worker(source(''), { eval: true })
    say(await new Promise((resolve) => natural.once('exit', resolve)))
    const terminated = new Worker(source("require('node:worker_threads').parentPort.postMessage(1); setInterval(() => {}, 1000)"), { eval: true })
    await new Promise((resolve) => terminated.once('message', resolve))
    say(await terminated.terminate())
  }, { args: [collector.url] }).exit
  t.equal(code, 0)
  t.strictSame(said, [0, 1])
  t.ok(collector.delivered.size >= 1)
})
