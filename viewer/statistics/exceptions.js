'use strict'

// The same exception of many traces as one row.

const { readEvents } = require('../otlp/span-detail')
const { EXCEPTION } = require('../otlp/span-facts')
const { STATUS_ERROR } = require('../otlp/names')
const { summaryOf } = require('../store/summary')

const GROUPS_MAX = 500
const TRACES_SHOWN = 20
const TRACES_REMEMBERED = 100
const PER_TRACE_MAX = 16
const MESSAGE_MAX = 1000
const STACK_MAX = 8000
const STACK_LINES_MAX = 200

class Exceptions {
  #groups = new Map() // in order of the last time
  #unexplained = new Map() // trace → how a span of it failed, until the request that brought it is read
  #store
  #now
  more = 0
  version = 0

  constructor (store, { now = Date.now } = {}) {
    this.#store = store
    this.#now = now
    store.on('span', (trace, span, facts, bytes) => {
      if (facts.exceptions > 0) this.#recorded(trace, span, bytes, facts)
      else if (span.status === STATUS_ERROR && trace.exceptions === null) this.#unexplained.set(trace, failureOf(span, facts))
    })
    // What one span of a trace recorded the others need not repeat, and those that come with it may.
    store.on('change', (trace) => {
      const failure = this.#unexplained.get(trace)
      if (failure === undefined) return
      this.#unexplained.delete(trace)
      if (trace.exceptions === null) this.#failed(trace, failure)
    })
  }

  #recorded (trace, span, bytes, { status }) {
    for (const event of readEvents(bytes, span.from, span.to)) {
      if (event.name !== EXCEPTION) continue
      const text = (key) => {
        const found = event.attributes.find((attribute) => attribute.key === key)
        return found === undefined ? '' : String(found.value)
      }
      const stack = text('exception.stacktrace').slice(0, STACK_MAX)
      const type = text('exception.type') || 'Error'
      const key = this.#count(trace, { service: span.origin.service, type, message: text('exception.message'), stack, frame: frameOf(stack), recorded: true })
      if (status === STATUS_ERROR) trace.error ??= { type, message: cut(text('exception.message')), exception: key }
    }
  }

  #failed (trace, { service, type, message }) {
    const key = this.#count(trace, { service, type, message, stack: '', frame: null, recorded: false })
    trace.error ??= { type, message: cut(message), exception: key }
  }

  #count (trace, { service, type, message, stack, frame, recorded }) {
    const key = hash(`${service}\n${type}\n${withoutNumbers(message)}\n${frame}\n${recorded}`)
    if (trace.exceptions?.includes(key)) return key
    if (trace.exceptions === null) trace.exceptions = [key]
    else if (trace.exceptions.length < PER_TRACE_MAX) trace.exceptions.push(key)
    this.version++
    const group = this.#groups.get(key) ?? {
      key, type: type.slice(0, MESSAGE_MAX), message: null, frame, service, count: 0, firstMs: this.#now(), lastMs: 0, orders: [], stack: null, recorded
    }
    group.message = cut(message)
    group.stack = stack === '' ? null : stack
    group.count++
    group.lastMs = this.#now()
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

  /** What GET /api/exceptions answers. */
  list () {
    return { exceptions: [...this.#groups.values()].reverse().map((group) => this.#row(group)), more: this.more }
  }

  #row ({ orders, ...row }) {
    const held = orders.slice(-TRACES_REMEMBERED).reverse().map((order) => this.#store.at(order)).filter((trace) => trace !== undefined)
    const route = held.length === 0 ? null : summaryOf(held[0]).route ?? summaryOf(held[0]).name
    return { ...row, route, traces: held.slice(0, TRACES_SHOWN).map(({ id }) => id) }
  }
}

function failureOf ({ origin }, { errorType, message }) {
  return { service: origin.service, type: errorType || 'error', message }
}

function cut (message) {
  return message === '' ? null : message.slice(0, MESSAGE_MAX)
}

// 'user 17 is unknown' and 'user 18 is unknown' are the same.
function withoutNumbers (message) {
  return message.slice(0, MESSAGE_MAX).replace(/[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{12,}\b|\d+/gi, '#')
}

/** The first line of the stack that is in the app's own code: V8's `at …`, or the last `File "…", line …` of Python. */
function frameOf (stack) {
  const lines = stack.split('\n', STACK_LINES_MAX).map((line) => line.trim())
  const frames = lines.filter((line) => line.startsWith('at '))
  const own = frames.find((line) => !/node_modules|\(?node:|<anonymous>$/.test(line)) ?? frames[0]
  return (own ?? lines.findLast((line) => line.startsWith('File "')))?.slice(0, 300) ?? null
}

// FNV-1a of 32 bits, twice over: a name for an address, no secret. Whoever makes two collide has hidden one of their own.
function hash (text) {
  let a = 0x811c9dc5
  let b = 0x01000193
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    a = Math.imul(a ^ code, 0x01000193)
    b = Math.imul(b ^ code, 0x85ebca6b)
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36)
}

module.exports = { Exceptions }
