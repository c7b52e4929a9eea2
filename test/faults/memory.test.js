'use strict'

// Memory is bounded during a fault, released after it, and none of the app's memory is kept alive. LIGHT_TRACE_LONG=1 (npm run test:suite
// -- faults) runs the full lengths.

const { test, setTimeout } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { startFakeCollector } = require('../support/fake-collector')
const { startSink } = require('../support/otlp-sink')
const { startExporter } = require('../support/chunk-writer')
const { runInChild } = require('../support/child')
const { openClients } = require('../support/pipelined-clients')
const { unusedUrl } = require('../support/scenarios')

const IS_LONG = process.env.LIGHT_TRACE_LONG === '1'
setTimeout(IS_LONG ? 600_000 : 240_000) // it needs 20 s of CPU, which may take more than a minute on a busy machine
const ROUNDS = IS_LONG ? 1000 : 100
const KEEP_ALIVE_REQUESTS = IS_LONG ? 50_000 : 10_000
const ABORTED_REQUESTS = IS_LONG ? 5000 : 500
const DISTINCT = IS_LONG ? 100_000 : 10_000
const OUTAGE_SPANS = IS_LONG ? 10_000_000 : 1_000_000

// An app in a separate process that reports its heap.
async function observedApp ({ Fastify, lightTrace, say, root }, url, options = {}) {
  const { bytesInUse } = require(`${root}/test/support/bytes-in-use`)
  const app = Fastify({ forceCloseConnections: true })
  await app.register(lightTrace, { exporter: { url }, ...options })
  const watched = []
  app.addHook('onRequest', async (request) => {
    if (watched.length < 20_000) watched.push(new WeakRef(request), new WeakRef(request.raw), new WeakRef(request.trace))
  })
  app.get('/', async (request) => {
    request.trace.set('user', { name: 'x'.repeat(100) })
    return 'ok'
  })
  app.get('/late', (request, reply) => { reply.raw.once('close', () => reply.send('too late')) })
  app.get('/never', () => {})
  app.get('/state', async () => {
    return {
      heap: await bytesInUse(),
      alive: watched.filter((ref) => ref.deref() !== undefined).length,
      watched: watched.length,
      timers: process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length,
      stats: app.lightTrace.stats()
    }
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  say(app.server.address().port)
}

async function startObservedApp (t, args) {
  const child = runInChild(t, observedApp, { args, killAfterMs: 240_000 })
  const port = await child.said()
  t.teardown(() => child.kill('SIGKILL'))
  return { port, state: async () => (await fetch(`http://127.0.0.1:${port}/state`)).json() }
}

function get (path, headers = '') {
  return `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${headers}\r\n`
}

// L16
test('apps that are registered, used and closed one after the other leave nothing behind', async (t) => {
  const collector = await startFakeCollector(t)
  const { code, said, stderr } = await runInChild(t, async ({ Fastify, lightTrace, say, root }, url, rounds) => {
    const { bytesInUse } = require(`${root}/test/support/bytes-in-use`)
    const round = async () => {
      const app = Fastify()
      await app.register(lightTrace, { exporter: { url } })
      await app.inject('/')
      await app.close()
      return app.lightTrace.stats().spans.delivered
    }
    const state = async () => ({
      heap: await bytesInUse(),
      listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0),
      resources: process.getActiveResourcesInfo().length
    })
    for (let i = 0; i < rounds / 5; i++) await round()
    const before = await state()
    let delivered = 0
    for (let i = 0; i < rounds; i++) delivered += await round()
    say({ before, after: await state(), delivered })
  }, { args: [collector.url, ROUNDS], killAfterMs: 120_000 }).exit
  t.equal(code, 0)
  t.equal(stderr, '')
  const [{ before, after, delivered }] = said
  t.equal(delivered, ROUNDS)
  t.equal(after.listeners, before.listeners)
  t.ok(after.resources <= before.resources, `${before.resources} → ${after.resources} resources`)
  t.ok(after.heap - before.heap < 2_000_000, `${before.heap} → ${after.heap} bytes`)
})

test('kept connections and aborted requests leave a flat heap, and no request is kept', async (t) => {
  const collector = await startFakeCollector(t)
  const { port, state } = await startObservedApp(t, [collector.url])
  const clients = await openClients(port, 10)
  t.teardown(() => clients.close())
  const abort = async (count) => {
    for (let i = 0; i < count; i++) await clients.abort(get('/late'))
  }
  await clients.send(3000, () => get('/'))
  await abort(50)
  const before = await state()
  await clients.send(KEEP_ALIVE_REQUESTS, () => get('/'))
  await abort(ABORTED_REQUESTS)
  let after = await state() // the keep-alive connections are still open
  t.ok(after.watched > 3000)
  while (after.alive > 3 * 12) after = await state() // each connection may keep its last request
  t.ok(after.heap - before.heap < 3_000_000, `${before.heap} → ${after.heap} bytes`)
  t.equal(after.stats.spans.ended >= KEEP_ALIVE_REQUESTS + ABORTED_REQUESTS, true)
})

// M06, M07
test('requests that never end have no timer each, and are released with their connection', async (t) => {
  const collector = await startFakeCollector(t)
  const { port, state } = await startObservedApp(t, [collector.url])
  const before = await state()
  const clients = await openClients(port, 200)
  for (let i = 0; i < 5; i++) clients.send(200, () => get('/never'))
  let during
  do during = await state()
  while (during.stats.spans.started - during.stats.spans.ended < 200)
  t.ok(during.timers <= before.timers + 2, `${before.timers} → ${during.timers} timers`)
  clients.close()
  let after = await state()
  // All requests except the one that asks end. Their connections close one after the other.
  while (after.stats.spans.started - after.stats.spans.ended > 1 || after.alive > 12) after = await state()
})

// M11
test('different paths, user agents, hosts and methods fill no cache without bound', async (t) => {
  const collector = await startFakeCollector(t)
  const { port, state } = await startObservedApp(t, [collector.url])
  const clients = await openClients(port, 10)
  t.teardown(() => clients.close())
  const distinct = (number) => `GET /${number}/${'x'.repeat(50)} HTTP/1.1\r\nhost: host-${number}.example\r\nuser-agent: agent/${number} ${'y'.repeat(100)}\r\nx-forwarded-for: ${number}\r\n` +
    `traceparent: 00-${number.toString(16).padStart(32, '1')}-${'1'.repeat(16)}-01\r\ntracestate: k${number}=v\r\nbaggage: b${number}=1\r\n\r\n`
  await clients.send(3000, (number) => distinct(10_000_000 + number))
  const before = await state()
  await clients.send(DISTINCT, distinct)
  const after = await state()
  t.ok(after.heap - before.heap < 3_000_000, `${before.heap} → ${after.heap} bytes`)
})

// M01
test('an outage of an hour uses the memory of the buffer, and no more', async (t) => {
  const { code, said } = await runInChild(t, async ({ say, root }, url, spans) => {
    const { Exporter } = require(`${root}/lib/export/exporter`)
    const { Stats } = require(`${root}/lib/export/pipeline`)
    const stats = new Stats()
    const noise = require('node:crypto').randomBytes(1024 * 1024)
    const maxBytes = 16 * 1024 * 1024
    const exporter = new Exporter({
      settings: { exporter: { url, headers: {}, timeoutMs: 10_000 }, buffer: { maxBytes, flushDelayMs: 1000 }, closeTimeoutMs: 1000 },
      prefix: { head: () => Buffer.alloc(100) },
      stats,
      report: { sharing () { return this }, warn () {}, recovered () {} }
    })
    global.gc()
    const before = process.memoryUsage().rss
    let most = 0
    let written = 0
    while (written < spans) {
      for (let i = 0; i < 2000; i++) {
        stats.accepted++
        const chunk = exporter.reserve(400)
        if (chunk === null) continue
        noise.copy(chunk.bytes, chunk.length, written * 389 % 1_000_000, written * 389 % 1_000_000 + 400)
        exporter.commit(chunk, chunk.length + 400)
        written++
      }
      if (exporter.bufferBytes > maxBytes) say({ over: exporter.bufferBytes })
      most = Math.max(most, process.memoryUsage().rss)
      await new Promise((resolve) => setImmediate(resolve))
    }
    const dropped = stats.dropped.queue_full
    say({ growth: most - before, identity: stats.accepted - dropped - exporter.queued - exporter.inFlight, dropped, failed: stats.exportsFailed })
    await exporter.close()
  }, { args: [await unusedUrl(), OUTAGE_SPANS], nodeArgs: ['--expose-gc'], killAfterMs: 240_000 }).exit
  t.equal(code, 0)
  t.equal(said.length, 1)
  const [{ growth, identity, dropped, failed }] = said
  t.equal(identity, 0)
  t.ok(dropped > 0.9 * OUTAGE_SPANS)
  t.ok(growth < (16 + 40) * 1024 * 1024, `${Math.round(growth / 1024 / 1024)} MiB over 16 of buffer`)
  t.ok(failed < 1000, `${failed} attempts`)
})

// M08
test('a burst in one turn sends nothing in that turn and stays within its limit', async (t) => {
  const sink = await startSink(t)
  const maxBytes = 8 * 1024 * 1024
  const { exporter, stats, write, identity } = startExporter(t, { url: sink.url, buffer: { maxBytes, flushDelayMs: 1000 } })
  write(200_000, 350)
  t.equal(exporter.inFlight, 0)
  t.equal(stats.exportsOk + stats.exportsFailed, 0)
  t.ok(exporter.bufferBytes <= maxBytes)
  t.equal(identity(), 0)
  t.ok(stats.dropped.queue_full > 100_000)
  await exporter.flush({ timeoutMs: 50_000 }) // the sink decodes all of them, in this process
  t.equal(identity(), 0)
  t.equal(stats.delivered, sink.spans.length)
})

// M10
test('without memory, spans are dropped and counted, and later spans are not affected', async (t) => {
  const sink = await startSink(t)
  const { exporter, stats, write, identity } = startExporter(t, { url: sink.url })
  const { allocUnsafeSlow } = Buffer
  Buffer.allocUnsafeSlow = () => { throw new RangeError('Array buffer allocation failed') }
  t.teardown(() => { Buffer.allocUnsafeSlow = allocUnsafeSlow })
  write(3)
  Buffer.allocUnsafeSlow = allocUnsafeSlow
  write(2)
  await exporter.flush()
  t.equal(stats.delivered, 2)
  t.strictSame({ ...stats.dropped }, { no_memory: 3 })
  t.equal(identity(), 0)
})

test('memory used during an outage is released after it', async (t) => {
  const collector = await startFakeCollector(t)
  await collector.down()
  const { exporter, write } = startExporter(t, { url: collector.url, buffer: { maxBytes: 8 * 1024 * 1024, flushDelayMs: 20 } })
  write(15_000, 400)
  t.ok(exporter.bufferBytes > 5_000_000)
  await collector.up()
  await exporter.flush()
  await exporter.flush()
  write(1)
  await collector.until(() => exporter.queued + exporter.inFlight === 0)
  t.ok(exporter.bufferBytes <= 2.5 * 1024 * 1024, `${exporter.bufferBytes} bytes`)
})

// Decision D9 (docs/decisions.md)
test('above half of the buffer, waiting spans are compressed, and arrive unchanged', async (t) => {
  const collector = await startFakeCollector(t)
  await collector.down()
  const maxBytes = 2 * 1024 * 1024
  const { exporter, stats, write, identity } = startExporter(t, { url: collector.url, buffer: { maxBytes, flushDelayMs: 20 } })
  // 8 MiB of repetitive spans, like real ones, in a quarter of that.
  let written = 0
  while (written < 20_000) {
    write(20, 410, true)
    written += 20
    await new Promise((resolve) => setImmediate(resolve))
    await collector.until(() => exporter.bufferBytes <= 0.8 * maxBytes || stats.dropped.queue_full !== undefined)
    if (stats.dropped.queue_full !== undefined) break
  }
  t.equal(stats.dropped.queue_full, undefined)
  t.equal(exporter.queued, 20_000)
  t.ok(exporter.bufferBytes <= maxBytes)
  await collector.up()
  await exporter.flush({ timeoutMs: 20_000 })
  await collector.until(() => exporter.queued + exporter.inFlight === 0) // an attempt from before the return may have failed and ended the flush
  t.equal(identity(), 0)
  t.equal(collector.delivered.size, 20_000)
  t.strictSame(collector.duplicates, [])
  t.ok(collector.requests.some(({ headers }) => headers['content-encoding'] === 'gzip'))
})

test('a collector without gzip still gets spans that were compressed', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = ({ headers }) => ({ status: headers['content-encoding'] === 'gzip' ? 415 : 200 })
  await collector.down()
  const maxBytes = 2 * 1024 * 1024
  const { exporter, stats, write, identity } = startExporter(t, { url: collector.url, buffer: { maxBytes, flushDelayMs: 20 } })
  write(4400, 410, true)
  await collector.until(() => exporter.bufferBytes <= maxBytes / 2) // some of it is compressed by then
  await collector.up()
  await exporter.flush({ timeoutMs: 20_000 })
  await collector.until(() => exporter.queued + exporter.inFlight === 0) // an attempt from before the return may have failed and ended the flush
  t.equal(identity(), 0)
  t.ok(collector.requests.some(({ status }) => status === 415))
  t.strictSame({ ...stats.dropped }, {})
  t.equal(collector.delivered.size, 4400)
})

// M02, M04, M05
test('a span with too much data stays within its limits', async (t) => {
  const sink = await startSink(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: sink.url } })
  app.get('/', async ({ trace: { span } }) => {
    span.setAttribute('long', 'x'.repeat(100_000_000))
    for (let i = 0; i < 1_000_000; i++) span.setAttribute(`key ${i}`, i)
    for (let i = 0; i < 100_000; i++) span.addEvent('event')
    return 'ok'
  })
  await app.inject('/')
  const [span] = await sink.waitFor(1)
  t.equal(span.attributes.long.length, 16_384)
  t.ok(Object.keys(span.attributes).length <= 128)
  t.ok(span.droppedAttributesCount >= 999_800)
  t.equal(span.events.length, 128)
  t.equal(span.droppedEventsCount, 100_000 - 128)
})
