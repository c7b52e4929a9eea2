'use strict'

// The cost of metrics: recording one request in its series, with and without an exemplar, and collecting two thousand series, as OTLP
// and as text. Also prints how much memory those series take.

const assert = require('node:assert')
const bench = require('./harness')
const { median } = require('../run/statistics')
const { route, peer } = require('./pipeline')
const { MetricRegistry } = require('../../lib/features/metrics/registry')
const { SERIES_MAX } = require('../../lib/features/metrics/series')
const { ServerMetrics } = require('../../lib/features/metrics/server-metrics')
const { exposition } = require('../../lib/features/metrics/prometheus')
const { MetricEncoder } = require('../../lib/features/metrics/encoder')
const { TraceContext, SAMPLED } = require('../../lib/context/trace-context')
const { Scope } = require('../../lib/span/recording-span')
const clock = require('../../lib/runtime/timers')

const scope = new Scope('light-trace', '0')
const settings = { temporality: 'cumulative', histograms: 'explicit', exemplars: 'trace_based', attributeLengthMax: 1024 }
const RUNS = 60
const SETTLE_MS = 100
const options = { attributes: null, buckets: null }

clock.anchor()
benchRequest('a request in its series, sampled', SAMPLED)
benchRequest('a request in its series, unsampled', 0)
benchCollection()

function newRegistry () {
  return new MetricRegistry(settings, { warn () {} }, () => undefined)
}

function benchRequest (name, flags) {
  const registry = newRegistry()
  const metrics = new ServerMetrics(registry, scope, options)
  const span = Object.assign(new TraceContext(), { route, peer, httpStatus: 200, errorType: '', start: 0, endedAt: 3, exemplarFlags: flags, t0: 1, s0: 1 })
  span.traceContext = span
  route.series = null
  bench(name, {
    check () {
      const before = metrics.duration.list[0]?.count ?? 0
      metrics.ended(span)
      assert.strictEqual(metrics.duration.list[0].count, before + 1)
      assert.strictEqual(metrics.duration.list[0].exemplars !== null, flags === SAMPLED)
    },
    run (times) {
      for (let i = 0; i < times; i++) metrics.ended(span)
    },
    bytesMax: 8
  })
}

async function benchCollection () {
  const before = await memory()
  const registry = newRegistry()
  const { duration } = new ServerMetrics(registry, scope, options)
  for (let i = 0; i < SERIES_MAX - 1; i++) {
    const series = duration.of(['http.request.method', 'GET', 'url.scheme', 'http', 'http.response.status_code', 200, 'http.route', `/items/${i}`, 'network.protocol.version', '1.1'])
    series.record(i / 1000)
  }
  const empty = await memory()
  const encoder = new MetricEncoder()
  const collect = () => [...encoder.encode(registry.scopes(), clock.now(), 0)]
  collect()
  const encoded = await memory()
  assert.strictEqual(collect().reduce((sum, step) => sum + (step?.points ?? 0), 0), SERIES_MAX - 1)
  report(`a collection of ${SERIES_MAX} series as OTLP`, () => encoder.encode(registry.scopes(), clock.now(), 0))
  report(`${SERIES_MAX} series as OpenMetrics`, () => exposition(registry.scopes(), {}, { isOpenMetrics: true, ownScope: 'light-trace' }))
  console.log(`memory of ${SERIES_MAX} series: ${kib(empty - before)} KiB, collected once ${kib(encoded - before)} KiB`)
}

/** Too long for the harness, which makes tens of thousands of calls. Prints the medians of the total and of the longest step. */
function report (name, steps) {
  const runs = Array.from({ length: RUNS }, () => timed(steps()))
  const total = median(runs.map((run) => run.total))
  const longest = median(runs.map((run) => run.longest))
  console.log(`${name.padEnd(52)} ${total.toFixed(2).padStart(8)} ms, the longest step ${longest.toFixed(2)} ms`)
}

function timed (steps) {
  let total = 0
  let longest = 0
  for (;;) {
    const start = performance.now()
    const { done } = steps.next()
    const step = performance.now() - start
    total += step
    longest = Math.max(longest, step)
    if (done) return { total, longest }
  }
}

/** Memory use after Buffers have been freed, which takes V8 a moment. */
async function memory () {
  for (let i = 0; i < 2; i++) {
    globalThis.gc()
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

function kib (bytes) {
  return Math.round(bytes / 1024)
}
