'use strict'

// When metrics are collected: every interval, at a flush, once more at the end, and sooner where an attempt has failed. There is
// never more than one collection at a time. And what becomes of one: it is sent by OTLP, or written to standard output.
//
// Nothing is kept of a cumulative one that could not be sent: it is worth only its newest copy, so a retry collects anew. Deltas
// are sent again as they were, byte for byte, before what came since: if it was only the answer that was lost, a backend can tell
// by their interval that it has them.

const clock = require('../runtime/timers.js')
const { DURATION_MAX_MS, setTimeout, clearTimeout, setImmediate, monotonicNow } = require('../runtime/timers.js')
const { counted, messageOf } = require('../runtime/report.js')
const { compressBody, refusesZstd } = require('../export/compressor.js')
const { flushAtExit, forgetAtExit, settleWithin } = require('../export/exporter.js')
const { backoffMs } = require('../export/http/retry.js')
const { failureOf } = require('../export/log.js')

const NO_RETRY = -1 // the next one at its interval

// A server that answers 404 has no metrics, as Jaeger, or an ingress is not ready: it is asked with each tenth collection.
const SKIPS_AFTER_404 = 9

// A server that takes less than this in one request takes no metrics.
const BATCH_BYTES_MIN = 16 * 1024

class MetricReader {
  #options
  #stats
  #target // without what may hold credentials or an API key: they are never logged
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
  #failures = 0 // which were logged
  #skips = 0 // collections that are not made
  #held = null // one with deltas, or what is left of it, that the collector may have: { nowMs, batches }
  #isOver = false

  /**
   * @param {{ registry: MetricRegistry, encoder: import('./encoder').MetricEncoder | import('./encoder').MetricJson, url: string,
   *   connect (): Pick<OtlpHttp, 'post' | 'hold' | 'abort' | 'close'>, prefix: ExportRequestPrefix | null, encoding: '' | 'gzip' | 'zstd',
   *   report: Report, stats: object, intervalMs: number, closeTimeoutMs: number, suppress: <T>(fn: () => T) => T }} options
   *   connect: asked when there is something to send; prefix: what stands before a body, if it is not whole
   */
  constructor (options) {
    const { origin, pathname } = new URL(options.url)
    this.#options = options
    this.#stats = options.stats
    this.#target = origin + pathname
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
      this.#stats.exports.failed++
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
    if (this.#isOver || this.#skips-- > 0) return NO_RETRY
    this.#skips = 0
    const held = this.#held
    this.#held = null
    const { nowMs, batches } = held ?? await this.#encoded()
    let accepted = 0
    for (let i = 0; i < batches.length; i++) {
      const outcome = await this.#post(batches[i])
      if (outcome.disposition === 'delivered') {
        accepted += this.#onDelivered(batches[i], outcome)
      } else if (outcome.disposition === 'retry') {
        const rest = batches.slice(i)
        return isLast ? this.#onLost(held === null ? rest : rest.concat((await this.#encoded()).batches), outcome) : this.#onRetry(nowMs, rest, outcome)
      } else if (outcome.disposition === 'split' && batches[i].points > 1 && batches[i].length > BATCH_BYTES_MIN) {
        for (const batch of batches.slice(i)) batch.failed()
        this.#options.encoder.batchBytes = Math.floor(batches[i].length / 2)
        return this.send(isLast)
      } else {
        this.#onRefused(batches[i], outcome)
      }
    }
    this.#deliveredMs = nowMs
    if (this.#options.encoder.takesDeltas) this.#options.registry.startInterval(nowMs)
    if (accepted > 0) {
      if (this.#failures > 0) this.#options.report.recovered('metrics', `${this.#target} accepts metrics again`)
      this.#failures = 0
    }
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

  async #post (batch) {
    if (this.#http === null) {
      this.#http = this.#options.connect()
      this.#http.hold(this.#isHeld)
    }
    const { prefix } = this.#options
    const parts = prefix === null ? [batch.body] : [prefix.head(batch.body.length), batch.body]
    const outcome = await this.#send(parts)
    this.#target = outcome.target || this.#target
    if (!refusesZstd(this.#options.encoding, outcome)) return outcome
    this.#options.encoding = 'gzip'
    return this.#send(parts)
  }

  #send (parts) {
    return new Promise((resolve) => {
      compressBody(this.#options.encoding, parts, (body, encoding) => this.#http.post(body, encoding, resolve))
    })
  }

  /** Returns how many points the collector has taken. */
  #onDelivered (batch, { partialSuccess }) {
    batch.delivered()
    const rejected = Math.min(Math.max(partialSuccess?.rejected ?? 0, 0), batch.points)
    this.#stats.exports.ok++
    this.#stats.points.delivered += batch.points - rejected
    this.#stats.points.rejected += rejected
    const { message = '' } = partialSuccess ?? {}
    if (rejected > 0) this.#loss('metrics rejected', `rejected ${counted(rejected, 'metric point')}: ${message}`)
    else if (message !== '') this.#options.report.warn('LT_WARN_COLLECTOR', `${this.#target} accepted the metrics and says: ${message}`, this.#target)
    return batch.points - rejected
  }

  #onRetry (nowMs, batches, outcome) {
    if (batches.some(({ deltas }) => deltas.length > 0)) this.#held = { nowMs, batches }
    this.#failures++
    this.#loss('metrics', `does not accept metrics (${this.#failed(outcome)}); newer ones are sent later`)
    if (outcome.retryAfterMs < 0) return backoffMs(this.#failures, Math.random())
    this.#notBefore = monotonicNow() + outcome.retryAfterMs
    return outcome.retryAfterMs
  }

  #onLost (batches, outcome) {
    const points = batches.reduce((sum, batch) => sum + batch.points, 0)
    this.#stats.points.dropped += points
    this.#options.report.warn('LT_WARN_LOSS', `${counted(points, 'metric point')} not delivered to ${this.#target} before the app closed (${this.#failed(outcome)})`, 'metrics shutdown')
    return NO_RETRY
  }

  /** For good: what a delta held is lost, and counted. */
  #onRefused (batch, outcome) {
    batch.delivered()
    const why = this.#failed(outcome)
    this.#stats.points.dropped += batch.points
    if (outcome.status !== 404) return this.#loss('metrics refused', `refused ${counted(batch.points, 'metric point')} for good (${why})`)
    this.#skips = SKIPS_AFTER_404
    this.#options.report.warn('LT_WARN_METRICS_ENDPOINT', `${this.#target} answers 404: it may not take metrics. It is asked again with each tenth collection; metrics: { exporter: 'none' } stops that`)
  }

  /** Counts a failure. Returns it as one line of text. */
  #failed (outcome) {
    this.#stats.exports.failed++
    return (this.#stats.lastError = failureOf(outcome))
  }

  #loss (kind, what) { this.#options.report.warn('LT_WARN_LOSS', `${this.#target} ${what}`, kind) }
}

/** When the first collection is due: after half an interval to one and a half, so that a fleet which starts at once does not export at once. */
function firstAfterMs (intervalMs, random) { return intervalMs * (0.5 + random) }

module.exports = { MetricReader, firstAfterMs }
