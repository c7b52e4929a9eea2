'use strict'

// Groups the same exception of many traces into one row.

const { createHash } = require('node:crypto')
const { KIND_SERVER, STATUS_ERROR } = require('../otlp/names')
const { isRequest } = require('../store/trace')
const { OF_REQUEST, summaryOf } = require('../store/summary')

const GROUPS_MAX = 500
const TRACES_SHOWN = 20
const ROUTES_SHOWN = 10
const TRACES_REMEMBERED = 100
const PER_TRACE_MAX = 16 // further ones are not counted, because without being remembered each would count again for every span
const STACK_LINES_MAX = 200
const LEVELS_MAX = 1000 // between a span and its request
const SLOT_MS = 10_000
const SLOTS_MAX = 60

// Decides which error of a trace is shown as its reason. An error with a message ranks highest, then an error of the request itself, then
// an error of a span that failed.
const HAS_MESSAGE = 4
const HAS_FAILED = 1

const ID = /\d|^req-|^[0-9a-f]{12,}$/i // a number, an id, or a request's id of Fastify

const FAULT_BYTES = 200
const REASON_BYTES = 200

class Exceptions {
  #groups = new Map() // ordered by their last occurrence
  #unexplained = new Map() // trace → the failure of one of its spans without an exception, until its portion of an OTLP request is read
  #store
  #now
  #slotMs
  more = 0
  version = 0

  constructor (store, { now = Date.now, slotMs = SLOT_MS } = {}) {
    this.#store = store
    this.#now = now
    this.#slotMs = slotMs
    store.on('span', (trace, span, facts) => {
      for (const { atMs, ...exception } of facts.exceptions ?? []) {
        this.#propose(trace, span, { ...exception, type: exception.type || 'Error', atMs: atMs || endOf(span), recorded: true })
      }
      if (facts.exceptions === null && span.status === STATUS_ERROR) {
        this.#propose(trace, span, { type: facts.errorType || 'error', message: facts.message, stack: '', atMs: endOf(span), recorded: false })
      }
    })
    // A failure without an exception is counted only now, because a later span in the same portion of an OTLP request may have recorded the exception.
    store.on('change', (trace) => {
      const failure = this.#unexplained.get(trace)
      this.#unexplained.delete(trace)
      if (failure !== undefined && trace.faults === null) trace.reason.exception = this.#count(trace, failure)
      if (trace.faults !== null) this.#findAnswers(trace)
    })
  }

