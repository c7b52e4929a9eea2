'use strict'

// The options of metrics and of exported log lines: what is measured, which lines, and where they go. Loaded only where there are any.

const {
  COUNT_MAX, DURATION_MAX_MS, EMPTY, anyOf, boolean, callback, duration, isObject, literal, notNegative, object, orBoolean, wrongValue
} = require('./checks.js')
const { checkExporter, exporterOfSignal } = require('./exporter.js')

const METRIC_KINDS = ['otlp', 'otlp/stdout', 'prometheus', 'none']
const TEMPORALITIES = ['cumulative', 'delta', 'lowmemory']
const EXEMPLAR_FILTERS = ['trace_based', 'always_on', 'always_off']
const AGGREGATIONS = ['explicit_bucket_histogram', 'base2_exponential_bucket_histogram']

// Below, a mistaken unit would send hundreds of times a second.
const INTERVAL_MIN_MS = 100
const DEFAULT_INTERVAL_MS = 60_000
const DEFAULT_PROMETHEUS_PORT = 9464

const checkMetrics = orBoolean(object({
  exporter: checkMetricExporter,
  path: anyOf("a path that begins with '/'", (value) => typeof value === 'string' && value.startsWith('/')),
  runtime: boolean,
  attributes: callback,
  buckets: anyOf('an array of ascending numbers', areBounds),
  histograms: literal('explicit', 'exponential'),
  temporality: literal(...TEMPORALITIES),
  exemplars: literal(...EXEMPLAR_FILTERS),
  activeRequests: boolean,
  bodySizes: boolean,
  intervalMs: duration
}), EMPTY, false)

function checkMetricExporter (path, value) {
  if (value === 'console') throw wrongValue(path, "'otlp', 'otlp/stdout', 'none' or an object with a url", value)
  return checkExporter(path, value)
}

function areBounds (value) {
  return Array.isArray(value) && value.length > 0 && value.every((bound, index) => Number.isFinite(bound) && (index === 0 || bound > value[index - 1]))
}

/** @returns {object | null} null where neither code nor environment asks for metrics */
function resolveMetrics (options, env) {
  const given = options.metrics ?? EMPTY
  const kinds = metricKinds(given, options, env)
  if (options.metrics === undefined && kinds.length === 0) return null
  return Object.freeze({
    exporter: kinds.includes('otlp') ? exporterOfSignal('METRICS', given.exporter, options, env, 'OTEL_METRIC_EXPORT_TIMEOUT') : null,
    lines: kinds.includes('otlp/stdout'),
    prometheus: kinds.includes('prometheus') ? prometheusOf(env) : null,
    path: given.path ?? null,
    runtime: given.runtime ?? false,
    attributes: given.attributes ?? null,
    buckets: given.buckets === undefined ? null : Object.freeze(given.buckets.slice()),
    histograms: given.histograms ?? histogramsOf(env),
    temporality: given.temporality ?? env.oneOf(['OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE'], TEMPORALITIES) ?? 'cumulative',
    exemplars: given.exemplars ?? env.oneOf(['OTEL_METRICS_EXEMPLAR_FILTER'], EXEMPLAR_FILTERS) ?? 'trace_based',
    activeRequests: given.activeRequests ?? false,
    bodySizes: given.bodySizes ?? false,
    intervalMs: Math.max(INTERVAL_MIN_MS, given.intervalMs ?? env.integer(['OTEL_METRIC_EXPORT_INTERVAL'], { min: 1, max: DURATION_MAX_MS }) ?? DEFAULT_INTERVAL_MS)
  })
}

/** The option, else the variable, else the exporter of spans that is given in code. */
function metricKinds (given, options, env) {
  if (given.exporter !== undefined) return [given.exporter.kind].filter((kind) => kind !== 'none')
  const named = env.namesOf('OTEL_METRICS_EXPORTER', METRIC_KINDS)
  if (named?.length > 0) return named.filter((kind) => kind !== 'none')
  if (options.metrics === undefined) return []
  return [options.exporter?.kind ?? 'otlp'].filter((kind) => kind === 'otlp' || kind === 'otlp/stdout')
}

