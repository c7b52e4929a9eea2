'use strict'

// When metrics are collected: every interval, at a flush, once more at the end, and sooner where an attempt has failed.
// There is never more than one collection at a time. What a collection becomes is its target's affair.

const { setTimeout, clearTimeout, monotonicNow } = require('../runtime/timers')
const { flushAtExit, forgetAtExit } = require('../export/exporter')

class MetricReader {
  #options
  #timer = null
  #nextAt = 0
  #notBefore = 0 // a collector has asked for a pause until then
  #isRunning = false
  #last = Promise.resolve(-1) // the collection that began last, or waits for the one before it
  #next = null // one that has not begun, where a flush waits for it
  #isClosed = false

  /**
   * @param {{ registry: MetricRegistry, intervalMs: number, closeTimeoutMs: number, suppress: <T>(fn: () => T) => T,
   *   target: { send (isLast: boolean): Promise<{ retryMs: number, isAsked: boolean }>, hold (isHeld: boolean, wasFrozen?: boolean): void,
   *     abort (): void, close (): void } }} options retryMs: the time until the next attempt, -1: the interval
   */
  constructor (options) {
    this.#options = options
  }

  start () {
    const { intervalMs, suppress } = this.#options
    this.#nextAt = monotonicNow() + intervalMs
    suppress(() => this.#arm(intervalMs))
  }

  /** Collects and sends what there is. Resolves when that is over, or after `timeoutMs`; never rejects. */
  async flush (options) {
    if (this.#isClosed) return
    const { timeoutMs, isFrozenNext = false } = options ?? {}
    if (isFrozenNext && monotonicNow() < this.#notBefore) return
    const ms = timeoutMs >= 0 ? timeoutMs : this.#options.closeTimeoutMs
    await this.#atMost(ms, () => (this.#next ??= this.#collectAfterLast(false)), isFrozenNext)
  }

  /** The last collection: one attempt, and then everything is given back. Idempotent; never rejects. */
  async close () {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#timer)
    forgetAtExit(this)
    await this.#atMost(this.#options.closeTimeoutMs, () => this.#collectAfterLast(true))
    this.#options.target.close()
  }

  /** Called by the one `beforeExit` listener of the process. */
  flushBeforeExit () {
    this.flush()
  }

  #arm (ms) {
    if (this.#isClosed) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#onTimer(), ms)
    this.#timer.unref()
    flushAtExit(this)
  }

  async #onTimer () {
    const { intervalMs } = this.#options
    const now = monotonicNow()
    // From start to start, and what a blocked loop has missed is not made up for. A timer may fire within 1 ms before its time.
    if (now + 1 > this.#nextAt) this.#nextAt += intervalMs * Math.ceil((now - this.#nextAt + 1) / intervalMs)
    const retryMs = !this.#isRunning && now >= this.#notBefore ? await this.#collectAfterLast(false) : -1
    const untilNext = Math.max(1, this.#nextAt - monotonicNow())
    this.#arm(retryMs >= 0 ? Math.min(retryMs, untilNext) : untilNext)
  }

  /** Returns when the next attempt is due. Never rejects. */
  #collectAfterLast (isLast) {
    this.#last = this.#last.then(() => this.#collect(isLast))
    return this.#last
  }

  async #collect (isLast) {
    this.#isRunning = true
    this.#next = null
    const { registry, target } = this.#options
    let answer = { retryMs: -1, isAsked: false }
    try {
      await registry.observe()
      answer = await target.send(isLast)
    } catch {}
    this.#isRunning = false
    this.#notBefore = answer.isAsked ? monotonicNow() + answer.retryMs : 0
    return answer.retryMs
  }

  /** Holds the process while `work` lasts, at most `ms`. */
  #atMost (ms, work, wasFrozen = false) {
    const { target, suppress } = this.#options
    return suppress(() => new Promise((resolve) => {
      target.hold(true, wasFrozen)
      const end = () => {
        clearTimeout(timer)
        target.hold(false)
        resolve()
      }
      const timer = setTimeout(() => {
        if (this.#isClosed) target.abort()
        end()
      }, ms)
      work().then(end, end)
    }))
  }
}

module.exports = { MetricReader }
