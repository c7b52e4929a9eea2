'use strict'

// Sends a collection of metrics by OTLP. Nothing is kept of one that could not be sent: a cumulative collection is
// worth only its newest copy, and what a delta has not delivered is in the next one. So a retry collects anew.

const clock = require('../span/clock')
const { MetricEncoder } = require('../otlp/metric-encoder')
const { setImmediate } = require('../runtime/timers')
const { backoffMs } = require('./transport/retry')
const { gzip } = require('./gzip')

const GZIP_LEVEL = 1
// A server that takes less than this in one request takes no metrics.
const BATCH_BYTES_MIN = 16 * 1024

const NO_RETRY = Object.freeze({ retryMs: -1, isAsked: false })

class MetricSender {
  #registry
  #connect
  #http = null
  #prefix
  #isGzip
  #log
  #encoder = new MetricEncoder()
  #stats
  #deliveredMs = -Infinity // when what the collector has was collected
  #failures = 0
  #isUnknown = false // the server has no metrics
  #isClosed = false
  #isHeld = false

  /**
   * @param {{ registry: MetricRegistry, connect (): OtlpHttp, prefix: ExportRequestPrefix, isGzip: boolean, log: MetricLog, stats: object }} options
   *   `connect` makes an OtlpHttp, or what its `share` does; it is asked when there is something to send
   */
  constructor ({ registry, connect, prefix, isGzip, log, stats }) {
    this.#registry = registry
    this.#connect = connect
    this.#prefix = prefix
    this.#isGzip = isGzip
    this.#log = log
    this.#stats = stats
  }

  hold (isHeld) {
    this.#isHeld = isHeld
    this.#http?.hold(isHeld)
  }

  abort () {
    this.#http?.abort()
  }

  close () {
    this.#isClosed = true
    this.#http?.close()
  }

  /** Collects and sends. See MetricReader. */
  async send (isLast) {
    if (this.#isUnknown || this.#isClosed) return NO_RETRY
    const nowMs = clock.now()
    const batches = await this.#encode(nowMs)
    this.#stats.points = batches.reduce((sum, { points }) => sum + points, 0)
    for (let i = 0; i < batches.length; i++) {
      const outcome = await this.#post(batches[i])
      if (outcome.disposition === 'delivered') {
        this.#onDelivered(batches[i], outcome)
      } else if (outcome.disposition === 'retry') {
        return this.#onRetry(batches.slice(i), outcome, isLast)
      } else if (outcome.disposition === 'split' && batches[i].byteLength > BATCH_BYTES_MIN) {
        for (const batch of batches.slice(i)) batch.failed()
        this.#encoder.batchBytes = Math.floor(batches[i].byteLength / 2)
        return this.send(isLast)
      } else {
        this.#onRefused(batches[i], outcome)
      }
    }
    this.#deliveredMs = nowMs
    this.#failures = 0
    this.#registry.startInterval(nowMs)
    if (batches.length > 0) this.#log.delivered()
    return NO_RETRY
  }

  /** All batches, made in steps between which others run. */
  async #encode (nowMs) {
    const batches = []
    for (const step of this.#encoder.encode(this.#registry.scopes(), nowMs, this.#deliveredMs)) {
      if (step !== null) batches.push(step)
      else await new Promise((resolve) => setImmediate(resolve))
    }
    return batches
  }

  #post (batch) {
    if (this.#http === null) {
      this.#http = this.#connect()
      this.#http.hold(this.#isHeld)
    }
    const parts = [this.#prefix.head(batch.byteLength), ...batch.parts]
    batch.parts = [] // a retry makes its own
    return new Promise((resolve) => {
      if (!this.#isGzip) return this.#http.post(parts, false, resolve)
      gzip(parts, GZIP_LEVEL, (error, compressed) => {
        if (error === null) this.#http.post([compressed], true, resolve)
        else this.#http.post(parts, false, resolve)
      })
    })
  }

  #onDelivered (batch, { partialSuccess }) {
    batch.delivered()
    const rejected = Math.min(Math.max(partialSuccess?.rejected ?? 0, 0), batch.points)
    this.#stats.exportsOk++
    this.#stats.delivered += batch.points - rejected
    this.#stats.rejected += rejected
    if (partialSuccess !== null && (rejected > 0 || partialSuccess.message !== '')) this.#log.rejected(rejected, partialSuccess.message)
  }

  #onRetry (batches, outcome, isLast) {
    for (const batch of batches) batch.failed()
    this.#failures++
    this.#stats.exportsFailed++
    this.#stats.lastError = this.#log.failure(outcome)
    const points = batches.reduce((sum, batch) => sum + batch.points, 0)
    if (isLast) {
      this.#stats.dropped += points
      this.#log.undelivered(points, outcome)
      return NO_RETRY
    }
    this.#log.kept(outcome)
    const isAsked = outcome.retryAfterMs >= 0
    return { retryMs: isAsked ? outcome.retryAfterMs : backoffMs(this.#failures, Math.random()), isAsked }
  }

  /** For good: what a delta held is lost, and counted. */
  #onRefused (batch, outcome) {
    batch.delivered()
    this.#stats.exportsFailed++
    this.#stats.dropped += batch.points
    this.#stats.lastError = this.#log.failure(outcome)
    this.#isUnknown = outcome.status === 404
    if (this.#isUnknown) this.#log.unknown()
    else this.#log.refused(batch.points, outcome)
  }
}

module.exports = { MetricSender }
