'use strict'

// Stores traces, log lines and metrics within a limit in bytes. It evicts whole traces with their lines, the oldest first.

const { EventEmitter } = require('node:events')
const { readRequest } = require('../otlp/request')
const { SpanFacts } = require('../otlp/span-facts')
const { Lines, LINE_OVERHEAD_BYTES } = require('./lines')
const { Metrics } = require('./metrics')
const { Origins } = require('./origin')
const { startOf } = require('./summary')
const { Trace, StoredSpan, SPAN_OVERHEAD_BYTES } = require('./trace')

const DEFAULT_MAX_BYTES = 64 * 1024 * 1024

// One trace may use half of the memory, so that it cannot evict everything else and then itself.
const SHARE_OF_ONE_TRACE = 0.5

// After this many spans or log lines of a request, room is made, so that a body of millions of them does not fill the memory.
const PORTION = 10_000

// Used to count late spans whose trace was evicted. 10,000 ids are about a megabyte.
const EVICTED_IDS_MAX = 10_000

/**
 * Emits `span` (trace, span, facts, bytes), `change` (trace), `evict` (trace), `lines` and `metrics`. Listeners are called synchronously; they
 * must not keep `facts` or `bytes`.
 */
class TraceStore extends EventEmitter {
  #byId = new Map()
  #list = [] // oldest first; orders are contiguous
  #head = 0
  #nextOrder = 1
  #origins = new Origins()
  #traceBytes = 0
  #evicted = new RecentIds(EVICTED_IDS_MAX)
  #facts = new SpanFacts()
  #now

  constructor ({ maxBytes = DEFAULT_MAX_BYTES, now = Date.now } = {}) {
    super()
    this.maxBytes = maxBytes
    this.lines = new Lines(this.#origins, maxBytes)
    this.metrics = new Metrics(this.#origins, maxBytes, now)
    this.#now = now
    this.spans = 0
    this.receivedSpans = 0
    this.duplicates = 0
    this.orphans = 0
    this.late = 0
    this.dropped = { evicted: 0, trace_too_large: 0, resource_too_large: 0, ids: 0 }
    this.evicted = { traces: 0, spans: 0, after: 0 }
    /** The start of the latest trace that was evicted: of the time since then, every trace is stored. */
    this.sinceMs = 0
  }

  get bytes () { return this.#traceBytes + this.#origins.bytes + this.lines.looseBytes + this.metrics.bytes }
  get #refused () { return this.dropped.trace_too_large + this.dropped.resource_too_large + this.dropped.ids }
  get size () { return this.#list.length - this.#head }
  /** The `order` of the oldest stored trace, or of the next trace if the store is empty. */
  get oldest () { return this.#nextOrder - this.size }

  get (id) { return this.#byId.get(id) }
  /** The trace with this `order`, if it is still stored. */
  at (order) { return this.#list[order - this.oldest + this.#head] }

  /** Newest first. Traces may arrive and be evicted in between. @param {number} before an order */
  * newestFirst (before = Infinity) {
    for (let order = Math.min(this.#nextOrder, before) - 1; order >= this.oldest; order--) yield this.at(order)
  }

  /** At most `max` traces whose id starts with `prefix`. */
  startingWith (prefix, max) {
    const found = []
    for (const trace of this.newestFirst()) {
      if (trace.id.startsWith(prefix)) found.push(trace)
      if (found.length === max) break
    }
    return found
  }

  /**
   * Takes the spans of an ExportTraceServiceRequest.
   * @param {Buffer} body may be reused afterwards, because the store copies what it keeps
   * @param {(touched: Map<Trace, StoredSpan[]>) => void} [onKept] called for each portion: its traces, each with the spans that were kept
   * @returns {{ spans: number, kept: number, dropped: number }} @throws Malformed; the spans before the malformed part are kept
   */
  receive (body, onKept = () => {}) {
    const before = this.receivedSpans
    const droppedBefore = this.#refused
    let kept = 0
    this.#inPortions(body, (batch, described, from, to) => { if (this.#take(batch, described, body, from, to)) kept++ }, onKept)
    return { spans: this.receivedSpans - before, kept, dropped: this.#refused - droppedBefore }
  }

  /**
   * Takes the records of an ExportLogsServiceRequest.
   * @param {(lines: import('./lines').StoredLine[]) => void} [onKept] called for each portion of what was kept
   * @returns {{ kept: number, dropped: number }} @throws Malformed; the records before the malformed part are kept
   */
  receiveLines (body, onKept = () => {}) {
    const result = { kept: 0, dropped: 0 }
    let portion = []
    try {
      this.#inPortions(body, (batch, described, from, to) => {
        const line = this.#takeLine(batch, described, body, from, to)
        result[line === null ? 'dropped' : 'kept']++
        if (line !== null) portion.push(line)
      }, () => {
        onKept(portion)
        portion = []
      })
    } finally {
      this.emit('lines')
    }
    return result
  }

  /** Takes the points of an ExportMetricsServiceRequest. @returns {number} how many were dropped @throws Malformed; the points before the malformed part are kept */
  receiveMetrics (body) {
    try {
      return this.metrics.receive(body)
    } finally {
      this.#makeRoom()
      this.emit('metrics')
    }
  }

  // A trace that is evicted after one portion and has spans in the next starts again, as with two requests.
  #inPortions (body, take, onSettled) {
    const batch = { now: this.#now(), touched: new Map(), described: null, origin: null }
    let count = 0
    const settle = () => {
      const { touched } = batch
      batch.touched = new Map()
      this.#settle(touched, body)
      onSettled(touched)
    }
    try {
      readRequest(body, (described, from, to) => {
        take(batch, described, from, to)
        if (++count % PORTION === 0) settle()
      })
    } finally {
      settle()
    }
  }

  /** @returns {import('./lines').StoredLine | null} null if it was dropped */
  #takeLine (batch, described, body, from, to) {
    const facts = this.lines.read(body, from, to, batch.now)
    const origin = this.#originOf(batch, described)
    if (origin === null) {
      this.lines.dropped.resource_too_large++
      return null
    }
    const trace = this.#byId.get(facts.traceId)
    if (trace !== undefined && !this.#hasRoom(trace, to - from + LINE_OVERHEAD_BYTES)) {
      this.lines.dropped.trace_too_large++
      return null
    }
    if (trace !== undefined) this.#mark(batch, trace)
    return this.lines.add(facts, origin, body, from, to, trace)
  }

  #take (batch, described, body, from, to) {
    const facts = this.#facts
    const valid = facts.read(body, from, to)
    this.receivedSpans++
    if (!valid) {
      this.dropped.ids++
      return false
    }
    if (this.#originOf(batch, described) === null) {
      this.dropped.resource_too_large++
      return false
    }
    const trace = this.#byId.get(facts.traceId) ?? this.#open(facts.traceId, batch.now)
    const known = trace.find(facts.id)
    if (known !== undefined && isSame(known, body, from, to)) {
      trace.duplicates++
      this.duplicates++
      this.#mark(batch, trace)
      return false
    }
    const size = to - from
    if (!this.#hasRoom(trace, size + SPAN_OVERHEAD_BYTES)) {
      trace.dropped++
      this.dropped.trace_too_large++
      this.#mark(batch, trace)
      return false
    }
    this.#add(batch, trace, facts, body, from, to)
    return true
  }

  #add (batch, trace, facts, body, from, to) {
    const { origin, now } = batch
    if (trace.addOrigin(origin)) this.#origins.hold(origin)
    const orphans = trace.orphans
    const span = new StoredSpan(facts, origin, trace.isLate(now))
    span.bytes = body // until the portion is settled
    span.from = from
    span.to = to
    trace.add(span, to - from, now)
    this.spans++
    this.orphans += trace.orphans - orphans
    if (span.late) this.late++
    this.#mark(batch, trace).push(span)
    this.emit('span', trace, span, facts, body)
  }

  #hasRoom (trace, bytes) {
    return trace.bytes + trace.originBytes + bytes <= this.maxBytes * SHARE_OF_ONE_TRACE
  }

  /** @returns {ReturnType<Origins['of']>} null if it is too large */
  #originOf (batch, described) {
    if (batch.described !== described) {
      batch.described = described
      batch.origin = this.#origins.of(described)
    }
    return batch.origin
  }

  #open (id, now) {
    const trace = new Trace(id, this.#nextOrder++, now)
    this.#byId.set(id, trace)
    this.#list.push(trace)
    trace.wasEvicted = this.#evicted.has(id)
    this.lines.join(trace)
    return trace
  }

  #mark ({ touched, now }, trace) {
    let spans = touched.get(trace)
    if (spans === undefined) {
      touched.set(trace, spans = [])
      trace.touch(now)
    }
    return spans
  }

  // Copies the bytes of each trace in this portion into a buffer of its own, so that the body can be freed.
  #settle (touched, body) {
    for (const [trace, spans] of touched) {
      if (spans.length !== 0) this.#copy(spans, body)
      if (trace.wasEvicted) this.evicted.after += spans.length
      this.emit('change', trace)
      this.#traceBytes += trace.bytes - trace.bytesCounted // listeners add the bytes of what they store for the trace
      trace.bytesCounted = trace.bytes
    }
    this.lines.makeRoom()
    this.#makeRoom()
  }

  #makeRoom () {
    while (this.bytes > this.maxBytes && this.size > 0) this.#evictOldest()
  }

