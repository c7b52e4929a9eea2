'use strict'

// Decides when metrics are collected: at every interval, at a flush, once at the end, and sooner after a failed attempt. Only one
// collection runs at a time. Sends each collection by OTLP, or writes it to standard output.
//
// A cumulative collection that could not be sent is discarded: only the newest values matter, so a retry collects again. Deltas are
// sent again byte for byte, before newer ones: if only the response was lost, a backend recognises by their interval that it
// already has them.

const clock = require('../../runtime/timers.js')
const { DURATION_MAX_MS, setTimeout, clearTimeout, setImmediate, monotonicNow } = require('../../runtime/timers.js')
const { messageOf } = require('../../runtime/report.js')
const { flushAtExit, forgetAtExit, settleWithin } = require('../../export/exporter.js')
const { backoffMs } = require('../../export/http/retry.js')

const NO_RETRY = -1 // the next collection is at its interval

// Batches are not split below this size: a server that rejects it accepts no metrics at all.
const BATCH_BYTES_MIN = 16 * 1024

class MetricReader {
  #options
  #stats
  #log
  #timer = null
  #intervalMs
  #nextAt
  #dueAt = 0 // when the next interval or retry is due
  #notBefore = 0 // the end of a pause that the collector asked for
  #isRunning = false
  #last = Promise.resolve(NO_RETRY) // the newest collection; it may still wait for the one before it
  #next = null // a collection that a flush waits for and that has not begun
  #isClosed = false
  #http = null // created when there is something to send
  #isHeld = false
  #deliveredMs = -Infinity // when the last delivered collection was taken
  #failures = 0 // since the last delivery
  #held = null // the rest of a collection with deltas that must be sent again: { nowMs, batches }
  #isOver = false

