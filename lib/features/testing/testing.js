'use strict'

// `light-trace/testing`: an in-memory collector for tests.
//
//   const collector = createCollector()
//   await app.register(lightTrace, { spanProcessors: [collector] })
//   ...
//   t.equal(await collector.tree(), 'SERVER GET /users/:id')
//
// A request's span ends when its response is closed, which may be after the client has received it: `spans`, `tree` and `check`
// wait until every started span has ended. testing.d.ts documents the methods.

const { SAMPLED } = require('../../context/trace-context.js')
const { runUntraced } = require('../jobs.js')
const { checkSpans, readBudget } = require('./budget.js')
const { settleWithin } = require('../../export/exporter.js')
const { drawTree, spanLabel, kindName, statusName } = require('../console.js')
const { setImmediate } = require('../../runtime/timers.js')

// Long enough for a slow machine, short enough to fail a test before its runner does.
const WAIT_MS = 5000
const CLOSE_TURNS = 8

class Collector {
  #waitMs
  #spans = new Map() // span -> a copy from its end, or null while it runs
  #running = 0
  #waiting = []
  #metrics = null // reads the application's metrics
  #logs = []

  wantsCodeLocation = true // turns on `codeLocation` in its application

  constructor (waitMs) {
    this.#waitMs = waitMs
  }

  // The methods of the SDK's SpanProcessor, so that a collector works with an SDK's provider too.

  onStart (span) {
    if (this.#spans.has(span)) return // the collector is in two lists of processors
    this.#spans.set(span, null)
    this.#running++
  }

  onEnd (span) {
    if (this.#spans.get(span) !== null) return // it started before reset()
    const ended = readable(span)
    // It was recorded only for a sampler or `keep`, and is not exported.
    if ((ended.traceFlags & SAMPLED) === 0) this.#spans.delete(span)
    else this.#spans.set(span, ended)
    if (--this.#running === 0) this.#wake()
  }

  async forceFlush () {}
  async shutdown () {}

  // Called by an application with `metrics` on, which then exports no metrics unless it has an exporter in code.
  useMetrics (read) { this.#metrics = read }

  async metrics () {
    if (this.#metrics === null) return []
    await this.#settled()
    // A response is closed some turns after the client has received it.
    for (let turn = 0; turn < CLOSE_TURNS; turn++) await new Promise((resolve) => setImmediate(resolve))
    return this.#metrics()
  }

  // Called by an application that exports its log lines.
  onLog (record) { this.#logs.push(record) }

  async logs () {
    await this.#settled()
    return [...this.#logs]
  }

  async spans () {
    await this.#settled()
    return [...this.#spans.values()].filter((ended) => ended !== null)
  }

  async tree () {
    return drawTree(await this.#all(), ({ kind, name, status, attributes, running }) => {
      return spanLabel({ kind, name, status: status.code, errorType: attributes['error.type'] }) + (running === true ? ' (running)' : '')
    })
  }

  async check (budget) {
    const wanted = readBudget(budget)
    checkSpans(await this.#all(), wanted)
  }

  // All spans, with those still running after the wait.
  async #all () {
    await this.#settled()
    return Array.from(this.#spans, ([span, ended]) => ended ?? { ...readable(span), running: true })
  }

  reset () {
    this.#spans.clear()
    this.#running = 0
    this.#logs = []
    this.#wake()
  }

  async #settled () {
    if (this.#running > 0) await settleWithin(() => new Promise((resolve) => this.#waiting.push(resolve)), this.#waitMs)
  }

  #wake () {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

/** A ReadableSpan, ours or of either SDK version, as a plain object that compares and prints well. */
function readable (span) {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext()
  const { name: scopeName, version: scopeVersion } = span.instrumentationScope ?? span.instrumentationLibrary
  return {
    name: span.name,
    kind: kindName(span.kind),
    traceId,
    spanId,
    parentSpanId: span.parentSpanContext?.spanId ?? span.parentSpanId,
    traceFlags,
    traceState: traceState?.serialize() ?? '',
    attributes: { ...span.attributes },
    status: { code: statusName(span.status.code), message: span.status.message ?? '' },
    events: span.events.map((event) => ({ name: event.name, time: milliseconds(event.time), ...attributesOf(event) })),
    links: span.links.map((link) => ({ traceId: link.context.traceId, spanId: link.context.spanId, ...attributesOf(link) })),
    resource: { ...span.resource.attributes },
    scope: { name: scopeName, version: scopeVersion ?? '' },
    startTime: milliseconds(span.startTime),
    endTime: milliseconds(span.endTime),
    duration: milliseconds(span.duration),
    droppedAttributesCount: span.droppedAttributesCount,
    droppedEventsCount: span.droppedEventsCount,
    droppedLinksCount: span.droppedLinksCount
  }
}

const attributesOf = ({ attributes, droppedAttributesCount }) => ({ attributes: { ...attributes }, droppedAttributesCount: droppedAttributesCount ?? 0 })
const milliseconds = ([seconds, nanoseconds]) => seconds * 1000 + nanoseconds / 1e6

function createCollector ({ timeoutMs = WAIT_MS } = {}) {
  return new Collector(timeoutMs)
}

function withRequest (values, fn) {
  return runUntraced(fn, { ...values })
}

module.exports = { createCollector, withRequest }
