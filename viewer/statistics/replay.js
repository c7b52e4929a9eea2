'use strict'

// Routes and exceptions within a time interval. The stored traces that started in it are counted again, oldest first, by the code that counts
// them as they arrive. Other work runs in between.

const { EventEmitter } = require('node:events')
const { SpanFacts } = require('../otlp/span-facts')
const { Filter, Search, withinTest } = require('../store/search')
const { startOf } = require('../store/summary')
const { Slices } = require('../store/slices')
const { Trace } = require('../store/trace')
const { Exceptions } = require('./exceptions')
const { RouteStatistics } = require('./routes')

const SLOTS = 59 // with a part at both ends: 60
const SLOT_MIN_MS = 1000
const SPANS_SLICE = 100

/** The answer of GET /api/routes for an interval. Times are those at which requests started. */
async function routesWithin (store, within, nowMs) {
  const traces = await tracesWithin(store, within)
  const toMs = Math.min(within.toMs, nowMs)
  const firstMs = traces[0]?.startMs ?? nowMs
  const replay = new Replay(store, toMs)
  const statistics = new RouteStatistics(replay, { now: () => replay.nowMs, slotMs: slotOf(firstMs, toMs), rateFromMs: Math.max(within.fromMs || firstMs, store.sinceMs) })
  await replay.run(traces)
  return statistics.list()
}

/** The answer of GET /api/exceptions for an interval. */
async function exceptionsWithin (store, within, nowMs) {
  const traces = (await tracesWithin(store, within)).filter(({ trace: { faults, errors } }) => faults !== null || errors > 0)
  const toMs = Math.min(within.toMs, nowMs)
  const replay = new Replay(store, toMs)
  const exceptions = new Exceptions(replay, { now: () => replay.nowMs, slotMs: slotOf(traces[0]?.startMs ?? toMs, toMs) })
  await replay.run(traces, new SpanFacts())
  return exceptions.list()
}

function slotOf (firstMs, toMs) {
  return Math.max(SLOT_MIN_MS, Math.ceil((toMs - firstMs) / SLOTS / SLOT_MIN_MS) * SLOT_MIN_MS)
}

// The start of a trace without a root takes long to find, so it is kept.
async function tracesWithin (store, within) {
  const found = []
  for await (const trace of new Search(store, new Filter([withinTest(within)]))) found.push({ trace, startMs: startOf(trace) })
  return found.sort((a, b) => a.startMs - b.startMs)
}

/** Stands in for the store: emits `span` and `change` for copies of traces, because listeners add to a trace what they count. */
class Replay extends EventEmitter {
  #store
  #toMs
  nowMs

  /** @param {number} toMs when the time ends, even if the clock of a sender is ahead of it */
  constructor (store, toMs) {
    super()
    this.#store = store
    this.#toMs = this.nowMs = toMs
  }

  at (order) { return this.#store.at(order) }

  /** @param {SpanFacts} [facts] if the listeners need the facts of the spans */
  async run (traces, facts) {
    const slices = new Slices()
    for (const { trace, startMs } of traces) {
      const copy = new Trace(trace.id, trace.order, trace.receivedMs)
      this.nowMs = Math.min(startMs, this.#toMs)
      for (const [index, span] of trace.spans.slice().entries()) {
        if (index % SPANS_SLICE === 0 && slices.isDue) await slices.rest()
        copy.add(span, 0, this.nowMs)
        facts?.read(span.bytes, span.from, span.to)
        this.emit('span', copy, span, facts)
      }
      this.emit('change', copy)
    }
    this.nowMs = this.#toMs
  }
}

module.exports = { routesWithin, exceptionsWithin }
