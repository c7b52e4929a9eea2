'use strict'

// What an answer means for the spans that were sent. Pure: no clock, no timer, no socket.
// Follows the OTLP specification, "OTLP/HTTP Response" and "All Other Responses".

// Less than this is no wait: a Retry-After of zero must not become a loop.
const WAIT_MIN_MS = 100
// A Retry-After beyond this is a mistake or an attack; it must not switch tracing off for a day.
const RETRY_AFTER_MAX_MS = 300_000
// Beyond this many digits a number of seconds is over the cap anyway.
const RETRY_AFTER_LENGTH_MAX = 64

// RFC 9110 has three date formats; only the first may be sent. `Date.parse` alone would accept almost anything.
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/
const SECONDS = /^-?\d+$/

// Nobody is there, or nobody that we would talk to: asking again at once cannot help.
const UNREACHABLE = new Set([
  'ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ENETUNREACH', 'EHOSTUNREACH', 'EHOSTDOWN', 'ENETDOWN',
  'EADDRNOTAVAIL', 'ENOENT', 'EACCES', 'EPERM', 'ERR_ACCESS_DENIED', 'ERR_PROXY_TUNNEL'
])

module.exports = { dispositionOf, isUnreachable, retryAfterMs, WAIT_MIN_MS, RETRY_AFTER_MAX_MS }

// What becomes of a batch that was answered with this status.
function dispositionOf (status) {
  if (status >= 200 && status < 300) return 'delivered'
  if (status === 429 || status === 502 || status === 503 || status === 504) return 'retry'
  return status === 413 ? 'split' : 'refused'
}

function isUnreachable (error) {
  return UNREACHABLE.has(error?.code) || /^ERR_TLS|^ERR_SSL|CERT|^UNABLE_TO|^HOSTNAME_MISMATCH/.test(error?.code ?? '')
}

// Milliseconds from WAIT_MIN_MS to RETRY_AFTER_MAX_MS, or -1 where the header says nothing that we understand.
function retryAfterMs (header, wallNow) {
  if (typeof header !== 'string' || header.length > RETRY_AFTER_LENGTH_MAX) return -1
  const text = header.trim()
  if (SECONDS.test(text)) return clampWait(Number(text) * 1000)
  if (!HTTP_DATE.test(text)) return -1
  const at = Date.parse(text)
  return Number.isNaN(at) ? -1 : clampWait(at - wallNow)
}

function clampWait (ms) {
  return Math.min(Math.max(ms, WAIT_MIN_MS), RETRY_AFTER_MAX_MS)
}