function prometheusOf (env) {
  return Object.freeze({
    host: env.text('OTEL_EXPORTER_PROMETHEUS_HOST') ?? 'localhost',
    port: env.integer(['OTEL_EXPORTER_PROMETHEUS_PORT'], { max: 65535 }) ?? DEFAULT_PROMETHEUS_PORT
  })
}

function histogramsOf (env) {
  const name = env.oneOf(['OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION'], AGGREGATIONS)
  return name === AGGREGATIONS[1] ? 'exponential' : 'explicit'
}

const LOG_KINDS = ['otlp', 'otlp/stdout', 'console', 'none']
const EXCEPTION_SIGNALS = ['logs', 'logs/dup']
const DEFAULT_FLUSH_DELAY_MS = 1000
const DEFAULT_MAX_PER_SECOND = 10_000 // of one level: more than a person or a bill can take

const checkLevel = anyOf("the name of one of the logger's levels", (value) => typeof value === 'string' && value.trim() !== '')

const checkLogs = orBoolean(object({
  export: orBoolean(checkLogExporter, true, false),
  level: checkLevel,
  unsampledLevel: checkLevel,
  buffer: checkLevel,
  maxPerSecond: notNegative('lines a second')
}), true, false)

function checkLogExporter (path, value) {
  anyOf("true, false, 'otlp', 'otlp/stdout', 'console', 'none' or an object with a url", (kind) => isObject(kind) || LOG_KINDS.includes(kind))(path, value)
  return checkExporter(path, value)
}

/** @returns {object | null} null where neither code nor environment asks for lines or exceptions to be exported */
function resolveLogs (options, env, limits) {
  const given = typeof options.logs === 'object' ? options.logs : EMPTY
  const named = logKind(given, options, env)
  const [exceptions = null] = env.namesOf('OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN', EXCEPTION_SIGNALS) ?? []
  if (named === 'none' && exceptions === null && given.buffer === undefined) return null
  const kind = named === 'none' ? 'otlp' : named
  if (env.text('OTEL_BLRP_MAX_QUEUE_SIZE') !== undefined) {
    env.inform('OTEL_BLRP_MAX_QUEUE_SIZE is ignored: log records and spans share a buffer that is limited in bytes, by buffer.maxBytes')
  }
  const limit = (...names) => env.integer(names, { max: COUNT_MAX })
  return Object.freeze({
    exporter: kind === 'otlp' ? exporterOfSignal('LOGS', isObject(given.export) ? given.export : EMPTY, options, env, 'OTEL_BLRP_EXPORT_TIMEOUT') : null,
    isText: kind === 'console', // where there is no exporter: text in place of OTLP JSON
    lines: named !== 'none',
    exceptions, // 'logs': records in place of the spans' events; 'logs/dup': both
    byCommand: env.text('LIGHT_TRACE_VIEWER') !== undefined, // `npx light-trace` asks for lines, whatever the logger is
    level: given.level ?? null, // null: whatever the logger writes
    unsampledLevel: given.unsampledLevel ?? 'warn',
    buffer: given.buffer ?? null, // the least level of lines that are held with their request
    maxPerSecond: given.maxPerSecond ?? DEFAULT_MAX_PER_SECOND,
    flushDelayMs: env.integer(['OTEL_BLRP_SCHEDULE_DELAY'], { max: DURATION_MAX_MS }) ?? options.buffer?.flushDelayMs ?? DEFAULT_FLUSH_DELAY_MS,
    maxRecords: env.integer(['OTEL_BLRP_MAX_EXPORT_BATCH_SIZE'], { min: 1 }) ?? Infinity,
    attributes: limit('OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT') ?? limits.attributes,
    attributeValueLength: limit('OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT') ?? limits.attributeValueLength
  })
}

/** The option, else the variable. `true` means the exporter of spans, where that is one of ours. */
function logKind (given, options, env) {
  if (given.export === false) return 'none'
  if (isObject(given.export)) return given.export.kind
  const [named] = env.namesOf('OTEL_LOGS_EXPORTER', LOG_KINDS) ?? []
  if (given.export === undefined || named !== undefined) return named ?? 'none'
  const spans = options.exporter?.kind
  return spans === 'otlp/stdout' || spans === 'console' ? spans : 'otlp'
}

module.exports = { checkMetrics, resolveMetrics, checkLogs, resolveLogs }
