'use strict'

// Metrics of the process and of V8. They are read when metrics are collected; nothing runs per request. Only the event loop delay
// needs a timer, and garbage collection an observer, both of which Node provides.
// https://opentelemetry.io/docs/specs/semconv/runtime/nodejs-metrics/ and .../v8js-metrics/

const { monitorEventLoopDelay, performance, PerformanceObserver, constants } = require('node:perf_hooks')
const { getHeapSpaceStatistics } = require('node:v8')
const { GC_DURATION } = require('./histograms.js')

const DELAY_RESOLUTION_MS = 10
const NANOS = 1e9

const GC_TYPES = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb'
}

// Properties of Node's histogram.
const DELAYS = { min: 'minimum', max: 'maximum', mean: 'mean', stddev: 'standard deviation' }
const PERCENTILES = [50, 90, 99]

/** Creates the instruments, and returns a function that stops them. */
function openRuntimeMetrics (meter) {
  const ends = [delay(meter), garbageCollection(meter)]
  eventLoop(meter)
  heap(meter)
  processUse(meter)
  return () => ends.forEach((end) => end())
}

function delay (meter) {
  const histogram = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })
  histogram.enable()
  const gaugeOf = (name, text, read) => {
    const options = { unit: 's', description: `Event loop ${text} delay.` }
    return { read, gauge: meter.createObservableGauge(`nodejs.eventloop.delay.${name}`, options) }
  }
  const gauges = [
    ...Object.entries(DELAYS).map(([name, text]) => gaugeOf(name, text, () => histogram[name])),
    ...PERCENTILES.map((percent) => gaugeOf(`p${percent}`, `${percent} percentile`, () => histogram.percentile(percent)))
  ]
  meter.addBatchObservableCallback((result) => {
    if (histogram.count === 0) return
    for (const { read, gauge } of gauges) {
      const value = read() / NANOS
      if (Number.isFinite(value)) result.observe(gauge, value)
    }
    histogram.reset()
  }, gauges.map(({ gauge }) => gauge))
  return () => histogram.disable()
}

function eventLoop (meter) {
  const utilization = meter.createObservableGauge('nodejs.eventloop.utilization', { unit: '1', description: 'Event loop utilization.' })
  const time = meter.createObservableCounter('nodejs.eventloop.time', { unit: 's', description: 'Cumulative duration of time the event loop has been in each state.' })
  let last = performance.eventLoopUtilization()
  meter.addBatchObservableCallback((result) => {
    const now = performance.eventLoopUtilization()
    result.observe(utilization, performance.eventLoopUtilization(now, last).utilization)
    result.observe(time, now.active / 1000, { 'nodejs.eventloop.state': 'active' })
    result.observe(time, now.idle / 1000, { 'nodejs.eventloop.state': 'idle' })
    last = now
  }, [utilization, time])
}

function garbageCollection (meter) {
  const duration = meter.createHistogram('v8js.gc.duration', {
    unit: 's', description: 'Garbage collection duration.', advice: { explicitBucketBoundaries: GC_DURATION }
  })
  /** @param {import('node:perf_hooks').PerformanceEntry & { detail?: { kind?: number } }} entry */
  const record = ({ detail, duration: ms }) => duration.record(ms / 1000, { 'v8js.gc.type': GC_TYPES[detail.kind] ?? 'major' })
  const observer = new PerformanceObserver((list) => list.getEntries().forEach(record))
  observer.observe({ entryTypes: ['gc'] })
  return () => {
    observer.takeRecords().forEach(record)
    observer.disconnect()
  }
}

function heap (meter) {
  const instrument = (name, description) => meter.createObservableUpDownCounter(name, { unit: 'By', valueType: 0, description })
  const used = instrument('v8js.memory.heap.used', 'Heap Memory size allocated.')
  const size = instrument('v8js.memory.heap.space.size', 'Total heap memory size pre-allocated.')
  const available = instrument('v8js.memory.heap.space.available_size', 'Heap space available size.')
  const physical = instrument('v8js.memory.heap.space.physical_size', 'Committed size of a heap space.')
  meter.addBatchObservableCallback((result) => {
    for (const space of getHeapSpaceStatistics()) {
      const attributes = { 'v8js.heap.space.name': space.space_name }
      result.observe(used, space.space_used_size, attributes)
      result.observe(size, space.space_size, attributes)
      result.observe(available, space.space_available_size, attributes)
      result.observe(physical, space.physical_space_size, attributes)
    }
  }, [used, size, available, physical])
}

function processUse (meter) {
  const active = meter.createObservableGauge('v8js.resource.active', { unit: '{resource}', valueType: 0, description: 'Resources that keep the event loop alive.' })
  active.addCallback((result) => {
    const counts = new Map()
    for (const type of process.getActiveResourcesInfo()) counts.set(type, (counts.get(type) ?? 0) + 1)
    for (const [type, count] of counts) result.observe(count, { 'v8js.resource.type': type })
  })
  const cpu = meter.createObservableCounter('process.cpu.time', { unit: 's', description: 'Total CPU seconds broken down by different states.' })
  cpu.addCallback((result) => {
    const { user, system } = process.cpuUsage()
    result.observe(user / 1e6, { 'cpu.mode': 'user' })
    result.observe(system / 1e6, { 'cpu.mode': 'system' })
  })
  const memory = meter.createObservableUpDownCounter('process.memory.usage', { unit: 'By', valueType: 0, description: 'The amount of physical memory in use.' })
  memory.addCallback((result) => result.observe(process.memoryUsage.rss()))
}

// Metrics of light-trace itself, read from the counters that it keeps anyway.
// https://opentelemetry.io/docs/specs/semconv/otel/sdk-metrics/

/** @param {Meter} meter of the API @param {() => object} snapshot returns what `app.lightTrace.stats()` returns */
function openSelfMetrics (meter, snapshot) {
  const counter = (name, description) => meter.createObservableCounter(name, { unit: '{span}', valueType: 0, description })
  const upDown = (name, description) => meter.createObservableUpDownCounter(name, { unit: '{span}', valueType: 0, description })
  const started = counter('otel.sdk.span.started', 'The number of created spans.')
  const live = upDown('otel.sdk.span.live', 'The number of created spans for which the end operation has not been called yet.')
  const size = upDown('otel.sdk.processor.span.queue.size', 'The number of spans in the queue.')
  const processed = counter('otel.sdk.processor.span.processed', 'The number of spans for which the processing has finished, either successful or failed.')
  const inflight = upDown('otel.sdk.exporter.span.inflight', 'The number of spans which were passed to the exporter, but that have not been exported yet.')
  const exported = counter('otel.sdk.exporter.span.exported', 'The number of spans for which the export has finished, either successful or failed.')

  meter.addBatchObservableCallback((result) => {
    const { spans } = snapshot()
    result.observe(started, spans.started)
    result.observe(live, spans.started - spans.ended)
    result.observe(size, spans.queued)
    result.observe(processed, spans.delivered + spans.rejected + spans.handedOver)
    result.observe(inflight, spans.inFlight)
    result.observe(exported, spans.delivered + spans.handedOver)
    if (spans.rejected > 0) result.observe(exported, spans.rejected, { 'error.type': 'rejected' })
    for (const [reason, count] of Object.entries({ ...spans.dropped, ...spans.thinned > 0 && { thinned: spans.thinned } })) result.observe(processed, count, { 'error.type': reason })
  }, [started, live, size, processed, inflight, exported])
}

module.exports = { openRuntimeMetrics, openSelfMetrics }