  #copy (spans, body) {
    let length = 0
    for (const span of spans) length += span.to - span.from
    const own = Buffer.allocUnsafeSlow(length)
    let at = 0
    for (const span of spans) {
      body.copy(own, at, span.from, span.to)
      span.to = at + span.to - span.from
      span.from = at
      span.bytes = own
      at = span.to
    }
  }

  #evictOldest () {
    const trace = this.#list[this.#head]
    this.#list[this.#head++] = undefined
    if (this.#head > 1024 && this.#head * 2 > this.#list.length) {
      this.#list = this.#list.slice(this.#head)
      this.#head = 0
    }
    this.#byId.delete(trace.id)
    this.#traceBytes -= trace.bytesCounted
    this.sinceMs = Math.max(this.sinceMs, Math.min(startOf(trace), trace.receivedMs)) // the clock of a sender may be ahead
    for (const origin of trace.origins) this.#origins.release(origin)
    this.lines.leave(trace)
    this.spans -= trace.spans.length
    this.orphans -= trace.orphans
    this.late -= trace.late
    this.evicted.traces++
    this.evicted.spans += trace.spans.length
    this.dropped.evicted += trace.spans.length
    this.#evicted.add(trace.id)
    this.emit('evict', trace)
  }
}

class RecentIds {
  #known = new Set()
  #ring
  #next = 0

  constructor (size) {
    this.#ring = new Array(size).fill('')
  }

  has (id) { return this.#known.has(id) }

  add (id) {
    this.#known.delete(this.#ring[this.#next])
    this.#ring[this.#next] = id
    this.#known.add(id)
    this.#next = (this.#next + 1) % this.#ring.length
  }
}

// A sender that gets no answer sends again. Spans that share an id but not their content are both kept.
function isSame (known, body, from, to) {
  return known.to - known.from === to - from && known.bytes.compare(body, from, to, known.from, known.to) === 0
}

module.exports = { TraceStore }
