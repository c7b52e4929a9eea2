'use strict'

// Clocks and timers that are not what they seem.

const { test } = require('tap')
const { mock } = require('node:test')
const { startFakeCollector } = require('../support/fake-collector')
const { startExporter } = require('../support/chunk-writer')

// K03
test('fake timers neither stop the export nor see it', async (t) => {
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

Math.random = () => 0 // every wait is the shortest

// K06
test('a wall clock that is stepped while spans wait changes nothing', async (t) => {
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

// A turn of the event loop, while every timer is a fake one.
function turn () {
  return new Promise((resolve) => require('node:fs').stat(__filename, resolve))
}
