'use strict'

// Puts what happened to metrics into words for the operator. `report` sees to how often.

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

module.exports = { MetricLog }
