'use strict'

// Settings for metrics and exported log lines: which are exported, and where to. Loaded only if there are any.

const { EMPTY, isObject } = require('./checks.js')
const { EXPORTER_KINDS, exporterOfSignal } = require('./exporter.js')
const { settle } = require('./rows.js')
const { LOG_RECORDS, OPTIONS, PROMETHEUS } = require('./table.js')

const METRIC_KINDS = ['otlp', 'otlp/stdout', 'prometheus', 'none']
const EXCEPTION_SIGNALS = ['logs', 'logs/dup']

/** @returns {object | null} null if neither code nor environment asks for metrics */
function resolveMetrics (options, env) {
  const given = options.metrics ?? EMPTY
  const kinds = metricKinds(given, options, env)
  if (options.metrics === undefined && kinds.length === 0) return null
  return Object.freeze({
    ...settle(OPTIONS.metrics.members, { ...shownByCommand(given, kinds, env), ...given }, { env }),
    exporter: kinds.includes('otlp') ? exporterOfSignal('METRICS', given.exporter, options, env, 'OTEL_METRIC_EXPORT_TIMEOUT') : null,
    lines: kinds.includes('otlp/stdout'),
    prometheus: kinds.includes('prometheus') ? settle(PROMETHEUS, EMPTY, { env }) : null
  })
}

/**
 * What `npx light-trace` shows that is off by default: the runtime, and percentiles below 5 ms, which the default buckets do not tell apart. Metrics
 * that go somewhere else too stay as they are.
 */
function shownByCommand (given, kinds, env) {
  if (!isByCommand(env) || given.exporter !== undefined || given.path !== undefined || kinds.length !== 1) return EMPTY
  const areBucketsChosen = given.buckets !== undefined || env.text(...OPTIONS.metrics.members.histograms.variables) !== undefined
  return { runtime: true, ...!areBucketsChosen && { histograms: 'exponential' } }
}

/** From the option, else the variable, else the span exporter that is given in code. */
function metricKinds (given, options, env) {
  if (given.exporter !== undefined) return [given.exporter.kind].filter((kind) => kind !== 'none')
  const named = env.namesOf(...OPTIONS.metrics.members.exporter.variables, METRIC_KINDS)
  if (named?.length > 0) return named.filter((kind) => kind !== 'none')
  if (options.metrics === undefined) return []
  return [options.exporter?.kind ?? 'otlp'].filter((kind) => kind === 'otlp' || kind === 'otlp/stdout')
}

/** @returns {object | null} null if neither code nor environment asks to export log lines or exceptions */
function resolveLogs (options, env, limits) {
  const given = typeof options.logs === 'object' ? options.logs : EMPTY
  const named = logKind(given, options, env)
  const [exceptions = null] = env.namesOf('OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN', EXCEPTION_SIGNALS) ?? []
  if (named === 'none' && exceptions === null && !given.buffer) return null
  const kind = named === 'none' ? 'otlp' : named
  if (env.text('OTEL_BLRP_MAX_QUEUE_SIZE') !== undefined) {
    env.inform('OTEL_BLRP_MAX_QUEUE_SIZE is ignored: log records and spans share a buffer that is limited in bytes, by buffer.maxBytes')
  }
  const records = settle(LOG_RECORDS, EMPTY, { env })
  const { ids, export: _, ...rows } = OPTIONS.logs.members
  return Object.freeze({
    ...settle(rows, given, { env }),
    exporter: kind === 'otlp' ? exporterOfSignal('LOGS', isObject(given.export) ? given.export : EMPTY, options, env, 'OTEL_BLRP_EXPORT_TIMEOUT') : null,
    isText: kind === 'console', // without an exporter: text instead of OTLP JSON
    lines: named !== 'none',
    exceptions, // 'logs': records instead of span events; 'logs/dup': both
    byCommand: isByCommand(env), // `npx light-trace` wants lines, whatever the logger is
    flushDelayMs: records.flushDelayMs ?? options.buffer?.flushDelayMs ?? OPTIONS.buffer.members.flushDelayMs.default,
    maxRecords: records.maxRecords,
    attributes: records.attributes ?? limits.attributes,
    attributeValueLength: records.attributeValueLength ?? limits.attributeValueLength
  })
}

function isByCommand (env) {
  return env.text('LIGHT_TRACE_VIEWER') !== undefined
}

/** From the option, else the variable. `true` means the span exporter, if it is one of ours. */
function logKind (given, options, env) {
  if (given.export === false) return 'none'
  if (isObject(given.export)) return given.export.kind
  const [named] = env.namesOf(...OPTIONS.logs.members.export.variables, EXPORTER_KINDS) ?? []
  if (given.export === undefined || named !== undefined) return named ?? 'none'
  const spans = options.exporter?.kind
  return spans === 'otlp/stdout' || spans === 'console' ? spans : 'otlp'
}

module.exports = { resolveMetrics, resolveLogs }
