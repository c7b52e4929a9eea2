'use strict'

// Makes the summary of a trace: its line in the list, and its entry in the answer of GET /api/traces.

const { kindName } = require('../otlp/span-detail')
const { blockedOf } = require('../views/blocked')
const { repeatsIn } = require('../views/repeats')
const { KIND_SERVER } = require('../otlp/names')

const SERVICES_MAX = 20

// A bit of a reason's rank: the error is of the request itself.
const OF_REQUEST = 2

/** The summary is made once for each version of the trace. */
function summaryOf (trace) {
  if (trace.summaryVersion === trace.version) return trace.summary
  trace.summary = summarize(trace)
  trace.summaryVersion = trace.version
  return trace.summary
}

function summarize (trace) {
  const entry = trace.entry
  return {
    id: trace.id,
    order: trace.order,
    ...entryOf(entry),
    services: servicesOf(trace),
    state: trace.failed ? 'error' : 'ok',
    error: reasonOf(trace),
    startMs: startOf(trace),
    durationMs: rounded(trace.root !== null ? trace.root.durationMs : extent(trace.spans)),
    spans: trace.spans.length,
    errors: trace.errors,
    lines: trace.lines.length,
    root: trace.root !== null,
    orphans: trace.orphans,
    late: trace.late,
    duplicates: trace.duplicates,
    dropped: trace.dropped,
    unrouted: trace.spans.some(isUnrouted),
    blocked: blockedIn(trace),
    repeats: repeatsIn(trace),
    receivedMs: trace.receivedMs,
    updatedMs: trace.updatedMs,
    bytes: trace.bytes
  }
}

/** When a trace started, by the clock of its entry span. */
function startOf ({ entry, receivedMs }) {
  return entry === null ? receivedMs : entry.startMs
}

// A trace that did not fail shows only an error of the request itself, for example a 409 that it threw, and not the error of a call.
function reasonOf ({ failed, reason }) {
  if (reason === null || !(failed || reason.rank & OF_REQUEST)) return null
  const { type, message, exception } = reason
  return { type, message, exception }
}

const NO_ENTRY = { name: '', service: '', kind: 'INTERNAL', route: null, method: null, path: null, status: null }

// A trace has no entry if none of its spans could be kept.
function entryOf (entry) {
  if (entry === null) return NO_ENTRY
  return {
    name: entry.name,
    service: entry.origin.service,
    kind: kindName(entry.kind),
    route: routeOf(entry),
    method: entry.http?.method || null,
    path: entry.http?.path || null,
    status: entry.code === 0 ? null : entry.code
  }
}

/** For example `GET /users/:id`, or null if the span is not a request or has no route. */
function routeOf ({ kind, http }) {
  if (kind !== KIND_SERVER || http === null || http.route === '') return null
  return http.method === '' ? http.route : `${http.method} ${http.route}`
}

/** Whether the span is an HTTP request that was answered before it reached a route. */
function isUnrouted (span) {
  return span.kind === KIND_SERVER && span.http !== null && span.http.method !== '' && span.http.route === ''
}

function servicesOf ({ spans, origins }) {
  if (origins.length === 1) return [{ name: origins[0].service, spans: spans.length }]
  const counts = new Map()
  for (const { origin } of spans) counts.set(origin.service, (counts.get(origin.service) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a).slice(0, SERVICES_MAX).map(([name, count]) => ({ name, spans: count }))
}

/** The longest blocked loop that a request of the trace recorded, and its span. Loading a module is not the fault of the application. */
function blockedIn ({ spans }) {
  let longest = null
  for (const span of spans) {
    const blocked = blockedOf(span)
    if (blocked !== null && !blocked.isLoader && !(longest?.ms >= blocked.ms)) longest = { ...blocked, span: span.id }
  }
  if (longest === null) return null
  const { id, ms, role, culprit, place, span } = longest
  return { id, ms, role, culprit, place, span }
}

function extent (spans) {
  if (spans.length === 0) return 0
  let start = Infinity
  let end = -Infinity
  for (const span of spans) {
    start = Math.min(start, span.startMs)
    end = Math.max(end, span.startMs + span.durationMs)
  }
  return end - start
}

/** Rounds to a microsecond. A double of milliseconds since 1970 is hardly more exact. */
function rounded (ms) {
  return Math.round(ms * 1e3) / 1e3
}

module.exports = { OF_REQUEST, summaryOf, startOf, routeOf, rounded }
