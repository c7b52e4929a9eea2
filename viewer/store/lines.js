'use strict'

// The stored log lines. Lines of a stored trace are evicted with it. Loose lines have no stored trace: they belong to no trace, to a trace
// that is not sampled, or to a trace whose spans have not arrived. They may use an eighth of the memory, and the oldest are evicted first.

const { recordFacts, readRecord } = require('../otlp/log-record')
const { HeldOrigins } = require('./origin')

const SHARE_OF_LOOSE = 1 / 8
const SPARE = 0.9 // eviction goes down to this share of the limit, so that it does not happen for every new line

// The memory of a line in addition to its bytes, calibrated against the heap (test/viewer/logs.test.js).
const LINE_OVERHEAD_BYTES = 380
const WAITING_OVERHEAD_BYTES = 180 // for a trace whose spans have not arrived

class StoredLine {
  constructor (facts, origin, order, raw) {
    this.order = order
    this.traceId = facts.traceId
    this.spanId = facts.spanId
    this.timeMs = facts.timeMs
    this.severity = facts.severity
    this.origin = origin
    this.raw = raw // its bytes as Latin-1 text: a buffer would cost 200 bytes more
    this.trace = null // its stored trace
    this.index = 0 // in the lines of its trace
  }

  get size () { return this.raw.length + LINE_OVERHEAD_BYTES }
  read () { return readRecord(Buffer.from(this.raw, 'latin1')) }
}

class Lines {
  #all = new Set() // in order of arrival
  #loose = new Set()
  #waiting = new Map() // trace id → its loose lines
  #origins
  #looseOrigins
  #looseMax
  looseBytes = 0
  received = 0
  dropped = { evicted: 0, trace_too_large: 0, resource_too_large: 0 }

  constructor (origins, maxBytes) {
    this.#origins = origins
    this.#looseOrigins = new HeldOrigins(origins)
    this.#looseMax = maxBytes * SHARE_OF_LOOSE
  }

  get size () { return this.#all.size }
  newestFirst () { return [...this.#all].reverse() }

  /** The line with this `order`, if it is still stored. */
  at (order) {
    for (const line of this.#all) if (line.order === order) return line
    return undefined
  }

  /** @throws Malformed */
  read (bytes, from, to, now) {
    const facts = recordFacts(bytes, from, to)
    if (facts.timeMs === 0) facts.timeMs = now
    this.received++
    return facts
  }

  /** @param {import('./trace').Trace | undefined} trace its stored trace, which must have room */
  add (facts, origin, bytes, from, to, trace) {
    const line = new StoredLine(facts, origin, this.received, bytes.latin1Slice(from, to))
    this.#all.add(line)
    if (trace === undefined) this.#addLoose(line)
    else this.#addTo(trace, line)
    return line
  }

  #addTo (trace, line) {
    this.#origins.hold(line.origin)
    trace.addLine(line)
  }

  #addLoose (line) {
    this.#looseOrigins.hold(line.origin)
    this.#loose.add(line)
    this.looseBytes += line.size
    if (line.traceId === '') return
    const waiting = this.#waiting.get(line.traceId)
    if (waiting !== undefined) return waiting.add(line)
    this.#waiting.set(line.traceId, new Set([line]))
    this.looseBytes += WAITING_OVERHEAD_BYTES
  }

  /** Gives a new trace the lines that arrived before its spans. */
  join (trace) {
    const lines = this.#waiting.get(trace.id)
    if (lines === undefined) return
    this.#forget(trace.id)
    for (const line of lines) {
      this.#addTo(trace, line)
      this.#removeLoose(line)
    }
  }

  makeRoom () {
    if (this.#looseUsed <= this.#looseMax) return
    for (const line of this.#loose) {
      if (this.#looseUsed <= this.#looseMax * SPARE) break
      this.#removeLoose(line)
      const waiting = this.#waiting.get(line.traceId)
      waiting?.delete(line)
      if (waiting?.size === 0) this.#forget(line.traceId)
      this.#drop(line)
    }
  }

  /** Drops the lines of a trace that was evicted. */
  leave ({ lines }) {
    for (const line of lines) {
      this.#origins.release(line.origin)
      this.#drop(line)
    }
  }

  // The origins are counted once in the store, and here too.
  get #looseUsed () { return this.looseBytes + this.#looseOrigins.bytes }

  #removeLoose (line) {
    this.#loose.delete(line)
    this.looseBytes -= line.size
    this.#looseOrigins.release(line.origin)
  }

  #forget (traceId) {
    this.#waiting.delete(traceId)
    this.looseBytes -= WAITING_OVERHEAD_BYTES
  }

  #drop (line) {
    this.#all.delete(line)
    this.dropped.evicted++
  }
}

module.exports = { Lines, StoredLine, LINE_OVERHEAD_BYTES }
