'use strict'

// The only reader of process.env, by the rules of OpenTelemetry's "Environment Variable Specification": empty is unset, enums
// know no case, and what cannot be used is logged and ignored.

const { describeValue, editDistance, inWords } = require('./checks')

const PREFIX = 'OTEL_'
const OTHERS = new Set([
  'NODE_TLS_REJECT_UNAUTHORIZED', // Node's own: read only to warn when it switches the verification off
  // Node's own too, see resolveProxy
  'NODE_USE_ENV_PROXY', 'NODE_OPTIONS', 'http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'no_proxy', 'NO_PROXY',
  'npm_package_name', 'npm_package_version', // of the package whose script npm runs
  'NODE_OTEL', 'NODE_OTEL_ENDPOINT', // Node's own tracer
  'LIGHT_TRACE_VIEWER', 'LIGHT_TRACE_BLOCKED_LOOP', // set by `npx light-trace`
  'LIGHT_TRACE_SLOW_AFTER_MS', // see `slow`
  'TRACEPARENT', 'TRACESTATE', // of the process that started this one
  // Where the process runs, see resource.js
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

const NAME_LENGTH_MAX = 64 // of a variable; the distance is quadratic
const VARIABLE_LENGTH_MAX = 65536 // of lists of pairs

// A snapshot of the variables. Each getter takes names, the most specific first; `undefined` if none holds a usable value.
class Environment {
  #values
  #signal
  #asked // names that were looked for
  warnings = []
  news = [] // worth a line at info

  constructor (values, signal = 'TRACES', asked = new Set()) {
    this.#values = values
    this.#asked = asked
    this.#signal = signal
  }

  // The same variables; what is wrong with them is not logged.
  muted () { return new Environment(this.#values, this.#signal, this.#asked) }

  // The same variables for another signal: OTEL_EXPORTER_OTLP_METRICS_* in place of TRACES. Its warnings are added to ours.
  forSignal (signal) {
    const other = new Environment(this.#values, signal, this.#asked)
    other.warnings = this.warnings
    other.news = this.news
    return other
  }

  #named (text) {
    return this.#signal === 'TRACES' ? text : text.replace('OTLP_TRACES_', `OTLP_${this.#signal}_`)
  }

  /** @returns {{ name: string, value: string } | undefined} the first that is set */
  find (...names) {
    for (const asked of names) {
      const name = this.#named(asked)
      this.#asked.add(name)
      const value = Object.hasOwn(this.#values, name) ? this.#values[name] : undefined
      if (typeof value === 'string' && value.trim() !== '') return { name, value: value.trim() }
    }
  }

  text (...names) { return this.find(...names)?.value }

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
    return this.#first(names, inWords(known), (value) => known.find((item) => item === value.toLowerCase()))
  }

  list (name) {
    return this.text(name)?.split(',').map((item) => item.trim()).filter((item) => item !== '')
  }

  // The names of a list that are known; they know no case.
  namesOf (name, known) {
    const names = this.list(name)?.map((item) => item.toLowerCase())
    return names?.filter((item) => known.includes(item) || this.ignored(name, item, inWords(known)))
  }

  // The items of a list that are of use.
  listOf (name, expected, accepts) {
    return this.list(name)?.filter((item) => accepts(item) || this.ignored(name, item, expected))
  }

  ignored (name, value, expected) {
    this.warn('LT_WARN_ENV', `${name} is ignored: it must be ${expected}, received ${describeValue(value)}`)
  }

  /** A letter of difference to one that is read: the names of the specification differ by more. */
  warnAboutMisspelled () {
    for (const name of Object.keys(this.#values)) {
      if (!name.startsWith(PREFIX) || this.#asked.has(name) || name.length > NAME_LENGTH_MAX) continue
      const meant = [...this.#asked].find((asked) => Math.abs(asked.length - name.length) <= 1 && editDistance(asked, name) === 1)
      if (meant !== undefined) this.warn('LT_WARN_ENV', `${name} is not read: did you mean ${meant}?`)
    }
    return this
  }

  inform (message) {
    if (!this.news.includes(message)) this.news.push(message)
  }

  warn (code, text) {
    const message = this.#named(text)
    if (!this.warnings.some((warning) => warning.message === message)) this.warnings.push({ code, message })
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

// Splits 'k=v,k2=v2', percent-encoded; a value is undefined if there is none, or if the pair cannot be decoded.
function pairsIn (text) {
  return text.split(',').filter((pair) => pair.trim() !== '').map((pair) => {
    const equals = pair.indexOf('=')
    if (equals === -1) return ['', undefined]
    const key = pair.slice(0, equals).trim()
    try {
      return [decodeURIComponent(key), decodeURIComponent(pair.slice(equals + 1).trim())]
    } catch {
      return [key, undefined]
    }
  })
}

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

module.exports = { VARIABLE_LENGTH_MAX, Environment, invocationTraceHeader, pairsIn, readEnvironment }
