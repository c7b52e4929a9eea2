'use strict'

// Reads what a light-trace app reports about its own losses. The report comes over the network, so every value is checked.

const { Malformed } = require('../otlp/proto-reader')
const { plural, safeText } = require('../views/safe-text')

const REASONS_MAX = 32
const LIBRARIES_MAX = 32
const TEXT_MAX = 500

/** @throws Malformed */
function appReport (body) {
  let json
  try {
    json = JSON.parse(body.toString())
  } catch {
    throw new Malformed('the report is not JSON')
  }
  const dropped = Object.entries(json?.dropped ?? {}).slice(0, REASONS_MAX).map(([reason, spans]) => [reason.slice(0, TEXT_MAX), count(spans)])
  return {
    pid: count(json?.pid),
    service: text(json?.service) ?? '',
    dropped: Object.fromEntries(dropped),
    untraced: text(json?.untraced),
    untracedLibraries: Array.isArray(json?.untracedLibraries) ? json.untracedLibraries.slice(0, LIBRARIES_MAX).map(text).filter((name) => name !== null) : [],
    sent: count(json?.sent),
    rejected: count(json?.rejected),
    unsampled: count(json?.unsampled),
    queued: count(json?.queued),
    lastError: text(json?.lastError)
  }
}

/** Why no spans of an app arrive, as far as its report shows. @returns {string | null} */
function adviceOf ({ pid, untraced, sent, unsampled, lastError }) {
  const what = untraced ??
    (sent > 0 ? 'sends its spans elsewhere, because its code sets an exporter, processors or an SDK' : null) ??
    (unsampled > 0 ? `did not sample ${plural(unsampled, 'span')} (OTEL_TRACES_SAMPLER, or a sampler in its code)` : null) ??
    (lastError === null ? null : `cannot send: ${lastError}`)
  return what === null ? null : `process ${pid} ${safeText(what, 300)}`
}

function count (value) {
  return Number.isSafeInteger(value) && value >= 0 ? value : 0
}

function text (value) {
  return typeof value === 'string' ? value.slice(0, TEXT_MAX) : null
}

module.exports = { appReport, adviceOf }
