'use strict'

// How often a loss is logged: once for each kind in LOSS_INTERVAL_MS. A collector that flaps must not fill the log.

const { monotonicNow } = require('./timers')

const LOSS_INTERVAL_MS = 30_000

class Losses {
  #now
  #kinds = new Map() // kind -> { loggedAt, open }

  constructor (now = monotonicNow) {
    this.#now = now
  }

  /** Whether this kind is to be logged now. */
  isDue (kind) {
    const last = this.#kinds.get(kind)
    if (last !== undefined && this.#now() - last.loggedAt < LOSS_INTERVAL_MS) return false
    this.#kinds.set(kind, { loggedAt: this.#now(), open: true })
    return true
  }

  /** Whether a loss of this kind was logged and is not yet over. It is from now on. */
  close (kind) {
    const last = this.#kinds.get(kind)
    if (last === undefined || !last.open) return false
    last.open = false
    return true
  }
}

module.exports = { Losses }
