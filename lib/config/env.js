'use strict'

// The only reader of process.env. The rules are those of OpenTelemetry's "Environment Variable
// Specification": empty is unset, enums know no case, and what cannot be used is logged and ignored.

const { printable } = require('../runtime/printable')

const PREFIX = 'OTEL_'
const OTHERS = new Set([
  'NODE_TLS_REJECT_UNAUTHORIZED', // Node's own: read only to warn when it switches the verification off
  // Node's own too, for the exporter's proxy: see proxy.js.
  'NODE_USE_ENV_PROXY', 'NODE_OPTIONS', 'http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'no_proxy', 'NO_PROXY',
  'npm_package_name', // npm says the name of the package whose script it runs
  'npm_package_version',
  'NODE_OTEL', 'NODE_OTEL_ENDPOINT', // Node's own tracer
  'TRACEPARENT', 'TRACESTATE', // of the process that started this one
  // Where the process runs, see platform.js.
  'KUBERNETES_SERVICE_HOST', 'HOSTNAME',
  'K8S_NODE_NAME', 'K8S_POD_NAME', 'K8S_POD_UID', 'K8S_NAMESPACE_NAME', 'K8S_NAMESPACE', 'K8S_CONTAINER_NAME',
  'NODE_NAME', 'POD_NAME', 'POD_UID', 'POD_NAMESPACE', 'CONTAINER_NAME',
  'AWS_LAMBDA_FUNCTION_NAME', 'AWS_LAMBDA_FUNCTION_VERSION', 'AWS_LAMBDA_FUNCTION_MEMORY_SIZE',
  'AWS_LAMBDA_LOG_GROUP_NAME', 'AWS_LAMBDA_LOG_STREAM_NAME', 'AWS_REGION', 'AWS_DEFAULT_REGION',
  'ECS_CONTAINER_METADATA_URI_V4', 'ECS_CONTAINER_METADATA_URI',
  'K_SERVICE', 'K_REVISION', 'FUNCTION_TARGET', 'CLOUD_RUN_JOB', 'CLOUD_RUN_EXECUTION', 'CLOUD_RUN_TASK_INDEX',
  'GAE_SERVICE', 'GAE_VERSION', 'GAE_INSTANCE',
  'WEBSITE_SITE_NAME', 'WEBSITE_INSTANCE_ID', 'FUNCTIONS_EXTENSION_VERSION', 'REGION_NAME',
  'VERCEL', 'VERCEL_REGION'
])

const BOOLEANS = new Map([['true', true], ['false', false]])

// Typed access to such a snapshot. Each getter takes several names, the most specific first, and answers
// `undefined` where none holds something usable.
class Environment {
  #values
  #signal
  #warned = new Set()
  warnings = []
  news = [] // worth a line at info

  constructor (values, signal = 'TRACES') {
    this.#values = values
    this.#signal = signal
  }

  // The same variables, and what is wrong with them is nobody's business.
  muted () {
    return new Environment(this.#values)
  }

  // The same variables for another signal: where spans ask for OTEL_EXPORTER_OTLP_TRACES_*, metrics ask for
  // OTEL_EXPORTER_OTLP_METRICS_*. What is wrong with them is said here.
  forSignal (signal) {
    const other = new Environment(this.#values, signal)
    other.warnings = this.warnings
    other.news = this.news
    other.#warned = this.#warned
    return other
  }

  #named (text) {
    return this.#signal === 'TRACES' ? text : text.replace('OTLP_TRACES_', `OTLP_${this.#signal}_`)
  }

  // `{ name, value }` of the first variable that is set.
  find (...names) {
    for (const asked of names) {
      const name = this.#named(asked)
      const value = Object.hasOwn(this.#values, name) ? this.#values[name] : undefined
      if (typeof value === 'string' && value.trim() !== '') return { name, value: value.trim() }
    }
  }

  text (...names) {
    return this.find(...names)?.value
  }

  boolean (...names) {
    return this.#first(names, 'true or false', (value) => BOOLEANS.get(value.toLowerCase()))
  }

  integer (names, { min = 0, max = Number.MAX_SAFE_INTEGER } = {}) {
    return this.#first(names, `an integer of at least ${min}`, (value) => {
      if (!/^[0-9]{1,15}$/.test(value) || Number(value) < min) return undefined
      return Math.min(Number(value), max)
    })
  }

  oneOf (names, known) {
    return this.#first(names, known.join(', '), (value) => known.find((item) => item === value.toLowerCase()))
  }

  list (...names) {
    return this.text(...names)?.split(',').map((item) => item.trim()).filter((item) => item !== '')
  }

  ignored (name, value, expected) {
    this.warn('LT_WARN_ENV', `${name} is ignored: it must be ${expected}, received '${printable(value, 64)}'`)
  }

  inform (message) {
    if (!this.news.includes(message)) this.news.push(message)
  }

  warn (code, text) {
    const message = this.#named(text)
    if (this.#warned.has(message)) return
    this.#warned.add(message)
    this.warnings.push({ code, message })
  }

  // A specific variable that is no use does not hide the general one.
  #first (names, expected, parse) {
    for (const name of names) {
      const value = this.text(name)
      if (value === undefined) continue
      const parsed = parse(value)
      if (parsed !== undefined) return parsed
      this.ignored(name, value, expected)
    }
  }
}

module.exports = { readEnvironment, invocationTraceHeader, Environment }

// AWS Lambda writes it anew for each invocation.
function invocationTraceHeader () {
  return process.env._X_AMZN_TRACE_ID
}

// A snapshot at call time, so that a variable set by the app before `register` counts.
function readEnvironment () {
  const read = Object.create(null)
  for (const name of Object.keys(process.env)) {
    if (name.startsWith(PREFIX) || OTHERS.has(name)) read[name] = process.env[name]
  }
  return read
}
