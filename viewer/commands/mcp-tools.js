'use strict'

// The tools of `light-trace mcp`. They answer in text, in the same form as in the terminal.

const { METRIC_KINDS } = require('../otlp/names')
const { blockedTogether } = require('../views/blocked')
const { repeatText } = require('../views/repeats')
const { plural, safeText } = require('../views/safe-text')
const { duration } = require('../views/text')
const { listMetrics, getMetric } = require('./metric-client')
const { listServices } = require('./services')
const { BY, statisticsText } = require('../views/trace-statistics')
const { reasonText } = require('../views/waits')

const LIMIT_DEFAULT = 20
const LIMIT_MAX = 100

const limit = { type: 'integer', minimum: 1, maximum: LIMIT_MAX, description: `How many, ${LIMIT_DEFAULT} by default` }
const where = { type: 'array', items: { type: 'string' }, description: 'Conditions that all hold, such as "tenant.id = a", "http.route != /health", "duration > 100ms", "!error"' }
const route = { type: 'string', description: 'As listed, such as GET /users/:id' }

const TRACE_ID = '32 hex digits, the first 8 or more of them, or last, slowest, failed'

const TOOLS = [
  tool('list_traces', 'Recent requests in the order of arrival, the last first: id, name, status, duration, service, spans, when each started, error. Filters are optional.', {
    status: { type: 'string', description: 'error, ok, an HTTP status such as 404, or a class such as 5xx' },
    route,
    service: { type: 'string' },
    q: { type: 'string', description: 'Text in names, attributes or messages' },
    where,
    limit
  }),
  tool('get_trace', 'One request as a tree of spans and log lines with durations, errors and, unless attributes is false, every attribute.', {
    id: { type: 'string', description: TRACE_ID },
    attributes: { type: 'boolean' }
  }, ['id']),
  tool('get_trace_statistics', 'Where the time of one request went: calls, own time, total, average, min, max and failures, by span name or by service, the most own time first.', {
    id: { type: 'string', description: TRACE_ID },
    by: { type: 'string', enum: BY, description: 'By span name (default) or by service' }
  }, ['id']),
  tool('search_logs', 'Log lines in the order of arrival, the last first: time, level, text, attributes, service, and the trace that each belongs to. Filters are optional.', {
    level: { type: 'string', description: 'At least trace, debug, info, warn, error or fatal' },
    q: { type: 'string', description: 'Text in the message or an attribute' },
    where,
    limit
  }),
  tool('slowest_requests', 'The slowest of the stored requests, and each route with its count, errors, p50 and p99.', { route, limit }),
  tool('recent_errors', 'Exceptions, each once with its count and an example, and the failed requests.', { limit }),
  tool('list_metrics', 'Metrics of the last hour: name, kind, unit, number of series, services, attributes.', { service: { type: 'string' } }),
  tool('get_metric', 'One metric: each series with its newest rate or value, percentiles, course over time and traces as examples.', {
    name: { type: 'string', description: 'As listed' },
    kind: { type: 'string', enum: METRIC_KINDS, description: 'As listed, if several metrics have this name' },
    service: { type: 'string' },
    by: { type: 'string', description: 'Attributes that separate series, such as http.route,error.type; the others are merged. All by default' },
    last: { type: 'string', description: 'How far back, such as 5m; 15m by default, 1h at most' }
  }, ['name']),
  tool('get_services', 'Who calls whom: services, and the databases, hosts and queues that they call, with calls, failures, rate, p50, p99, the slowest and the last failed trace of each.', {
    service: { type: 'string', description: 'Only what this service calls and what calls it, directly or not' },
    side: { type: 'string', description: 'With service: calls for only what it depends on, callers for only what depends on it' },
    last: { type: 'string', description: 'Only the time since, such as 15m or 1h' }
  })
]

const CALLS = { list_traces: listTraces, get_trace: getTrace, get_trace_statistics: getStatistics, search_logs: logs, slowest_requests: slowest, recent_errors: errors, list_metrics: listMetrics, get_metric: getMetric, get_services: getServices }

class WrongArguments extends Error {}

function tool (name, description, properties, required = []) {
  return {
    name,
    description,
    inputSchema: { type: 'object', properties, required, additionalProperties: false },
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
  }
}

/** @returns {Promise<string>} @throws WrongArguments, or the viewer's error */
function callTool (client, name, given) {
  const { inputSchema } = TOOLS.find((each) => each.name === name)
  check(given, inputSchema)
  return CALLS[name](client, given)
}

function check (given, { properties, required }) {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw new WrongArguments('arguments must be an object')
  for (const name of required) if (given[name] === undefined) throw new WrongArguments(`${name} is required`)
  for (const [name, value] of Object.entries(given)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (property === undefined) throw new WrongArguments(`unknown argument ${name.slice(0, 100)}`)
    const fits = property.type === 'array' ? Array.isArray(value) && value.every((each) => typeof each === 'string') : property.type === 'integer' ? Number.isInteger(value) && value >= property.minimum && value <= property.maximum : typeof value === property.type // eslint-disable-line valid-typeof
    if (!fits) throw new WrongArguments(`${name} must be ${property.type === 'array' ? 'a list of strings' : property.type === 'integer' ? `a whole number from ${property.minimum} to ${property.maximum}` : `a ${property.type}`}`)
  }
}

