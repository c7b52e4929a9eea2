'use strict'

// Decides what a response means for the spans that were sent, and when to retry spans that the collector did not take.
// Pure: no clock, no timer, no socket. Follows the OTLP specification, "OTLP/HTTP Response" and "All Other Responses".

const WAIT_MIN_MS = 100 // a Retry-After of zero must not cause a busy loop
// A longer Retry-After is a mistake or an attack. It must not turn tracing off for a day.
const RETRY_AFTER_MAX_MS = 300_000
const RETRY_AFTER_LENGTH_MAX = 64
// Short enough to notice within a second that a collector is back. A refused connection costs about 150 microseconds, 0.03 % of one
// core.
const WAIT_MAX_MS = 750
const WAIT_MIN_ANSWERED_MS = 250 // after a response or a timeout: the collector may be overloaded
// For spans a 404 is final, because the URL is wrong. Metrics and logs may be missing on the server, as in Jaeger, or not available yet.
// light-trace then stops producing that signal for this long before it tries again.
const ASK_AGAIN_MS = 55_000 // less than a minute, the default interval of metrics
// An attempt is made early each time this fraction of the buffer has been rewritten. The buffer's size does not show that, because
// a full buffer does not grow.
const PART_OF_BUFFER = 1 / 16

// RFC 9110 has three date formats, but only the first may be sent. `Date.parse` alone would accept almost anything.
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/
const SECONDS = /^-?\d+$/

// The collector cannot be reached or is not trusted, so it has not received the bytes. They are kept as after any failure, but `flush`
// and `close` do not wait for the collector.
const UNREACHABLE = new Set([
  'ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ENETUNREACH', 'EHOSTUNREACH', 'EHOSTDOWN', 'ENETDOWN',
  'EADDRNOTAVAIL', 'ENOENT', 'EACCES', 'EPERM', 'ERR_ACCESS_DENIED', 'ERR_PROXY_TUNNEL'
])
const TLS_FAILURE = /^ERR_TLS|^ERR_SSL|CERT|^UNABLE_TO|^HOSTNAME_MISMATCH/

/**
 * Decides what happens to a batch. Sender carries out the decision, or MetricReader for metrics.
 *
 *   delivered    the collector accepted it
 *   retry        sent again after a wait, see RetrySchedule: the collector is overloaded or did not respond
 *   split        sent again immediately, in halves: too large for one request
 *   again        sent again immediately, uncompressed: set by Sender once it has decompressed a chunk that was refused as gzip
 *   refused      dropped: a second attempt would fail in the same way
 *   misdirected  dropped: a success, but the server is not a collector, as when it answers with a web page
 *
 * @param {number} status 0: no response, because of a network failure or a timeout
 * @param {{ format?: string, isTooLong?: boolean, hasProxy?: boolean }} [answer] format: see readAnswer. isTooLong: longer than OTLP allows.
 *   hasProxy: the response may be the proxy's
 */
function dispositionOf (status, { format = '', isTooLong = false, hasProxy = false } = {}) {
  if (status >= 200 && status < 300) return isTooLong ? 'refused' : format === 'html' || format === 'grpc' ? 'misdirected' : 'delivered'
  if (status === 0 || status === 429 || status === 502 || status === 503 || status === 504) return 'retry'
  if (status === 407 && hasProxy) return 'retry' // the same as a tunnel that the proxy refuses: the collector has not answered
  return status === 413 ? 'split' : 'refused'
}

function isUnreachable (error) {
  return UNREACHABLE.has(error?.code) || TLS_FAILURE.test(error?.code ?? '')
}

/** Returns milliseconds from WAIT_MIN_MS to RETRY_AFTER_MAX_MS, or -1 if the header is missing or invalid. */
function retryAfterMs (header, wallNow) {
  if (typeof header !== 'string' || header.length > RETRY_AFTER_LENGTH_MAX) return -1
  const text = header.trim()
  const ms = SECONDS.test(text) ? Number(text) * 1000 : HTTP_DATE.test(text) ? Date.parse(text) - wallNow : NaN
  return Number.isNaN(ms) ? -1 : Math.min(Math.max(ms, WAIT_MIN_MS), RETRY_AFTER_MAX_MS)
}

/**
 * Decides when the next attempt is due. It notices within a second that a collector is back, however long the outage was and however
 * full the buffer is. A collector in trouble gets a few requests a second at most.
 *
 *   failure --wait--> attempt         100 to 200 ms, doubled after each failure, never more than WAIT_MAX_MS
 *   failure --fills--> attempt        sooner if spans arrive so fast that they would replace the buffer's content meanwhile
 *   failure --Retry-After--> attempt  neither sooner nor later
 */
class RetrySchedule {
  #bytesPerAttempt
  #failures = 0
  #failedAt = 0
  #bytesWritten = 0
  #floorMs = WAIT_MIN_MS

  isAsked = false // the collector has named the time

  constructor (bufferBytes) {
    this.#bytesPerAttempt = bufferBytes * PART_OF_BUFFER
  }

  get hasFailed () { return this.#failures > 0 }
  // bytesWritten: since the app started, up to the last sealed chunk.
  attempted (bytesWritten) { this.#bytesWritten = bytesWritten }

  delivered () { this.#failures = 0 }

  // Returns when the next attempt is due. `now` is in milliseconds on the monotonic clock. `random` in [0, 1) sets half of each wait, so
  // that the processes of a fleet do not retry in step after an outage.
  failed ({ error, retryAfterMs }, now, random) {
    this.#failures++
    this.#failedAt = now
    this.isAsked = retryAfterMs >= 0
    this.#floorMs = error?.code === 'ECONNREFUSED' ? WAIT_MIN_MS : WAIT_MIN_ANSWERED_MS
    return now + (this.isAsked ? retryAfterMs : backoffMs(this.#failures, random))
  }

  // Returns the latest time for the next attempt, given the bytes written so far, or Infinity if it does not change.
  dueAt (bytesWritten) {
    if (this.isAsked || bytesWritten - this.#bytesWritten < this.#bytesPerAttempt) return Infinity
    return this.#failedAt + this.#floorMs
  }
}

/** Returns the wait after the given number of failures, at least 1. `random` is in [0, 1). */
function backoffMs (failures, random) {
  const ceiling = Math.min(WAIT_MAX_MS, WAIT_MIN_MS * 2 ** Math.min(failures, 16))
  return ceiling / 2 + random * ceiling / 2
}

module.exports = {
  ASK_AGAIN_MS, dispositionOf, isUnreachable, retryAfterMs, RetrySchedule, backoffMs, WAIT_MIN_MS, RETRY_AFTER_MAX_MS, WAIT_MAX_MS, WAIT_MIN_ANSWERED_MS
}
