'use strict'

// Puts what happened to spans into words for the operator. `report` sees to how often; nothing that comes
// from the collector is repeated unless it went through `printable` first.

class ExportLog {
  #report
  #stats
  #target
  #lost = new Map() // kind → spans lost since that kind was last logged
  #lostInOutage = 0
  #isOutage = false

  // `url` may hold credentials or an API key in its query: neither is ever said.
  constructor (report, stats, url) {
    const { origin, pathname } = new URL(url)
    this.#report = report
    this.#stats = stats
    this.#target = origin + pathname
  }

  // One line of text for `stats().lastError`.
  failure ({ error, status, message }) {
    if (error !== null) return error.message.includes(error.code) ? error.message : `${error.code}: ${error.message}`
    return `HTTP status ${status}${message === '' ? '' : `: ${message}`}`
  }

  // An attempt failed and its spans wait for the next one.
  kept (outcome, queued) {
    if (outcome.error?.code === 'ERR_ACCESS_DENIED') {
      this.#report.once('LT_WARN_PERMISSION', `no permission to connect to ${this.#target}: start node with --allow-net`)
    }
    this.#isOutage = true
    this.#report.loss('collector', `${this.#target} does not take spans (${this.failure(outcome)}${hint(outcome)}); ${queued} are kept and sent later`)
  }

  refused (outcome, spans) {
    const kind = outcome.error === null ? `status ${outcome.status}` : outcome.error.code
    this.#loss(kind, spans, (sum) => `${this.#target} refused ${sum} spans for good (${this.failure(outcome)})`)
  }

  delivered (outcome, rejected) {
    const message = outcome.partialSuccess?.message ?? ''
    if (rejected > 0) this.#loss('rejected', rejected, (sum) => `${this.#target} rejected ${sum} spans: ${message}`)
    else if (message !== '') this.#report.once('LT_WARN_COLLECTOR', `${this.#target} took the spans and says: ${message}`)
    if (outcome.isOversized) this.#report.once('LT_WARN_RESPONSE', `${this.#target} answers with more than 64 KiB: the rest is not read`)
    if (this.#isOutage) this.#recovered()
  }

  evicted (spans) {
    this.#lostInOutage += spans
    this.#isOutage = true
    this.#loss('queue_full', spans, (sum) => `the buffer is full: ${sum} spans were dropped, the oldest first`)
  }

  undelivered (spans) {
    this.#report.loss('shutdown', `${spans} spans were not delivered to ${this.#target} before the app closed, for which closeTimeoutMs is the limit (${this.#stats.lastError ?? 'no answer in time'})`)
  }

  undeliveredAtExit (spans) {
    this.#report.loss('exit', `the process exits with ${spans} spans that ${this.#target} did not take (${this.#stats.lastError ?? 'no answer in time'})`)
  }

  #recovered () {
    const message = `${this.#target} takes spans again; ${this.#lostInOutage} were lost`
    this.#report.recovered('collector', message) || this.#report.recovered('queue_full', message)
    this.#lostInOutage = 0
    this.#isOutage = false
  }

  #loss (kind, spans, say) {
    const sum = (this.#lost.get(kind) ?? 0) + spans
    this.#lost.set(kind, this.#report.loss(kind, say(sum)) ? 0 : sum)
  }
}

// What talks HTTP/2 from the first byte is most likely the gRPC port next door.
function hint ({ error }) {
  return error?.code === 'EBADMSG' ? '; OTLP over HTTP usually is port 4318, 4317 is gRPC' : ''
}

module.exports = { ExportLog }