  /**
   * @param {{ registry: MetricRegistry, encoder: import('./encoder').MetricEncoder | import('./encoder').MetricJson, log: import('../../export/log').ExportLog,
   *   connect (): Pick<OtlpHttp, 'post' | 'hold' | 'abort' | 'close'>, prefix: ExportRequestPrefix | null,
   *   report: Report, stats: import('../../export/pipeline').Stats, intervalMs: number, closeTimeoutMs: number, suppress: <T>(fn: () => T) => T }} options
   *   connect: called when there is something to send; prefix: the start of a request, if `body` is only its rest
   */
  constructor (options) {
    this.#options = options
    this.#stats = options.stats
    this.#log = options.log
    this.#intervalMs = options.intervalMs < DURATION_MAX_MS ? options.intervalMs : Infinity // collects only at a flush and at the end
    const firstMs = firstAfterMs(this.#intervalMs, Math.random())
    this.#nextAt = monotonicNow() + firstMs
    options.suppress(() => this.#arm(firstMs))
  }

  /** Collects and sends. Resolves when that is done, or after `timeoutMs`; never rejects. */
  async flush (options) {
    if (this.#isClosed) return
    const { timeoutMs, isFrozenNext = false } = options ?? {}
    if (isFrozenNext && monotonicNow() < this.#notBefore) return
    const ms = timeoutMs >= 0 ? timeoutMs : this.#options.closeTimeoutMs
    await this.#atMost(ms, () => (this.#next ??= this.#collectAfterLast(false)), isFrozenNext)
  }

  /** Makes one attempt to send the last collection, then releases everything. Idempotent; never rejects. */
  async close () {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#timer)
    forgetAtExit(this)
    await this.#atMost(this.#options.closeTimeoutMs, () => this.#collectAfterLast(true))
    this.#isOver = true
    this.#http?.close()
  }

  /** Called by the process's single `beforeExit` listener. */
  flushBeforeExit () { this.flush() }

  #arm (ms) {
    if (this.#isClosed) return
    clearTimeout(this.#timer)
    flushAtExit(this)
    if (ms === Infinity) return
    this.#dueAt = monotonicNow() + ms
    this.#timer = setTimeout(() => this.#onTimer(), ms)
    this.#timer.unref()
  }

  async #onTimer () {
    const intervalMs = this.#intervalMs
    const now = monotonicNow()
    // A timer may fire up to 1 ms early; one of more than 24 days fires much earlier.
    if (now + 1 < this.#dueAt) return this.#arm(this.#dueAt - now)
    // Intervals run from start to start. Those that a blocked event loop missed are skipped.
    if (now + 1 > this.#nextAt) this.#nextAt += intervalMs * Math.ceil((now - this.#nextAt + 1) / intervalMs)
    const retryMs = !this.#isRunning && now >= this.#notBefore ? await this.#collectAfterLast(false) : -1
    const untilNext = Math.max(1, this.#nextAt - monotonicNow())
    this.#arm(retryMs >= 0 ? Math.min(retryMs, untilNext) : untilNext)
  }

  #collectAfterLast (isLast) { return (this.#last = this.#last.then(() => this.#collect(isLast))) }

  /** Returns the milliseconds until the next attempt, or NO_RETRY. Never rejects. */
  async #collect (isLast) {
    this.#isRunning = true
    this.#next = null
    this.#notBefore = 0
    let retryMs = NO_RETRY
    try {
      await this.#options.registry.observe()
      retryMs = await this.send(isLast)
    } catch (error) {
      this.#stats.exportsFailed++
      this.#stats.lastError = messageOf(error)
      this.#options.report.failed('LT_WARN_BUG', 'metrics could not be collected', error)
    }
    this.#isRunning = false
    return retryMs
  }

  /** Keeps the process alive while `work` runs, for at most `ms`. */
  async #atMost (ms, work, wasFrozen = false) {
    const late = await this.#options.suppress(() => {
      this.#isHeld = true
      this.#http?.hold(true, wasFrozen)
      return settleWithin(work, ms)
    })
    if (late !== undefined && this.#isClosed) this.#http?.abort()
    this.#isHeld = false
    this.#http?.hold(false)
  }

  // ---- sending a collection

  /** Returns the milliseconds until the next attempt, or NO_RETRY. */
  async send (isLast) {
    if (this.#isOver || this.#http?.isAbsent) return NO_RETRY
    const held = this.#held
    this.#held = null
    const { nowMs, batches } = held ?? await this.#encoded()
    for (let i = 0; i < batches.length; i++) {
      const outcome = await this.#post(batches[i])
      if (outcome.disposition === 'delivered') {
        this.#onDelivered(batches[i], outcome)
        continue
      }
      this.#log.failed(outcome)
      if (outcome.disposition === 'retry') {
        const rest = batches.slice(i)
        return isLast ? this.#onLost(held === null ? rest : rest.concat((await this.#encoded()).batches)) : this.#onRetry(nowMs, rest, outcome)
      } else if (outcome.disposition === 'split' && batches[i].points > 1 && batches[i].length > BATCH_BYTES_MIN) {
        for (const batch of batches.slice(i)) batch.failed()
        this.#options.encoder.batchBytes = Math.floor(batches[i].length / 2)
        return this.send(isLast)
      }
      batches[i].delivered() // rejected for good: its deltas are lost
      this.#log.refused(outcome, batches[i].points)
    }
    this.#deliveredMs = nowMs
    if (this.#options.encoder.takesDeltas) this.#options.registry.startInterval(nowMs)
    return held === null ? NO_RETRY : this.send(isLast) // then send what was recorded since
  }

  /** Encodes all batches in steps, between which other code runs. */
  async #encoded () {
    const nowMs = clock.now()
    const batches = []
    const { encoder, registry } = this.#options
    for (const step of encoder.encode(registry.scopes(), nowMs, this.#deliveredMs)) {
      if (step !== null) batches.push(step)
      else await new Promise((resolve) => setImmediate(resolve))
    }
    return { nowMs, batches }
  }

  #post (batch) {
    if (this.#http === null) {
      this.#http = this.#options.connect()
      this.#http.hold(this.#isHeld)
    }
    const { prefix } = this.#options
    const parts = prefix === null ? [batch.body] : [prefix.head(batch.body.length), batch.body]
    return new Promise((resolve) => this.#http.post(parts, '', resolve))
  }

  #onDelivered (batch, outcome) {
    batch.delivered()
    this.#failures = 0
    this.#log.delivered(outcome, batch.points)
  }

  #onRetry (nowMs, batches, outcome) {
    const areHeld = batches.some(({ deltas }) => deltas.length > 0) // cumulative points need no resend: newer ones include them
    if (areHeld) this.#held = { nowMs, batches }
    this.#failures++
    this.#log.willRetry(outcome, areHeld ? pointsIn(batches) : 0)
    if (outcome.retryAfterMs < 0) return backoffMs(this.#failures, Math.random())
    this.#notBefore = monotonicNow() + outcome.retryAfterMs
    return outcome.retryAfterMs
  }

  #onLost (batches) {
    const points = pointsIn(batches)
    this.#stats.drop('shutdown_deadline', points)
    this.#log.undelivered(points)
    return NO_RETRY
  }
}

function pointsIn (batches) { return batches.reduce((sum, { points }) => sum + points, 0) }

/** The delay of the first collection: 0.5 to 1.5 intervals, so that a fleet that starts at once does not export at the same time. */
function firstAfterMs (intervalMs, random) { return intervalMs * (0.5 + random) }

module.exports = { MetricReader, firstAfterMs }
