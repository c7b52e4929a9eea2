'use strict'

// One trace, as far as it was received. Its spans arrive in any order and in several requests, and some never arrive.

const { KIND_SERVER, KIND_CONSUMER, STATUS_ERROR } = require('../otlp/names')
const { ownBytes } = require('../otlp/span-facts')

// The memory of a record and its strings in addition to the span's bytes, calibrated against the heap (test/viewer/bounds.test.js).
const SPAN_OVERHEAD_BYTES = 420
const TRACE_OVERHEAD_BYTES = 1000

// From this many spans or origins on, a Map or Set finds them. Most traces are smaller.
const MAP_FROM = 12

const LATE_AFTER_MS = 2000

class StoredSpan {
  constructor (facts, origin, late) {
    this.id = facts.id
    this.parent = facts.parent
    this.name = facts.name
    this.kind = facts.kind
    this.startMs = facts.startMs
    this.durationMs = facts.durationMs
    this.status = facts.status
    this.code = facts.code
    this.events = facts.events
    this.links = facts.links
    this.late = late
    this.origin = origin
    this.bytes = null // the buffer with its bytes, which the spans of one trace in one OTLP request share
    this.from = 0
    this.to = 0
    // Only for SERVER spans and spans without a parent.
    this.http = facts.kind === KIND_SERVER || facts.parent === '' ? httpOf(facts) : null
  }
}

/** Whether a span is a request, a message, or the start of the trace. */
function isRequest ({ kind, parent }) {
  return kind === KIND_SERVER || kind === KIND_CONSUMER || parent === ''
}

function textBytesOf ({ name, http }) {
  return ownBytes(name) + (http === null ? 0 : ownBytes(http.method) + ownBytes(http.route) + ownBytes(http.path))
}

function httpOf ({ method, route, path, code }) {
  return method === '' && route === '' && path === '' && code === 0 ? null : { method, route, path }
}

class Trace {
  constructor (id, order, now) {
    this.id = id
    this.order = order
    this.spans = []
    this.lines = [] // log lines, in order of arrival
    this.origins = [] // in order of arrival
    this.originBytes = 0 // not in `bytes`, because traces share them
    this.bytes = TRACE_OVERHEAD_BYTES
    this.bytesCounted = 0 // the part of `bytes` that the store's sum includes
    this.receivedMs = now
    this.updatedMs = now
    this.root = null
    this.rootAtMs = 0
    this.errors = 0
    this.failedRequests = 0
    this.orphans = 0
    this.late = 0
    this.duplicates = 0
    this.dropped = 0
    this.wasEvicted = false // the trace was stored before
    this.faults = null // its exceptions; `reason`: why it failed. See statistics/exceptions.js
    this.reason = null
    this.repeats = null // the most repeated calls of the first `repeatsRead` spans. See views/repeats.js
    this.repeatsRead = 0
    this.version = 0
    this.summary = null
    this.summaryVersion = -1
    this.#byId = null
    this.#waiting = null
  }

  #byId
  #waiting // parent id → how many spans wait for it
  #manyOrigins = null

  /** The first span with this id. */
  find (id) {
    if (this.#byId !== null) return this.#byId.get(id)
    const { spans } = this
    for (let i = 0; i < spans.length; i++) if (spans[i].id === id) return spans[i]
    return undefined
  }

  isLate (now) {
    return this.root !== null && now - this.rootAtMs > LATE_AFTER_MS
  }

  /** @returns {boolean} whether the trace did not have it yet */
  addOrigin (origin) {
    const { origins } = this
    if (origins[origins.length - 1] === origin) return false
    if (this.#manyOrigins === null ? origins.includes(origin) : this.#manyOrigins.has(origin)) return false
    origins.push(origin)
    this.originBytes += origin.bytes
    if (origins.length === MAP_FROM) this.#manyOrigins = new Set(origins)
    else this.#manyOrigins?.add(origin)
    return true
  }

  /** @param {number} byteCount number of the span's bytes */
  add (span, byteCount, now) {
    const known = this.find(span.id) !== undefined
    this.spans.push(span)
    if (!known) {
      if (this.#byId !== null) this.#byId.set(span.id, span)
      else if (this.spans.length === MAP_FROM) this.#byId = new Map(this.spans.toReversed().map((each) => [each.id, each]))
      this.#arrived(span)
    }
    if (span.parent === '') {
      if (this.root === null) this.rootAtMs = now
      if (this.root === null || span.startMs < this.root.startMs) this.root = span
    } else if (span.parent !== span.id && this.find(span.parent) === undefined) this.#wait(span.parent)
    if (span.status === STATUS_ERROR) {
      this.errors++
      if (isRequest(span)) this.failedRequests++
    }
    if (span.late) this.late++
    this.bytes += SPAN_OVERHEAD_BYTES + byteCount + textBytesOf(span)
    this.touch(now)
  }

  addLine (line) {
    line.trace = this
    line.index = this.lines.push(line) - 1
    this.bytes += line.size
  }

  touch (now) {
    this.updatedMs = now
    this.version++
  }

  #wait (parent) {
    this.#waiting ??= new Map()
    this.#waiting.set(parent, (this.#waiting.get(parent) ?? 0) + 1)
    this.orphans++
  }

  #arrived ({ id }) {
    const count = this.#waiting?.get(id)
    if (count === undefined) return
    this.#waiting.delete(id)
    this.orphans -= count
  }

  /** Whether a request of the trace failed. A request that was answered has not failed, even if a call in it has. */
  get failed () {
    return this.failedRequests > 0 || (this.errors > 0 && this.root === null && this.entry?.status === STATUS_ERROR)
  }

  /** The root. Until it arrives: the earliest span whose parent is missing, or the earliest span of a cycle. */
  get entry () {
    if (this.root !== null) return this.root
    let entry = null
    for (const span of this.spans) {
      const isOrphan = this.orphans !== 0 && this.find(span.parent) === undefined
      if (this.orphans !== 0 && !isOrphan) continue
      if (entry === null || span.startMs < entry.startMs) entry = span
    }
    return entry
  }
}

module.exports = { Trace, StoredSpan, isRequest, SPAN_OVERHEAD_BYTES }
