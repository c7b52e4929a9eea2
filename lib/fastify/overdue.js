'use strict'

// The spans of onResponse hooks that are not over. One that takes longer than OVERDUE_MS is taken for one that failed,
// of which nobody hears: its span ends then. One timer for all of them.

const { setTimeout, clearTimeout, monotonicNow } = require('../runtime/timers')

const OVERDUE_MS = 10_000

class Overdue {
  #since = new Map() // span → when it came; the oldest is the first
  #timer = null

  add (span) {
    this.#since.set(span, monotonicNow())
    if (this.#timer === null) this.#arm(OVERDUE_MS)
  }

  delete (span) {
    this.#since.delete(span)
  }

  stop () {
    clearTimeout(this.#timer)
  }

  #arm (ms) {
    this.#timer = setTimeout(() => this.#sweep(), ms)
    this.#timer.unref()
  }

  #sweep () {
    this.#timer = null
    const now = monotonicNow()
    for (const [span, since] of this.#since) {
      if (now - since < OVERDUE_MS) {
        this.#arm(OVERDUE_MS - (now - since))
        return
      }
      this.#since.delete(span)
      if (span.isRecording()) span.end()
    }
  }
}

module.exports = { Overdue, OVERDUE_MS }
