'use strict'

// A collector process goes away and comes back while spans are written faster than the buffer allows. Its return is noticed within a
// second, and only the outage itself loses spans. LIGHT_TRACE_LONG=1 (npm run test:suite -- faults) runs an outage of 30 s and fifty
// restarts. LIGHT_TRACE_OUTAGE_S=300 runs an outage of that length instead.

const { test } = require('tap')
const { monitorEventLoopDelay } = require('node:perf_hooks')
const { startExporter, idOf } = require('../support/chunk-writer')
const { CollectorProcess } = require('../support/collector-process')
const { load } = require('../support/steady-load')

const IS_LONG = process.env.LIGHT_TRACE_LONG === '1'
const SPAN_BYTES = 400

// Makes each wait as long as possible.
Math.random = () => 0.999

// The documented limit. The test adds the time for which a busy machine delays this process's timers.
const NOTICED_WITHIN_MS = 1000

function lostIds (subject, collector) {
  const lost = []
  for (let n = 1; n <= subject.stats.accepted; n++) if (!collector.ids.has(idOf(n))) lost.push(n)
  return lost
}

async function outage (t, { seconds, perSecond, maxBytes, how, loadSeconds = 1 }) {
  t.setTimeout((seconds + 60) * 1000)
  const collector = new CollectorProcess(t)
  await collector.up()
  const subject = startExporter(t, { url: collector.url, buffer: { maxBytes, flushDelayMs: 50 }, exporter: { timeoutMs: how?.hang ? 500 : 10_000 } })
  const { write, stats, identity } = subject
  await load(write, perSecond, 300, SPAN_BYTES)
  await subject.exporter.flush()
  await collector.kill()
  collector.noticedAfterMs.length = 0
  if (how !== undefined) await collector.up(how)
  await load(write, perSecond, seconds * 1000, SPAN_BYTES)
  await collector.kill()
  collector.noticedAfterMs.length = 0
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  await collector.up()
  const lastBefore = stats.accepted
  await load(write, perSecond, loadSeconds * 1000, SPAN_BYTES)
  delay.disable()
  do await subject.exporter.flush({ timeoutMs: 20_000 }); while (subject.exporter.queued + subject.exporter.inFlight > 0)
  await collector.heard()
  t.equal(identity(), 0)
  const stalledMs = delay.max / 1e6
  const [noticedAfterMs] = collector.noticedAfterMs
  t.ok(noticedAfterMs <= NOTICED_WITHIN_MS + stalledMs, `noticed after ${noticedAfterMs} ms, the loop was blocked for ${stalledMs} ms`)
  const lost = lostIds(subject, collector)
  t.equal(lost.length, stats.dropped.queue_full ?? 0, 'each loss is counted')
  // The buffer has to take all spans until the return is noticed, while the collector on a busy machine answers, and while this process
  // itself is stalled. Spans that are being sent, at most half of the buffer, keep their space until they are answered.
  const waitedMs = Math.min(noticedAfterMs + collector.answeringMs + stalledMs, loadSeconds * 1000)
  const beyondBuffer = Math.max(0, perSecond * waitedMs / 1000 - maxBytes / 2 / SPAN_BYTES)
  const lostAfter = lost.filter((n) => n > lastBefore).length
  t.ok(lostAfter <= beyondBuffer, `${lostAfter} spans were lost while the collector was up, ${Math.ceil(beyondBuffer)} had no space; it answered for ${Math.round(collector.answeringMs)} ms`)
  return lost
}

const KINDS = [['is gone', undefined], ['answers 503', { status: 503 }], ['hangs', { hang: true }]]

// T03, T04, T06, T14
const LONGEST_S = Number(process.env.LIGHT_TRACE_OUTAGE_S ?? 30)

for (const seconds of IS_LONG ? [3, LONGEST_S] : [1.5]) {
  // Each kind runs with a short outage. The longest outage is the same for all kinds and takes its time, so only one kind runs with it.
  for (const [what, how] of IS_LONG && seconds === 3 ? KINDS : KINDS.slice(0, seconds === LONGEST_S ? 1 : 2)) {
    test(`a collector that ${what} for ${seconds} s, with a full buffer, loses only spans of the outage`, async (t) => {
      // The buffer is full before the outage ends, but large enough for the second in which the return may go unnoticed.
      const lost = await outage(t, { seconds, perSecond: 2600, maxBytes: 1024 * 1024, how })
      t.ok(lost.length > 0, 'the buffer was full')
    })
  }
}

// T02
test('the same with a nearly empty buffer loses nothing', async (t) => {
  const lost = await outage(t, { seconds: IS_LONG ? 30 : 2, perSecond: 20, maxBytes: 4 * 1024 * 1024 })
  t.same(lost, [])
})

const RESTARTS = IS_LONG ? 50 : 3

// T05
test(`a collector that restarts ${RESTARTS} times: with 256 KiB no span is lost that ended while it was up`, async (t) => {
  t.setTimeout(300_000)
  const collector = new CollectorProcess(t)
  await collector.up()
  const { write, stats, identity, exporter } = startExporter(t, { url: collector.url, buffer: { maxBytes: 256 * 1024, flushDelayMs: 50 } })
  const up = [] // [from, to] of span numbers
  for (let i = 0; i < RESTARTS; i++) {
    const from = stats.accepted + 1
    await load(write, 800, 700, SPAN_BYTES)
    // All spans so far are delivered here, so that the restart loses only later ones. A flush may end early because of an attempt from
    // before `up`.
    do await exporter.flush(); while (exporter.queued + exporter.inFlight > 0)
    up.push([from, stats.accepted])
    await collector.kill()
    await load(write, 800, 400 + 200 * (i % 4), SPAN_BYTES) // the buffer lasts for about 800 ms
    await collector.up()
  }
  do await exporter.flush({ timeoutMs: 20_000 }); while (exporter.queued + exporter.inFlight > 0)
  await collector.heard()
  t.equal(identity(), 0)
  const lostWhileUp = up.map(([from, to]) => {
    let lost = 0
    for (let n = from; n <= to; n++) if (!collector.ids.has(idOf(n))) lost++
    return lost
  })
  t.same(lostWhileUp, up.map(() => 0))
  t.equal(stats.accepted - collector.ids.size, stats.dropped.queue_full ?? 0)
})
