'use strict'

// When metrics are collected: every interval, at a flush, once more at the end, and sooner where an attempt has failed. There is
// never more than one collection at a time. And what becomes of one: it is sent by OTLP, or written to standard output.
//
// Nothing is kept of a cumulative one that could not be sent: it is worth only its newest copy, so a retry collects anew. Deltas
// are sent again as they were, byte for byte, before what came since: if it was only the answer that was lost, a backend can tell
// by their interval that it has them.

const clock = require('../../runtime/timers.js')
const { DURATION_MAX_MS, setTimeout, clearTimeout, setImmediate, monotonicNow } = require('../../runtime/timers.js')
const { messageOf } = require('../../runtime/report.js')
const { flushAtExit, forgetAtExit, settleWithin } = require('../../export/exporter.js')
const { backoffMs } = require('../../export/http/retry.js')

const NO_RETRY = -1 // the next one at its interval

// A server that takes less than this in one request takes no metrics.
const BATCH_BYTES_MIN = 16 * 1024

class MetricReader {
  #options
  #stats
  #log
  #timer = null
  #intervalMs
  #nextAt
  #dueAt = 0 // when the timer has something to do: at the next interval, or at a retry
  #notBefore = 0 // a collector has asked for a pause until then
  #isRunning = false
  #last = Promise.resolve(NO_RETRY) // the collection that began last, or waits for the one before it
  #next = null // one that has not begun, where a flush waits for it
  #isClosed = false
  #http = null // once there is something to send
  #isHeld = false
  #deliveredMs = -Infinity // when what the collector has was collected
  #failures = 0 // since something was delivered
  #held = null // one with deltas, or what is left of it, that the collector may have: { nowMs, batches }
  #isOver = false

  /**
   * @param {{ registry: MetricRegistry, encoder: import('./encoder').MetricEncoder | import('./encoder').MetricJson, log: import('../../export/log').ExportLog,
   *   connect (): Pick<OtlpHttp, 'post' | 'hold' | 'abort' | 'close'>, prefix: ExportRequestPrefix | null,
   *   report: Report, stats: import('../../export/pipeline').Stats, intervalMs: number, closeTimeoutMs: number, suppress: <T>(fn: () => T) => T }} options
   *   connect: asked when there is something to send; prefix: what stands before a body, if it is not whole
   */
  constructor (options) {
    this.#options = options
    this.#stats = options.stats
    this.#log = options.log
    this.#intervalMs = options.intervalMs < DURATION_MAX_MS ? options.intervalMs : Infinity // only at a flush, and at the end
    const firstMs = firstAfterMs(this.#intervalMs, Math.random())
    this.#nextAt = monotonicNow() + firstMs
    options.suppress(() => this.#arm(firstMs))
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
    this.#isOver = true
    this.#http?.close()
  }

  /** Called by the one `beforeExit` listener of the process. */
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
    // A timer may fire within 1 ms before its time; one of more than 24 days fires earlier.
    if (now + 1 < this.#dueAt) return this.#arm(this.#dueAt - now)
    // From start to start, and what a blocked loop has missed is not made up for.
    if (now + 1 > this.#nextAt) this.#nextAt += intervalMs * Math.ceil((now - this.#nextAt + 1) / intervalMs)
    const retryMs = !this.#isRunning && now >= this.#notBefore ? await this.#collectAfterLast(false) : -1
    const untilNext = Math.max(1, this.#nextAt - monotonicNow())
    this.#arm(retryMs >= 0 ? Math.min(retryMs, untilNext) : untilNext)
  }

  #collectAfterLast (isLast) { return (this.#last = this.#last.then(() => this.#collect(isLast))) }

  /** Returns when the next attempt is due. Never rejects. */
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

  /** Holds the process while `work` lasts, at most `ms`. */
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

  // ---- what becomes of a collection

  /** Returns when the next attempt is due. */
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
      batches[i].delivered() // for good: what a delta held is lost
      this.#log.refused(outcome, batches[i].points)
    }
    this.#deliveredMs = nowMs
    if (this.#options.encoder.takesDeltas) this.#options.registry.startInterval(nowMs)
    return held === null ? NO_RETRY : this.send(isLast) // what came since
  }

  /** All batches, made in steps between which others run. */
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
    const areHeld = batches.some(({ deltas }) => deltas.length > 0) // of a cumulative one newer ones are sent, which say as much
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

/** When the first collection is due: after half an interval to one and a half, so that a fleet which starts at once does not export at once. */
function firstAfterMs (intervalMs, random) { return intervalMs * (0.5 + random) }

module.exports = { MetricReader, firstAfterMs }