  #propose (trace, span, { type, message, stack, atMs, recorded }) {
    const rank = (message !== '' && HAS_MESSAGE) + (isRequest(span) && OF_REQUEST) + (span.status === STATUS_ERROR && HAS_FAILED)
    const fault = { span, service: span.origin.service, type, message, stack, atMs, recorded }
    const key = recorded ? this.#recorded(trace, fault) : trace.faults?.[0].key
    if ((rank & (OF_REQUEST | HAS_FAILED)) === 0) return // the exception was caught: its span did not fail and is not a request
    const { reason } = trace
    if (reason !== null && reason.rank >= rank) return
    if (!recorded && trace.faults === null) this.#unexplained.set(trace, fault)
    trace.reason = { type, message: message || null, exception: key ?? null, rank }
    trace.bytes += bytesOf(trace.reason) - bytesOf(reason)
  }

  /**
   * A span and its ancestors record the same fault, with a different stack in each service.
   * @returns {string | undefined} the key of its group, if the trace counts in it
   */
  #recorded (trace, fault) {
    const unexplained = trace.faults?.[0].recorded === false
    if (unexplained) this.#takeBack(trace)
    const same = sameOf(fault)
    const known = trace.faults?.find((each) => each.same === same)
    if (known === undefined && trace.faults?.length >= PER_TRACE_MAX) return undefined
    const key = known?.key ?? this.#count(trace, fault)
    if (unexplained) trace.reason.exception = key
    return key
  }

  // Removes the count of a failure without an exception, when another span of the same trace brings the exception.
  #takeBack (trace) {
    const [{ key, slot }] = trace.faults
    trace.faults = null
    const group = this.#groups.get(key)
    if (group === undefined || !group.orders.includes(trace.order)) return
    group.orders = group.orders.filter((order) => order !== trace.order)
    if (group.slots.has(slot)) group.slots.set(slot, group.slots.get(slot) - 1)
    if (--group.count === 0) this.#groups.delete(key)
  }

  // The request that recorded an exception may arrive later than the exception.
  #findAnswers (trace) {
    for (const { key, span } of trace.faults) {
      const group = this.#groups.get(key)
      const request = requestOf(trace, span)
      if (group === undefined || request === undefined) continue
      const failed = request.status === STATUS_ERROR
      if (group.failed === true && !failed) continue
      const status = request.kind === KIND_SERVER && request.code !== 0 ? request.code : null
      if (group.status !== status || group.failed !== failed) this.version++
      group.status = status
      group.failed = failed
    }
  }

  #count (trace, fault) {
    const { span, service, type, message, stack, atMs, recorded } = fault
    const slot = Math.floor(this.#now() / this.#slotMs)
    const frame = frameOf(stack)
    const same = sameOf(fault)
    const key = hash(`${service}\n${same}\n${frame}\n${recorded}`)
    trace.faults ??= []
    trace.faults.push({ key, same, recorded, span, slot })
    trace.bytes += FAULT_BYTES
    this.version++
    const group = this.#groups.get(key) ??
      { key, type, message: null, frame, service, status: null, failed: null, count: 0, firstMs: Infinity, lastMs: 0, slots: new Map(), orders: [], stack: null, recorded }
    const at = atMs > 0 ? atMs : this.#now()
    group.message = message || null
    group.stack = stack || null
    group.firstMs = Math.min(group.firstMs, at)
    group.lastMs = Math.max(group.lastMs, at)
    group.count++
    group.slots.set(slot, (group.slots.get(slot) ?? 0) + 1)
    if (group.slots.size > SLOTS_MAX) for (const old of group.slots.keys()) if (old <= slot - SLOTS_MAX) group.slots.delete(old)
    group.orders.push(trace.order)
    if (group.orders.length > 2 * TRACES_REMEMBERED) group.orders = group.orders.slice(-TRACES_REMEMBERED)
    this.#groups.delete(key)
    this.#groups.set(key, group)
    if (this.#groups.size > GROUPS_MAX) {
      this.#groups.delete(this.#groups.keys().next().value)
      this.more++
    }
    return key
  }

  /** The answer of GET /api/exceptions. */
  list () {
    const nowMs = this.#now()
    const current = Math.floor(nowMs / this.#slotMs)
    return { nowMs, slotMs: this.#slotMs, exceptions: [...this.#groups.values()].reverse().map((group) => this.#row(group, current)), more: this.more }
  }

  #row ({ orders, slots, failed, ...row }, current) {
    const held = orders.slice(-TRACES_REMEMBERED).reverse().map((order) => this.#store.at(order)).filter((trace) => trace !== undefined)
    const routes = new Set(held.map((trace) => summaryOf(trace)).map(({ route, name }) => route ?? name))
    const histogram = [...slots].filter(([slot, count]) => slot > current - SLOTS_MAX && count > 0).map(([slot, count]) => ({ atMs: slot * this.#slotMs, count }))
    return { ...row, failed: failed ?? true, routes: [...routes].slice(0, ROUTES_SHOWN), histogram, traces: held.slice(0, TRACES_SHOWN).map(({ id }) => id) }
  }
}

/** The request or message that a span belongs to, or undefined if it was not received. */
function requestOf (trace, span) {
  for (let level = 0; level < LEVELS_MAX && span !== undefined; level++) {
    if (isRequest(span)) return span
    span = trace.find(span.parent)
  }
}

function endOf ({ startMs, durationMs }) {
  return startMs === 0 ? 0 : startMs + durationMs
}

function bytesOf (reason) {
  return reason === null ? 0 : REASON_BYTES + 2 * (reason.type.length + (reason.message ?? '').length)
}

// 'user 17 is unknown' and 'user 18 is unknown' count as the same.
function sameOf ({ type, message }) {
  return hash(`${type}\n${message.replace(/[\w-]+/g, (word) => ID.test(word) ? '#' : word)}`)
}

/** The first line of the stack that is in the app's own code: V8's `at …`, or the last `File "…", line …` of Python. */
function frameOf (stack) {
  const lines = stack.split('\n', STACK_LINES_MAX).map((line) => line.trim())
  const frames = lines.filter((line) => line.startsWith('at '))
  const own = frames.find((line) => !/node_modules|\(?node:|<anonymous>$/.test(line)) ?? frames[0]
  const frame = (own ?? lines.findLast((line) => line.startsWith('File "')))?.slice(0, 300)
  return frame === undefined ? null : Buffer.from(frame).toString() // a copy, because a slice would keep the whole stack in memory
}

// A name for use in URLs, not a secret.
function hash (text) {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

module.exports = { Exceptions }