// A list is a parameter that is repeated.
function queryOf (given) {
  return new URLSearchParams(Object.entries(given).flatMap(([name, value]) => [value].flat().map((each) => [name, String(each)])))
}

async function listTraces (client, { limit: count = LIMIT_DEFAULT, ...filters }) {
  const { traces, total, more, incomplete } = await client.json(`/api/traces?${queryOf({ ...filters, limit: count })}`)
  if (traces.length === 0 && !incomplete) return total === 0 ? 'No trace has been received yet.' : `No match in ${plural(total, 'trace')}.`
  return [...linesOf(traces), ...olderText({ more, incomplete })].join('\n')
}

function getTrace (client, { id, attributes = true }) {
  return client.text(`/api/traces/${encodeURIComponent(id)}/text${attributes ? '?attributes' : ''}`)
}

async function getStatistics (client, { id, by = 'name' }) {
  return statisticsText(await client.json(`/api/traces/${encodeURIComponent(id)}/statistics?by=${encodeURIComponent(by)}`))
}

async function logs (client, { limit: count = LIMIT_DEFAULT, ...filters }) {
  const { lines, total, more, incomplete } = await client.json(`/api/logs?${queryOf({ ...filters, limit: count })}`)
  if (lines.length === 0 && !incomplete) return total === 0 ? 'No log line has been received yet.' : `No match in ${plural(total, 'line')}.`
  const shown = lines.map(({ timeMs, level, text, rest, service, trace }) =>
    `${isoTime(timeMs)}  ${(level || 'log').toUpperCase()}  ${safeText(text)}  ${safeText(rest)}  ${safeText(service)}  ${trace ?? '(no trace)'}`)
  return [...shown, ...olderText({ more, incomplete })].join('\n')
}

function olderText ({ more = false, incomplete }) {
  if (incomplete) return ['… the older ones could not be searched in time']
  return more ? ['… and older ones'] : []
}

// A sender's time may be outside the range of Date.
function isoTime (ms) {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : String(ms)
}

async function slowest (client, { route: of, limit: count = LIMIT_DEFAULT }) {
  const { traces, total, incomplete } = await client.json(`/api/traces?${queryOf({ sort: 'slowest', limit: count, ...(of !== undefined && { route: of }) })}`)
  const { routes } = await client.json('/api/routes')
  const figures = routes.filter((each) => of === undefined || each.route === of).slice(0, LIMIT_MAX)
  return [
    'Routes:',
    ...figures.map((each) => `${safeText(each.route)}  ${safeText(each.service)}  ${plural(each.count, 'request')}  ${each.errors} failed  p50 ${duration(each.p50Ms)}  p99 ${duration(each.p99Ms)}${each.slow === undefined ? '' : `  slow or failed by ${reasonText(each.slow)}`}${(each.repeats ?? []).map(({ shape, perRequest, savedMs }) => `  ${repeatText({ shape: safeText(shape), count: perRequest, savedMs }, duration)}`).join('')}`),
    '',
    `The slowest of ${of === undefined ? plural(total, 'trace') : safeText(of)}:`,
    ...linesOf(traces), ...olderText({ incomplete })
  ].join('\n')
}

async function errors (client, { limit: count = LIMIT_DEFAULT }) {
  const { exceptions } = await client.json('/api/exceptions')
  const { traces } = await client.json(`/api/traces?${new URLSearchParams({ status: 'error', limit: String(count) })}`)
  if (exceptions.length === 0 && traces.length === 0) return 'Nothing has failed.'
  return [
    'Exceptions:',
    ...exceptions.slice(0, count).map(({ type, message, frame, routes, count: times, traces: [example] }) =>
      `${times} × ${safeText(type)}: ${safeText(message ?? '')}  ${safeText(frame ?? '')}  in ${routes.map((each) => safeText(each)).join(', ') || '?'}  ${example ?? '(no longer stored)'}`),
    '',
    'Failed requests in the order of arrival, the last first:',
    ...linesOf(traces)
  ].join('\n')
}

function getServices (client, { service: of, ...narrowing }) {
  return listServices(client, { of, ...narrowing })
}

function linesOf (traces) {
  return blockedTogether(traces, line, duration)
}

function line ({ id, name, status, state, error, durationMs, service, spans, startMs }) {
  const problem = error === null ? '' : `  ${safeText(error.type)}: ${safeText(error.message ?? '')}`
  return `${id}  ${safeText(name)}  ${status ?? state}  ${duration(durationMs)}  ${safeText(service)}  ${plural(spans, 'span')}  started ${isoTime(startMs)}${problem}`
}

module.exports = { TOOLS, callTool, WrongArguments }
