'use strict'

// The collector of light-trace/testing. If scripts/without.js has removed that feature or one that it needs, a collector that gets the same
// spans from a real exporter.

const { FEATURES } = require('../../lib/features')
const { processState } = require('../../lib/runtime/process-state')
const { now, nanosOf } = require('../../lib/runtime/timers')
const { startSink } = require('./otlp-sink')

const WAIT_MS = 5_000

const testing = FEATURES.testing?.load() // not required by its path, or all tests would depend on that feature

/**
 * @param {object} [t] a tap test. Without it, nothing waits for the collector or ends it
 * @returns {Promise<{ collector, options: object }>} options: of light-trace, which send the spans to the collector
 */
async function collectorFor (t, { timeoutMs = WAIT_MS } = {}) {
  if (testing === undefined) {
    const sink = await startSink(t)
    if (t === undefined) sink.unref()
    return { collector: new SentSpans(sink, timeoutMs), options: { exporter: { url: sink.url } } }
  }
  const collector = testing.createCollector({ timeoutMs })
  return { collector, options: { spanProcessors: [collector] } }
}

class SentSpans {
  #sink
  #timeoutMs
  #since = 0

  constructor (sink, timeoutMs) {
    this.#sink = sink
    this.#timeoutMs = timeoutMs
  }

  async spans () {
    const tracers = processState.openApps.all()
    for (const end = now() + this.#timeoutMs; tracers.some(isRunning) && now() < end;) await new Promise((resolve) => setImmediate(resolve))
    await Promise.all(tracers.map((tracer) => tracer.flush()))
    return this.#sink.spans.map(collected).filter(({ startTime }) => startTime >= this.#since).sort((a, b) => a.startTime - b.startTime)
  }

  async tree () {
    const spans = await this.spans()
    const ids = new Set(spans.map(({ spanId }) => spanId))
    const draw = (children, indent) => children.flatMap((span) => [indent + label(span), ...draw(spans.filter((child) => child.parentSpanId === span.spanId), `${indent}  `)])
    return draw(spans.filter(({ parentSpanId }) => !ids.has(parentSpanId)), '').join('\n')
  }

  reset () { this.#since = milliseconds(nanosOf(now())) }
}

function isRunning ({ stats: { started, ended } }) { return started > ended }

function collected ({ start, end, flags, parentSpanId, schemaUrl, events, ...span }) {
  return {
    ...span,
    parentSpanId: parentSpanId || undefined,
    traceFlags: flags & 0xff,
    events: events.map((event) => ({ ...event, time: milliseconds(event.time) })),
    startTime: milliseconds(start),
    endTime: milliseconds(end),
    duration: Math.round(milliseconds(end - start) * 1000) / 1000 // each time is accurate to 256 ns
  }
}

function label ({ kind, name, status: { code }, attributes }) {
  const type = attributes['error.type']
  return `${kind} ${name}${code === 'UNSET' ? '' : ` ${code}`}${code === 'ERROR' && type !== undefined ? ` error.type=${type}` : ''}`
}

const milliseconds = (nanoseconds) => Number(nanoseconds) / 1e6

module.exports = { collectorFor, testing }
