'use strict'

// What the machine, the event loop and Node's flags may do. Each test runs in a separate process.

const { mkdtempSync, rmSync, writeFileSync } = require('node:fs')
const { tmpdir } = require('node:os')
const path = require('node:path')
const { test } = require('tap')
const { startFakeCollector } = require('../support/fake-collector')
const { runInChild } = require('../support/child')
const { unusedUrl, oneRequest } = require('../support/scenarios')

const TIMEOUT_MS = 1000 // of a request to the collector
const LONGER_MS = 1300

// L17
test('a process that was stopped during a request to the collector continues without loss', async (t) => {
  const collector = await startFakeCollector(t)
  let answer
  collector.script = () => ({ after: new Promise((resolve) => { answer = resolve }) })
  const child = runInChild(t, async ({ Fastify, lightTrace, say }, url, timeoutMs) => {
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url, timeoutMs } })
    await app.inject('/')
    await app.lightTrace.flush({ timeoutMs: 20_000 })
    say(app.lightTrace.stats())
    await app.close()
  }, { args: [collector.url, TIMEOUT_MS] })
  await collector.until(() => answer !== undefined)
  child.kill('SIGSTOP')
  answer()
  await new Promise((resolve) => setTimeout(resolve, LONGER_MS)) // its clock continues
  child.kill('SIGCONT')
  const stats = await child.said()
  t.equal(stats.spans.delivered, 1)
  t.equal(stats.exports.failed, 0)
  t.equal((await child.exit).code, 0)
})

// M09, L18
test('a blocked event loop is not taken for a slow collector', async (t) => {
  const collector = await startFakeCollector(t)
  let answer
  collector.script = () => ({ after: new Promise((resolve) => { answer = resolve }) })
  const folder = mkdtempSync(path.join(tmpdir(), 'light-trace-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const mark = (name) => writeFileSync(path.join(folder, name), '')
  const child = runInChild(t, async ({ Fastify, lightTrace, say }, url, folder, timeoutMs, longerMs) => {
    const { existsSync } = require('node:fs')
    const isThere = (name) => existsSync(`${folder}/${name}`)
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url, timeoutMs } })
    await app.inject('/')
    const flushed = app.lightTrace.flush({ timeoutMs: 20_000 })
    while (!isThere('sent')) await new Promise((resolve) => setImmediate(resolve))
    say('blocked')
    const until = performance.now() + longerMs
    while (performance.now() < until || !isThere('answered'));
    await flushed
    say(app.lightTrace.stats())
    await app.close()
  }, { args: [collector.url, folder, TIMEOUT_MS, LONGER_MS] })
  await collector.until(() => answer !== undefined)
  mark('sent')
  await child.said()
  answer()
  await collector.until(() => collector.delivered.size === 1)
  mark('answered')
  const { code, said } = await child.exit
  t.equal(code, 0)
  t.equal(said[1].spans.delivered, 1)
  t.equal(said[1].exports.failed, 0)
})

// T29
test('without a free file descriptor, spans wait for one', async (t) => {
  const collector = await startFakeCollector(t)
  const { code, said } = await runInChild(t, async ({ Fastify, lightTrace, say }, url) => {
    const fs = require('node:fs')
    const traced = async () => Fastify().register(lightTrace, { exporter: { url } })
    const first = await traced() // loads everything that the first span loads, because files cannot be opened later
    await first.inject('/')
    await first.close()
    const app = await traced()
    await app.ready()
    const held = []
    try {
      for (;;) held.push(fs.openSync('/dev/null'))
    } catch {}
    await app.inject('/')
    await new Promise((resolve) => setImmediate(resolve))
    await app.lightTrace.flush({ timeoutMs: 200 })
    const { lastError, spans } = app.lightTrace.stats()
    for (const fd of held) fs.closeSync(fd)
    say({ lastError, queued: spans.queued + spans.inFlight })
    await app.close()
    say(app.lightTrace.stats().spans.delivered)
  }, { args: [collector.url] }).exit
  t.equal(code, 0)
  t.equal(said[0].queued, 1)
  t.match(said[0].lastError, /EMFILE/)
  t.equal(said[1], 1)
})

test('without a free file descriptor, an untrusted caller is still traced', async (t) => {
  const collector = await startFakeCollector(t)
  const { code, said } = await runInChild(t, async ({ Fastify, lightTrace, say }, url) => {
    const fs = require('node:fs')
    const other = Fastify() // loads everything that a request needs
    await other.register(lightTrace, { exporter: { url } })
    await other.inject('/')
    await other.close()
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url }, trustIncoming: false })
    app.get('/', async () => 'ok')
    await app.ready()
    const held = []
    try {
      for (;;) held.push(fs.openSync('/dev/null'))
    } catch {}
    await app.inject({ url: '/', headers: { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' } })
    for (const fd of held) fs.closeSync(fd)
    await app.close()
    say(app.lightTrace.stats().spans)
  }, { args: [collector.url] }).exit
  t.equal(code, 0)
  t.match(said[0], { started: 1, ended: 1, delivered: 1, dropped: {} })
  t.same(said[0].dropped, {})
})

