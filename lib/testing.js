'use strict'

// `light-trace/testing`: an in-memory collector for tests.
//
//   const collector = createCollector()
//   await app.register(lightTrace, { spanProcessors: [collector] })
//   …
//   t.equal(await collector.tree(), 'SERVER GET /users/:id')
//
// A span ends when its response is closed, which may be after the client has it; so `spans` and `tree`
// wait until every span that started has ended.

const { SAMPLED } = require('./context/trace-context')
const { RequestContext, ownContextManager } = require('./context/request-context')
const { INVALID_SPAN } = require('./span/non-recording-span')
const { drawTree, spanLabel, kindName, statusName } = require('./export/sinks/tree')
const { setTimeout, clearTimeout, setImmediate } = require('./runtime/timers')

// Long enough for a slow machine, short enough to fail a test before its runner does.
const WAIT_MS = 5000
const CLOSE_TURNS = 8

class Collector {
  #waitMs
  #records = []
  #open = new Map() // span → its record
  #waiting = []
  #metrics = null // asks the application for its metrics

  constructor (waitMs) {
    this.#waitMs = waitMs
  }

  // ---- the SDK's SpanProcessor, so that it can be given to a provider of the SDK too

  onStart (span) {
    const record = { span, ended: null }
    this.#records.push(record)
    this.#open.set(span, record)
  }

  onEnd (span) {
    const record = this.#open.get(span)
    if (record === undefined) return // it started before reset()
    record.ended = readable(span)
    this.#open.delete(span)
    // Recorded, because a sampler or `keep` wanted to see it, but nothing that an exporter is given.
    if ((record.ended.traceFlags & SAMPLED) === 0) this.#records.splice(this.#records.indexOf(record), 1)
    if (this.#open.size === 0) this.#wake()
  }

  async forceFlush () {}
  async shutdown () {}

  // ---- of an application with `metrics` on, which sends them nowhere else then

  useMetrics (read) {
    this.#metrics = read
  }

  // ---- for tests

  /**
   * The metrics that were recorded since the application is ready, as plain objects, once no span is running; none
   * where `metrics` is off.
   */
  async metrics () {
    if (this.#metrics === null) return []
    await this.#settled()
    // A response that the client has is closed some turns later.
    for (let turn = 0; turn < CLOSE_TURNS; turn++) await new Promise((resolve) => setImmediate(resolve))
    return this.#metrics()
  }

  /**
   * The ended spans as plain objects, in the order in which they started, once no span is running; after
   * `timeoutMs` those that have ended by then.
   */
  async spans () {
    await this.#settled()
    return this.#records.filter(({ ended }) => ended !== null).map(({ ended }) => ended)
  }

  /**
   * One readable picture: a line for each span, children two spaces under their parent, in start order.
   * A span that is still running after `timeoutMs` is drawn with `(running)`.
   */
  async tree () {
    await this.#settled()
    const records = this.#records.map(({ span, ended }) => ended ?? { ...readable(span), running: true })
    return drawTree(records, (record) => line(record) + (record.running === true ? ' (running)' : ''))
  }

  /** Forgets what was collected, and what is running. */
  reset () {
    this.#records = []
    this.#open.clear()
    this.#wake()
  }

  #settled () {
    if (this.#open.size === 0) return undefined
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#waitMs)
      this.#waiting.push(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }

  #wake () {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

function line ({ kind, name, status, attributes }) {
  return spanLabel({ kind, name, status: status.code, errorType: attributes['error.type'] })
}

/** A ReadableSpan, ours or the SDK's of either version, as a plain object that compares and prints well. */
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
    events: span.events.map((event) => ({
      name: event.name,
      time: milliseconds(event.time),
      attributes: { ...event.attributes },
      droppedAttributesCount: event.droppedAttributesCount ?? 0
    })),
    links: span.links.map((link) => ({
      traceId: link.context.traceId,
      spanId: link.context.spanId,
      attributes: { ...link.attributes },
      droppedAttributesCount: link.droppedAttributesCount ?? 0
    })),
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

function milliseconds ([seconds, nanoseconds]) {
  return seconds * 1000 + nanoseconds / 1e6
}

/**
 * @param {{ timeoutMs?: number }} [options] how long `spans` and `tree` wait for running spans, 5000 by default
 * @returns {Collector}
 */
function createCollector ({ timeoutMs = WAIT_MS } = {}) {
  return new Collector(timeoutMs)
}

// What makes the spans and headers of a request that there is not.
const noTracer = {
  contextManager: ownContextManager,
  withSpan: (context, name, options, fn) => fn(INVALID_SPAN),
  inject: (context, headers) => headers
}

/**
 * Runs `fn` as if inside of a request whose store holds `values`: for tests of code that reads
 * `lightTrace.current()`. Nothing is traced.
 * @param {object} values copied into the store
 * @param {(trace: RequestTrace) => T} fn
 * @returns {T}
 */
function withRequest (values, fn) {
  const context = new RequestContext(noTracer, INVALID_SPAN, null, true)
  context.setStore({ ...values })
  return context.run(fn, context)
}

module.exports = { createCollector, withRequest }
