'use strict'

// Makes the app's environment, in which every OpenTelemetry exporter sends to the viewer, and without a long delay.

const { addressOf } = require('./client')

// Short, because the user waits for the request that they just made.
const DELAY_MS = '100'
const METRICS_DELAY_MS = 5000
const METRICS_TIMEOUT_MS = 30_000 // OpenTelemetry's default

const SIGNALS = ['TRACES', 'METRICS', 'LOGS']

/** @returns {{ env: object, notes: string[] }} notes: what the user had set and this changed */
function appEnvironment (from, { port, host, token }) {
  const env = { ...from }
  const notes = []
  const endpoint = addressOf(host, port)
  const replace = (name, value, isRight) => {
    if (env[name] !== undefined && env[name] !== '' && !isRight(env[name])) notes.push(value === undefined ? `${name} is ignored for this app` : `${name} is ${value} for this app, instead of the value that you set`)
    if (value === undefined) delete env[name]
    else env[name] = value
  }
  const same = (wanted) => (given) => given === wanted
  replace('OTEL_EXPORTER_OTLP_ENDPOINT', endpoint, same(endpoint))
  for (const signal of SIGNALS) replace(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`, undefined, () => false)
  // The headers may hold a vendor's key, which the viewer must not get.
  replace('OTEL_EXPORTER_OTLP_HEADERS', undefined, () => false)
  for (const signal of SIGNALS) replace(`OTEL_EXPORTER_OTLP_${signal}_HEADERS`, undefined, () => false)
  if (env.OTEL_TRACES_EXPORTER !== undefined) replace('OTEL_TRACES_EXPORTER', 'otlp', same('otlp'))
  for (const name of ['OTEL_EXPORTER_OTLP_PROTOCOL', ...SIGNALS.map((signal) => `OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`)]) {
    if (env[name] !== undefined) replace(name, 'http/protobuf', (given) => given.startsWith('http/'))
  }
  if (/^true$/i.test(env.OTEL_SDK_DISABLED ?? '')) notes.push('OTEL_SDK_DISABLED is set, so the app sends nothing')
  if (env.OTEL_LOGS_EXPORTER !== 'none') replace('OTEL_LOGS_EXPORTER', 'otlp', same('otlp')) // `none` lets the user switch log lines off
  if (env.OTEL_METRICS_EXPORTER !== 'none') setMetrics(env, replace)
  env.OTEL_BSP_SCHEDULE_DELAY ||= DELAY_MS
  env.OTEL_BLRP_SCHEDULE_DELAY ||= DELAY_MS
  env.LIGHT_TRACE_BLOCKED_LOOP ||= 'true'
  env.LIGHT_TRACE_VIEWER = endpoint
  if (token !== null) env.LIGHT_TRACE_VIEWER_TOKEN = token
  return { env, notes }
}

// Prometheus may go on scraping.
function setMetrics (env, replace) {
  const isScraped = (env.OTEL_METRICS_EXPORTER ?? '').split(',').some((name) => name.trim() === 'prometheus')
  const wanted = isScraped ? 'otlp,prometheus' : 'otlp'
  replace('OTEL_METRICS_EXPORTER', wanted, (given) => isScraped || given === wanted)
  // The OpenTelemetry SDK throws if the timeout is longer than the interval.
  if (!env.OTEL_METRIC_EXPORT_INTERVAL) env.OTEL_METRIC_EXPORT_INTERVAL = String(Math.max(METRICS_DELAY_MS, Number(env.OTEL_METRIC_EXPORT_TIMEOUT) || 0))
  env.OTEL_METRIC_EXPORT_TIMEOUT ||= String(Math.min(Number(env.OTEL_METRIC_EXPORT_INTERVAL) || METRICS_TIMEOUT_MS, METRICS_TIMEOUT_MS))
}

module.exports = { appEnvironment }