// T11
test('a stopped collector process costs one timeout, and its spans arrive when it continues', async (t) => {
  const collector = runInChild(t, ({ say }) => {
    const server = require('node:http').createServer((req, res) => req.resume().on('end', () => res.end()))
    server.listen(0, '127.0.0.1', () => say(server.address().port))
  })
  const url = `http://127.0.0.1:${await collector.said()}/v1/traces`
  const app = require('fastify')()
  t.teardown(() => app.close())
  await app.register(require('../..'), { exporter: { url, timeoutMs: 200 } })
  app.get('/', async () => 'ok')
  await app.inject('/')
  await app.lightTrace.flush()
  collector.kill('SIGSTOP')
  t.equal((await app.inject('/')).statusCode, 200)
  await new Promise((resolve) => setImmediate(resolve))
  await app.lightTrace.flush({ timeoutMs: 500 })
  t.match(app.lightTrace.stats().lastError, /ETIMEDOUT/)
  collector.kill('SIGCONT')
  await app.lightTrace.flush()
  const { delivered, retried, dropped } = app.lightTrace.stats().spans
  t.equal(delivered, 2)
  t.ok(retried > 0)
  t.strictSame(dropped, {})
  collector.kill('SIGKILL')
})

// A09
for (const flags of [['--frozen-intrinsics'], ['--disable-proto=throw'], ['--disable-proto=delete'], ['--max-old-space-size=64']]) {
  test(`light-trace works under ${flags}`, async (t) => {
    const collector = await startFakeCollector(t)
    const { code, stderr } = await runInChild(t, oneRequest, { args: [collector.url], nodeArgs: flags }).exit
    t.equal(code, 0, stderr)
    t.equal(collector.delivered.size, 1)
  })
}

test('light-trace works if Object.prototype is polluted', async (t) => {
  const collector = await startFakeCollector(t)
  const { code, said, stderr } = await runInChild(t, async ({ Fastify, lightTrace, say }, url) => {
    Object.assign(Object.prototype, {
      polluted: 'yes', timeoutMs: -1, compression: 'gzip', isHalf: true, maxSpans: 1, exporter: 'none', serviceName: 5, flushDelayMs: 'x'
    })
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url } })
    await app.inject('/')
    await app.close()
    say(app.lightTrace.stats().spans.delivered)
  }, { args: [collector.url] }).exit
  t.equal(code, 0, stderr)
  t.strictSame(said, [1])
  t.equal(collector.delivered.size, 1)
  t.notOk(collector.requests[0].headers['content-encoding'])
})

// In earlier versions Node itself would fail, because these are its own options.
for (const pollution of [{ path: '/nowhere' }, { localAddress: '203.0.113.1' }, { timeout: 5 }]) {
  test(`it connects if Object.prototype is polluted with ${Object.keys(pollution)}`, async (t) => {
    const collector = await startFakeCollector(t)
    const { code, said, stderr } = await runInChild(t, async ({ Fastify, lightTrace, say }, url, pollution) => {
      const app = Fastify()
      await app.register(lightTrace, { exporter: { url } })
      await app.inject('/')
      Object.assign(Object.prototype, JSON.parse(pollution))
      await app.close()
      say(app.lightTrace.stats().spans.delivered)
    }, { args: [collector.url, JSON.stringify(pollution)] }).exit
    t.equal(code, 0, stderr)
    t.strictSame(said, [1])
    t.equal(collector.delivered.size, 1)
  })
}

// A10: Node 25 and later restrict the network
test('without permission to connect, the app is served and it is logged once', async (t) => {
  if (Number(process.versions.node.split('.')[0]) < 25) return t.pass('this Node does not restrict the network')
  const { code, said, stderr } = await runInChild(t, async ({ Fastify, lightTrace, say }, url) => {
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url } })
    app.get('/', async () => 'ok')
    say((await app.inject('/')).statusCode)
    await app.lightTrace.flush()
    await app.inject('/')
    await app.lightTrace.flush()
    await app.close()
    say(app.lightTrace.stats().spans)
  }, { args: [await unusedUrl()], nodeArgs: ['--permission', '--allow-fs-read=*'] }).exit
  t.equal(code, 0, stderr)
  t.equal(said[0], 200)
  t.strictSame(said[1].dropped, { shutdown_deadline: 2 })
  t.equal(stderr.match(/LT_WARN_PERMISSION/g).length, 1)
})

test('if Error.prototype is frozen after the start, losses are still warnings', async (t) => {
  const child = runInChild(t, async ({ Fastify, lightTrace, say }) => {
    process.on('warning', ({ name, code, message }) => say({ name, code, message }))
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url: 'http://127.0.0.1:1' } })
    app.get('/', async () => 'ok')
    await app.ready()
    for (const { prototype } of [Error, TypeError, RangeError]) Object.freeze(prototype)
    say((await app.inject('/')).statusCode)
    await app.close()
  })
  const { code, said } = await child.exit
  t.equal(code, 0)
  t.match(said, [200, { name: 'LightTraceWarning', code: 'LT_WARN_LOSS', message: /ECONNREFUSED/ }])
})
