'use strict'

// What an answer means for the spans that were sent, and when a collector that did not take them is asked again.
// Pure: no clock, no timer, no socket. Follows the OTLP specification, "OTLP/HTTP Response" and "All Other Responses".

const WAIT_MIN_MS = 100 // a Retry-After of zero must not become a loop
// A Retry-After beyond this is a mistake or an attack; it must not switch tracing off for a day.
const RETRY_AFTER_MAX_MS = 300_000
const RETRY_AFTER_LENGTH_MAX = 64
// A collector's return is noticed within a second. Asking a machine that refuses costs some 150 microseconds, 0.03 % of one core.
const WAIT_MAX_MS = 750
const WAIT_MIN_ANSWERED_MS = 250 // after an answer or silence: the collector may be overloaded
// 404 is final to spans, whose URL is wrong then. Metrics and logs are what a server may do without, as Jaeger does, or not have
// yet: neither is made for so long, then the server is asked again.
const ASK_AGAIN_MS = 55_000 // less than a minute, which is how often metrics are sent
// An attempt is brought forward each time this part of the buffer has been written anew: a full one does not grow any more.
const PART_OF_BUFFER = 1 / 16

// RFC 9110 has three date formats; only the first may be sent. `Date.parse` alone would accept almost anything.
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/
const SECONDS = /^-?\d+$/

// No collector is there, or none that is trusted, so nobody has had the bytes. They are kept as after any failure, but a flush and a
// close do not wait for it.
const UNREACHABLE = new Set([
  'ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ENETUNREACH', 'EHOSTUNREACH', 'EHOSTDOWN', 'ENETDOWN',
  'EADDRNOTAVAIL', 'ENOENT', 'EACCES', 'EPERM', 'ERR_ACCESS_DENIED', 'ERR_PROXY_TUNNEL'
])
const TLS_FAILURE = /^ERR_TLS|^ERR_SSL|CERT|^UNABLE_TO|^HOSTNAME_MISMATCH/

/**
 * Decides what becomes of a batch. Sender carries it out, MetricReader does so for metrics.
 *
 *   delivered    taken
 *   retry        sent again after a wait, see RetrySchedule: an overloaded collector, and no answer at all
 *   split        sent again at once in halves: too much for one request
 *   again        sent again at once as it is: Sender has just put away what was in the way, a chunk's compression
 *   refused      dropped: a second attempt would be answered alike
 *   misdirected  dropped: a success, but of something that is no collector, such as a web page
 *
 * @param {number} status 0: there was no answer, but a failure of the network or a timeout
 * @param {{ format?: string, isTooLong?: boolean, hasProxy?: boolean }} [answer] format: see readAnswer. isTooLong: longer than OTLP allows.
 *   hasProxy: it may be the proxy's
 */
function dispositionOf (status, { format = '', isTooLong = false, hasProxy = false } = {}) {
  if (status >= 200 && status < 300) return isTooLong ? 'refused' : format === 'html' || format === 'grpc' ? 'misdirected' : 'delivered'
  if (status === 0 || status === 429 || status === 502 || status === 503 || status === 504) return 'retry'
  if (status === 407 && hasProxy) return 'retry' // as a tunnel that the proxy does not open: the collector has said nothing
  return status === 413 ? 'split' : 'refused'
}

function isUnreachable (error) {
  return UNREACHABLE.has(error?.code) || TLS_FAILURE.test(error?.code ?? '')
}

/** Milliseconds from WAIT_MIN_MS to RETRY_AFTER_MAX_MS, or -1 if the header says nothing that we understand. */
function retryAfterMs (header, wallNow) {
  if (typeof header !== 'string' || header.length > RETRY_AFTER_LENGTH_MAX) return -1
  const text = header.trim()
  const ms = SECONDS.test(text) ? Number(text) * 1000 : HTTP_DATE.test(text) ? Date.parse(text) - wallNow : NaN
  return Number.isNaN(ms) ? -1 : Math.min(Math.max(ms, WAIT_MIN_MS), RETRY_AFTER_MAX_MS)
}

/**
 * When the next attempt is due. A collector's return is noticed within a second, however long it was away and however full the
 * buffer is, and a collector that is in trouble gets a few requests a second at most.
 *
 *   failure --wait--> attempt         100 to 200 ms, then twice that, never more than WAIT_MAX_MS
 *   failure --fills--> attempt        sooner if spans come so fast that the buffer would turn over meanwhile
 *   failure --Retry-After--> attempt  neither sooner nor later
 */
class RetrySchedule {
  #bytesPerAttempt
  #failures = 0
  #failedAt = 0
  #bytesWritten = 0
  #floorMs = WAIT_MIN_MS

  isAsked = false // the collector has said when

  constructor (bufferBytes) {
    this.#bytesPerAttempt = bufferBytes * PART_OF_BUFFER
  }

  get hasFailed () { return this.#failures > 0 }
  // bytesWritten: since the app began, by the end of the last chunk.
  attempted (bytesWritten) { this.#bytesWritten = bytesWritten }

  delivered () { this.#failures = 0 }

  // Returns when the next attempt is due. `now` is in milliseconds on the monotonic clock, `random` in [0, 1): half of each
  // wait, so that a fleet which lost its collector does not come back in step.
  failed ({ error, retryAfterMs }, now, random) {
    this.#failures++
    this.#failedAt = now
    this.isAsked = retryAfterMs >= 0
    this.#floorMs = error?.code === 'ECONNREFUSED' ? WAIT_MIN_MS : WAIT_MIN_ANSWERED_MS
    return now + (this.isAsked ? retryAfterMs : backoffMs(this.#failures, random))
  }

  // When the next attempt is due at the latest, now that so much has been written; Infinity: as it was.
  dueAt (bytesWritten) {
    if (this.isAsked || bytesWritten - this.#bytesWritten < this.#bytesPerAttempt) return Infinity
    return this.#failedAt + this.#floorMs
  }
}

/** The wait after so many failures, counted from 1; `random` is in [0, 1). */
function backoffMs (failures, random) {
  const ceiling = Math.min(WAIT_MAX_MS, WAIT_MIN_MS * 2 ** Math.min(failures, 16))
  return ceiling / 2 + random * ceiling / 2
}

module.exports = {
  ASK_AGAIN_MS, dispositionOf, isUnreachable, retryAfterMs, RetrySchedule, backoffMs, WAIT_MIN_MS, RETRY_AFTER_MAX_MS, WAIT_MAX_MS, WAIT_MIN_ANSWERED_MS
}
