'use strict'

// The options of metrics: what is measured, how it is aggregated, and where it goes. Loaded only where metrics are on.

const { DURATION_MAX_MS, EMPTY, anyOf, boolean, callback, duration, literal, object, orBoolean, wrongValue } = require('./checks')
const { checkExporter, exporterOfSignal } = require('./exporter')

const KINDS = ['otlp', 'otlp/stdout', 'prometheus', 'none']
const TEMPORALITIES = ['cumulative', 'delta', 'lowmemory']
const EXEMPLAR_FILTERS = ['trace_based', 'always_on', 'always_off']
const AGGREGATIONS = ['explicit_bucket_histogram', 'base2_exponential_bucket_histogram']

// Below, a mistaken unit would send hundreds of times a second.
const INTERVAL_MIN_MS = 100
const DEFAULT_INTERVAL_MS = 60_000
const DEFAULT_TIMEOUT_MS = 30_000
const DEFAULT_PROMETHEUS_PORT = 9464

const checkMetrics = orBoolean(object({
  exporter: checkMetricExporter,
  path: anyOf("a path that begins with '/'", (value) => typeof value === 'string' && value.startsWith('/')),
  runtime: boolean,
  self: boolean,
  attributes: callback,
  buckets: anyOf('an array of ascending numbers', areBounds),
  histograms: literal('explicit', 'exponential'),
  temporality: literal(...TEMPORALITIES),
  exemplars: literal(...EXEMPLAR_FILTERS),
  streams: boolean,
  activeRequests: boolean,
  bodySizes: boolean,
  intervalMs: duration
}), EMPTY, false)

module.exports = { checkMetrics, resolveMetrics }

function checkMetricExporter (path, value) {
  if (value === 'console') throw wrongValue(path, "'otlp', 'otlp/stdout', 'none' or an object with a url", value)
  return checkExporter(path, value)
}

function areBounds (value) {
  return Array.isArray(value) && value.length > 0 && value.every((bound, index) => Number.isFinite(bound) && (index === 0 || bound > value[index - 1]))
}

/** @returns {object | null} null where neither code nor environment asks for metrics */
function resolveMetrics (options, env, exporterVariable) {
  const given = options.metrics ?? EMPTY
  const kinds = kindsOf(given, options, env, exporterVariable)
  if (options.metrics === undefined && kinds.length === 0) return null
  return Object.freeze({
    exporter: kinds.includes('otlp') ? exporterOfSignal('METRICS', given.exporter, options, env, 'OTEL_METRIC_EXPORT_TIMEOUT', DEFAULT_TIMEOUT_MS) : null,
    lines: kinds.includes('otlp/stdout'),
    prometheus: kinds.includes('prometheus') ? prometheusOf(env) : null,
    path: given.path ?? null,
    runtime: given.runtime ?? false,
    self: given.self ?? true,
    attributes: given.attributes ?? null,
    buckets: given.buckets === undefined ? null : Object.freeze(given.buckets.slice()),
    histograms: given.histograms ?? histogramsOf(env),
    temporality: given.temporality ?? env.oneOf(['OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE'], TEMPORALITIES) ?? 'cumulative',
    exemplars: given.exemplars ?? env.oneOf(['OTEL_METRICS_EXEMPLAR_FILTER'], EXEMPLAR_FILTERS) ?? 'trace_based',
    streams: given.streams ?? true,
    activeRequests: given.activeRequests ?? false,
    bodySizes: given.bodySizes ?? false,
    intervalMs: Math.max(INTERVAL_MIN_MS, given.intervalMs ?? env.integer(['OTEL_METRIC_EXPORT_INTERVAL'], { min: 1, max: DURATION_MAX_MS }) ?? DEFAULT_INTERVAL_MS)
  })
}

/** The option, else the variable, else the exporter of spans that is given in code. */
function kindsOf (given, options, env, name) {
  if (given.exporter !== undefined) return [given.exporter.kind].filter((kind) => kind !== 'none')
  const named = env.namesOf(name, KINDS)
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
