'use strict'

// Spans whose library publishes the end in another event, by the id that both events have.

const { bug } = require('../runtime/subscriptions')

// Of one client at a time. A library that never publishes an end must not hold spans for ever.
const PENDING_MAX = 10_000

class PendingSpans {
  #spans = new Map()

  /** @param {Span | null} span null: the call has none */
  add (id, span) {
    if (span === null) return
    if (this.#spans.size >= PENDING_MAX) this.#endOldest()
    this.#spans.set(id, span)
  }

  /** @returns {Span | undefined} once */
  take (id) {
    const span = this.#spans.get(id)
    this.#spans.delete(id)
    return span
  }

  #endOldest () {
    const [[id, span]] = this.#spans
    this.#spans.delete(id)
    span.end()
  }
}

/** A listener that cannot throw: what it throws, the library would take for its own failure. */
function listener (fn) {
  return function lightTraceListener (...args) {
    try {
      fn(...args)
    } catch (error) {
      bug(error)
    }
  }
}

module.exports = { PendingSpans, listener }
