'use strict'

// Puts what happened to metrics into words for the operator. `report` sees to how often.

const clock = require('../span/clock')
const { setImmediate } = require('../runtime/timers')
const { backoffMs } = require('../export/http/retry')
const { gzip } = require('../export/compressor')
const { MetricEncoder } = require('./encoder')

class MetricLog {
  #report
  #target
  #isOutage = false

  // `url` may hold credentials or an API key in its query: neither is ever said.
  constructor (report, url) {
    const { origin, pathname } = new URL(url)
    this.#report = report
    this.#target = origin + pathname
  }

  // One line of text for `stats().metrics.lastError`.
  failure ({ error, status, message }) {
    if (error !== null) return error.message.includes(error.code) ? error.message : `${error.code}: ${error.message}`
    return `HTTP status ${status}${message === '' ? '' : `: ${message}`}`
  }

  kept (outcome) {
    this.#isOutage = true
    this.#report.loss('metrics', `${this.#target} does not take metrics (${this.failure(outcome)}); newer ones are sent later`)
  }

  delivered () {
    if (!this.#isOutage) return
    this.#isOutage = false
    this.#report.recovered('metrics', `${this.#target} takes metrics again`)
  }

  rejected (points, message) {
    if (points > 0) this.#report.loss('metrics rejected', `${this.#target} rejected ${points} metric points: ${message}`)
    else this.#report.once('LT_WARN_COLLECTOR', `${this.#target} took the metrics and says: ${message}`)
  }

  refused (points, outcome) {
    this.#report.loss('metrics refused', `${this.#target} refused ${points} metric points for good (${this.failure(outcome)})`)
  }

  unknown () {
    this.#report.once('LT_WARN_METRICS_ENDPOINT', `${this.#target} does not exist (HTTP status 404): no metrics are sent to it any more`)
  }

  undelivered (points, outcome) {
    this.#report.loss('metrics shutdown', `${points} metric points were not delivered to ${this.#target} before the app closed (${this.failure(outcome)})`)
  }
}

// Sends a collection of metrics by OTLP. Nothing is kept of one that could not be sent: a cumulative collection is
// worth only its newest copy, and what a delta has not delivered is in the next one. So a retry collects anew.

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
      gzip(parts, (error, compressed) => {
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

module.exports = { MetricLog, MetricSender }
