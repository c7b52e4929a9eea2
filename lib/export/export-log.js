'use strict'

// Puts what happened to spans into words for the operator. `report` sees to how often; nothing that comes
// from the collector is repeated unless it went through `printable` first.
//
// Several applications of a process may mean the same collector, as in a test suite: they share what was logged of it, and
// the first that has something to say says it for all.

const { processState } = require('../runtime/process-state')
const { Losses } = require('../runtime/losses')
const { hintOf } = require('./hints')

// Collectors that are remembered; a test suite may have one for each test.
const TARGETS_MAX = 64

/** What was logged of one collector, by all applications of the process. */
class CollectorLog {
  losses = new Losses()
  logged = new Set() // codes that are logged once
  lost = new Map() // kind → spans lost since that kind was last logged
  lostInOutage = 0
  isOutage = false
}

class ExportLog {
  #report
  #stats
  #url
  #through
  #target
  #shared

  // `url` may hold credentials or an API key in its query: neither is ever said.
  constructor (report, stats, url, proxy = null) {
    this.#report = report
    this.#stats = stats
    this.#url = new URL(url)
    this.#through = proxy === null ? '' : `; through the proxy ${proxy.printableUrl}`
    this.#target = this.#url.origin + this.#url.pathname
    this.#shared = sharedOf(this.#target)
  }

  // One line of text for `stats().lastError`.
  failure (outcome) {
    const { error, status, message } = outcome
    const what = error === null
      ? `HTTP status ${status}${message === '' ? '' : `: ${message}`}`
      : error.message.includes(error.code) ? error.message : `${error.code}: ${error.message}`
    return what + hintOf(outcome, this.#url) + this.#through
  }

  // An attempt failed and its spans wait for the next one.
  kept (outcome, queued) {
    if (outcome.error?.code === 'ERR_ACCESS_DENIED') {
      this.#once('LT_WARN_PERMISSION', `no permission to connect to ${this.#target}: start node with --allow-net`)
    }
    this.#shared.isOutage = true
    this.#report.loss('collector', `${this.#target} does not accept spans (${this.failure(outcome)}); ${queued} are kept and sent later`, this.#shared.losses)
  }

  // One kind for each class of status: a collector that answers ever another one is logged no oftener.
  refused (outcome, spans) {
    const kind = outcome.error === null ? `status ${Math.floor(outcome.status / 100)}xx` : 'connection'
    this.#loss(kind, spans, (sum) => `${this.#target} refused ${sum} spans, which are dropped (${this.failure(outcome)})`)
  }

  // A success that is not OTLP's: whoever answered has thrown the spans away.
  misdirected (outcome, spans) {
    this.#loss('misdirected', spans, (sum) => `${this.#target} is not an OTLP receiver: ${sum} spans are lost (${this.failure(outcome)})`)
  }

  delivered (outcome, rejected) {
    const message = outcome.partialSuccess?.message ?? ''
    if (rejected > 0) this.#loss('rejected', rejected, (sum) => `${this.#target} rejected ${sum} spans: ${message}`)
    else if (message !== '') this.#once('LT_WARN_COLLECTOR', `${this.#target} accepted the spans and says: ${message}`)
    if (outcome.isOversized) this.#once('LT_WARN_RESPONSE', `${this.#target} sent a response of more than 64 KiB: the rest is not read`)
    if (outcome.format === 'other') this.#once('LT_WARN_RESPONSE_TYPE', `${this.#target} sends responses that are not OTLP: is it a collector? The spans count as delivered`)
    if (this.#shared.isOutage) this.#recovered()
  }

  evicted (spans) {
    this.#shared.lostInOutage += spans
    this.#shared.isOutage = true
    this.#loss('queue_full', spans, (sum) => `the buffer is full: ${sum} spans were dropped, the oldest first`)
  }

  cut (bytes, bytesMax, valueBytesMax) {
    this.#report.once('LT_WARN_SPAN_CUT', `a span of ${bytes} bytes is longer than one may be (${bytesMax}: 4 MiB, or half of buffer.maxBytes): its longest values were cut to ${valueBytesMax} bytes, and count as dropped attributes`)
  }

  tooLarge (bytes, bytesMax) {
    this.#loss('too_large', 1, (sum) => `${sum} spans were dropped, because their names and keys alone are longer than ${bytesMax} bytes (the last one has ${bytes})`)
  }

  undelivered (spans) {
    this.#loss('shutdown', spans, (sum) => `${sum} spans were not delivered to ${this.#target} before the app closed, for which closeTimeoutMs is the limit (${this.#stats.lastError ?? 'no answer in time'})`)
  }

  undeliveredAtExit (spans) {
    this.#loss('exit', spans, (sum) => `the process exits with ${sum} spans that ${this.#target} did not accept (${this.#stats.lastError ?? 'no answer in time'})`)
  }

  #recovered () {
    const { losses, lostInOutage } = this.#shared
    const message = `${this.#target} accepts spans again; ${lostInOutage} were lost`
    this.#report.recovered('collector', message, losses) || this.#report.recovered('queue_full', message, losses)
    this.#shared.lostInOutage = 0
    this.#shared.isOutage = false
  }

  #once (code, message) {
    this.#report.once(code, message, this.#shared.logged)
  }

  #loss (kind, spans, say) {
    const { lost, losses } = this.#shared
    const sum = (lost.get(kind) ?? 0) + spans
    lost.set(kind, this.#report.loss(kind, say(sum), losses) ? 0 : sum)
  }
}

function sharedOf (target) {
  const { collectorLogs } = processState
  let shared = collectorLogs.get(target)
  if (shared === undefined) {
    if (collectorLogs.size >= TARGETS_MAX) collectorLogs.delete(collectorLogs.keys().next().value)
    collectorLogs.set(target, shared = new CollectorLog())
  }
  return shared
}

module.exports = { ExportLog }
