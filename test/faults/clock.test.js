'use strict'

// Clocks and timers that are replaced or changed.

const { test } = require('tap')
const { mock } = require('node:test')
const { startFakeCollector } = require('../support/fake-collector')
const { startExporter } = require('../support/chunk-writer')
const { startSink } = require('../support/otlp-sink')
const { runInChild } = require('../support/child')

// K03
test('fake timers do not affect the export', async (t) => {
  const collector = await startFakeCollector(t)
  collector.script = [{ status: 503 }, { status: 200 }]
  const { exporter, stats, write, identity } = startExporter(t, { url: collector.url, buffer: { flushDelayMs: 5 } })
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'setImmediate', 'Date'] })
  t.teardown(() => mock.timers.reset())
  write(3)
  while (stats.delivered < 3) await turn()
  write(5000, 400)
  await exporter.flush()
  t.equal(stats.delivered, 5003)
  t.equal(identity(), 0)
  await exporter.close()
})

test('fake timers installed before light-trace was loaded affect neither the export nor `close`', async (t) => {
  for (const isHanging of [false, true]) {
    const sink = await startSink(t)
    if (isHanging) sink.respond = () => new Promise(() => {})
    const { said, stderr } = await runInChild(t, async (child, url) => {
      require('node:test').mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'setImmediate'] })
      const app = child.Fastify()
      await app.register(child.lightTrace, { exporter: { url }, metrics: true, closeTimeoutMs: 500 })
      app.get('/', async () => 'x')
      await app.inject('/')
      await app.close()
      child.say(app.lightTrace.stats().spans.delivered)
    }, { args: [sink.url] }).exit
    t.same(said, [isHanging ? 0 : 1], stderr)
  }
})

Math.random = () => 0 // each wait is as short as possible

// K06
test('a step of the wall clock while spans wait changes nothing', async (t) => {
  const { now } = Date
  t.teardown(() => { Date.now = now })
  for (const step of [3_600_000, -3_600_000, NaN, 0]) {
    const collector = await startFakeCollector(t)
    collector.script = [{ status: 503 }, { hang: true }, { status: 200 }]
    const { exporter, stats, write } = startExporter(t, { url: collector.url, exporter: { timeoutMs: 200 } })
    write(3)
    const flushed = exporter.flush({ timeoutMs: 20_000 })
    await collector.untilRequests(1)
    Date.now = () => now() + step
    await flushed
    Date.now = now
    t.equal(stats.delivered, 3, `${step}`)
    t.equal(collector.requests.length, 3)
  }
})

// K01, K02: the clock anchor sees no difference between a step and an accumulated drift
test('a step of the wall clock changes no duration, and later spans have the new time', async (t) => {
  const sink = await startSink(t)
  for (const step of [3_600_000, -3_600_000]) {
    sink.spans.length = 0
    const { code, said, stderr } = await runInChild(t, async (child, url, step) => {
      // Replaces both clocks before light-trace is loaded and keeps references to them.
      const { now } = Date
      const monotonic = performance.now.bind(performance)
      let [offset, passed] = [0, 0]
      Date.now = () => now() + passed + offset
      performance.now = () => monotonic() + passed
      const app = child.Fastify()
      await app.register(child.lightTrace, { exporter: { url } })
      app.get('/', async () => {
        passed += 20
        offset = step
        passed += 20
      })
      app.get('/later', async () => {})
      await app.inject('/')
      passed += 1200 // clocks are compared once a second
      child.say(Date.now())
      await app.inject('/later')
      child.say(Date.now())
      await app.close()
    }, { args: [sink.url, step] }).exit
    t.equal(code, 0, stderr)
    const [during, later] = sink.spans
    const durationMs = Number(during.end - during.start) / 1e6
    t.ok(durationMs >= 40 && durationMs < 3_000_000, `${durationMs} ms`)
    isBetween(t, later.end, said)
  }
})

test('a span that the application ends with an earlier time does not delay the new time for later spans', async (t) => {
  const sink = await startSink(t)
  const { code, said, stderr } = await runInChild(t, async (child, url) => {
    const { now } = Date
    const monotonic = performance.now.bind(performance)
    let [offset, passed] = [0, 0]
    Date.now = () => now() + passed + offset
    performance.now = () => monotonic() + passed
    const app = child.Fastify()
    await app.register(child.lightTrace, { exporter: { url } })
    app.lightTrace.tracer.startSpan('ahead').end(now() + 3_600_000)
    offset = -3_600_000
    passed = 1200 // clocks are compared once a second
    child.say(Date.now())
    app.lightTrace.tracer.startSpan('later').end()
    child.say(Date.now())
    await app.close()
  }, { args: [sink.url] }).exit
  t.equal(code, 0, stderr)
  const { end } = sink.spans.find(({ name }) => name === 'later')
  isBetween(t, end, said)
})

// K04
test('an invalid wall clock throws nothing, and times are valid', async (t) => {
  const sink = await startSink(t)
  for (const nonsense of ['NaN', '0', '-1', '1e18', 'Infinity']) {
    sink.spans.length = 0
    const { code, stderr } = await runInChild(t, async (child, url, nonsense) => {
      Date.now = () => Number(nonsense)
      const app = child.Fastify()
      await app.register(child.lightTrace, { exporter: { url } })
      await app.inject('/')
      await app.close()
    }, { args: [sink.url, nonsense] }).exit
    t.equal(code, 0, stderr)
    t.equal(sink.spans.length, 1, nonsense)
    t.ok(sink.spans[0].end >= sink.spans[0].start)
    t.ok(sink.spans[0].end - sink.spans[0].start < 60_000_000_000n)
  }
})

/** Compares with the wall clock. The anchor may differ from it by DRIFT_MS. */
function isBetween (t, nanos, [from, to]) {
  const DRIFT_MS = 50
  const ms = Number(nanos / 1_000_000n)
  t.ok(ms >= from - DRIFT_MS && ms <= to + DRIFT_MS, `${from} ≤ ${ms} ≤ ${to}`)
}

// Waits for a turn of the event loop while all timers are fake.
function turn () {
  return new Promise((resolve) => require('node:fs').stat(__filename, resolve))
}
