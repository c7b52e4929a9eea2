'use strict'

// OTEL_CONFIG_FILE: OpenTelemetry's declarative configuration. The parts that concern light-trace are turned into the equivalent
// environment variables. With a file, all other OTEL_* variables are ignored, except in `${NAME}`.
// https://opentelemetry.io/docs/specs/otel/configuration/data-model/

const fs = require('node:fs')
const path = require('node:path')
const { createRequire } = require('node:module')
const { EMPTY, TOKEN, inWords, isAttributeValue, isObject, readFile, withoutMark } = require('../config/checks.js')
const { attempt, printable } = require('../runtime/report.js')

module.exports = { readConfiguration }

const NEWEST_MINOR = 1 // of version 1 of the schema
const LEVELS = new Map([['trace', 'verbose'], ['debug', 'debug'], ['info', 'info'], ['warn', 'warn'], ['error', 'error'], ['fatal', 'error']]) // ours
const NAMED_MAX = 10 // of unsupported members in the warning

/**
 * The variables that are equivalent to a file, instead of the OTEL_* variables that are set; and the settings that no variable has.
 * @param {string} file
 * @param {Record<string, string | undefined>} values the environment
 * @returns {{ values: object, fromFile: { resource?: object, headers?: { request?: string[], response?: string[] } }, warnings: string[] }}
 */
function readConfiguration (file, values) {
  const others = Object.fromEntries(Object.entries(values).filter(([name]) => !name.startsWith('OTEL_')))
  try {
    const content = parse(file)
    if (content === undefined) {
      return { values, fromFile: EMPTY, warnings: [`${printable(file)} is YAML, which needs the package 'yaml' in the application; it is ignored and the other OTEL_* variables apply. JSON needs no package`] }
    }
    const found = new Found(values)
    found.root(content)
    const warnings = found.unknown.length === 0 ? [] : [`${printable(file)}: light-trace ignores ${shortened(found.unknown)}`]
    return { values: { ...others, ...found.variables }, fromFile: { resource: found.resource, headers: found.headers }, warnings }
  } catch (error) {
    const why = error instanceof SyntaxError ? 'not valid JSON' : printable(error.message) // JSON.parse's message quotes the text
    return { values: { ...others, OTEL_SDK_DISABLED: 'true' }, fromFile: EMPTY, warnings: [`${printable(file)} cannot be used, so nothing is traced: ${why}`] }
  }
}

/** Undefined for YAML if the package `yaml` is not installed. */
function parse (file) {
  const text = withoutMark(readFile(file).toString())
  if (!/\.ya?ml$/i.test(file)) return JSON.parse(text)
  const yaml = loadYaml()
  if (yaml === undefined) return undefined
  try {
    return yaml.parse(text, { logLevel: 'error', prettyErrors: false }) // its warnings quote the text
  } catch {
    throw new Error('not valid YAML') // the parser's message quotes the text
  }
}

/** The application's copy, found from its main module: a service may be started in any folder, for example in `/` by systemd. */
function loadYaml () {
  const [, script] = process.argv
  for (const from of [require.main?.filename, attempt(() => fs.realpathSync(script)), script, path.join(process.cwd(), 'package.json')]) {
    const yaml = attempt(() => createRequire(from)('yaml'))
    if (yaml !== undefined) return yaml
  }
}

/** The number comes first, because a long warning is cut. */
function shortened (names) {
  const shown = inWords(names.slice(0, NAMED_MAX).map((name) => printable(name, 100)))
  return names.length > 1 ? `${names.length} of its parts: ${shown}` : shown
}

// The settings of a file, read member by member. The methods take a path for messages and a value. Unsupported members go to `unknown`.
class Found {
  #environment
  variables = Object.create(null)
  resource = Object.create(null)
  headers = Object.create(null) // lists of names, as in the options
  unknown = []

  constructor (environment) {
    this.#environment = environment
  }

  root (content) {
    if (!isObject(content)) throw new Error('it is not an object')
    const version = /^1\.(\d+)(?:-|$)/.exec(this.#text(content.file_format) ?? '')
    if (version === null) throw new Error("file_format must be the string '1.0' or '1.1'")
    if (Number(version[1]) > NEWEST_MINOR) this.unknown.push(`file_format ${version[0]}, which is newer than 1.${NEWEST_MINOR}`)
    // The specification turns off everything that a file leaves out.
    Object.assign(this.variables, { OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'none', OTEL_PROPAGATORS: 'none' })
    this.#members('', content, {
      file_format: () => {},
      disabled: 'OTEL_SDK_DISABLED',
      log_level: (at, value) => this.#readLevel(at, value),
      resource: {
        schema_url: () => {},
        attributes: (at, value) => Object.assign(this.resource, Object.fromEntries(this.#pairs(at, value, true))),
        attributes_list: 'OTEL_RESOURCE_ATTRIBUTES' // the options override these, and so do the attributes above
      },
      attribute_limits: { attribute_count_limit: 'OTEL_ATTRIBUTE_COUNT_LIMIT', attribute_value_length_limit: 'OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT' },
      propagator: (at, value) => this.#readPropagator(at, value),
      tracer_provider: {
        processors: this.#first(this.#processor('TRACES', 'BSP')),
        limits: {
          attribute_count_limit: 'OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT',
          attribute_value_length_limit: 'OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT',
          event_count_limit: 'OTEL_SPAN_EVENT_COUNT_LIMIT',
          link_count_limit: 'OTEL_SPAN_LINK_COUNT_LIMIT',
          event_attribute_count_limit: 'OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT',
          link_attribute_count_limit: 'OTEL_LINK_ATTRIBUTE_COUNT_LIMIT'
        },
        sampler: this.#sampler()
      },
      meter_provider: {
        readers: this.#first({
          periodic: { interval: 'OTEL_METRIC_EXPORT_INTERVAL', timeout: 'OTEL_METRIC_EXPORT_TIMEOUT', exporter: this.#exporter('METRICS') },
          pull: { exporter: { 'prometheus/development': this.#choice({ OTEL_METRICS_EXPORTER: 'prometheus' }, { host: 'OTEL_EXPORTER_PROMETHEUS_HOST', port: 'OTEL_EXPORTER_PROMETHEUS_PORT' }) } }
        }),
        exemplar_filter: 'OTEL_METRICS_EXEMPLAR_FILTER'
      },
      logger_provider: {
        processors: this.#first(this.#processor('LOGS', 'BLRP')),
        limits: { attribute_count_limit: 'OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT', attribute_value_length_limit: 'OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT' }
      },
      'instrumentation/development': {
        general: {
          http: {
            server: {
              known_methods: (at, value) => this.#set('OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS', this.#texts(at, value).join()),
              request_captured_headers: (at, value) => { this.headers.request = this.#headerNames(at, value) },
              response_captured_headers: (at, value) => { this.headers.response = this.#headerNames(at, value) }
            }
          }
        }
      }
    })
  }

  /** @param {object} shape for each member: the name of a variable, a function, or the shape of its own members */
  #members (at, value, shape) {
    if (value === null || value === undefined) return
    if (!isObject(value)) return this.unknown.push(at)
    for (const [name, member] of Object.entries(value)) {
      const known = Object.hasOwn(shape, name) ? shape[name] : undefined
      const path = at === '' ? name : `${at}.${name}`
      if (known === undefined) this.unknown.push(path)
      else if (typeof known === 'string') this.#set(known, this.#scalar(path, member))
      else if (typeof known === 'function') known(path, member)
      else this.#members(path, member, known)
    }
  }

  #set (variable, text) {
    if (text !== undefined) this.variables[variable] = text
  }

  /** Reads an object that names one of several kinds, such as an exporter. The first known member is read, the others are unknown. */
  #oneOf (shape) {
    return (at, value) => {
      const name = isObject(value) ? Object.keys(value).find((name) => Object.hasOwn(shape, name)) : undefined
      this.#members(at, value, name === undefined ? {} : { [name]: shape[name] })
    }
  }

  /** Reads a member whose mere presence sets these variables. */
  #choice (variables, shape = {}) {
    return (at, value) => {
      Object.assign(this.variables, variables)
      this.#members(at, value, shape)
    }
  }

  #first (shape) {
    return (at, value) => {
      const [first, ...others] = this.#items(at, value)
      this.#oneOf(shape)(`${at}[0]`, first)
      others.forEach((other, index) => this.unknown.push(`${at}[${index + 1}]`))
    }
  }

  #processor (signal, prefix) {
    const batch = {
      schedule_delay: `OTEL_${prefix}_SCHEDULE_DELAY`,
      export_timeout: `OTEL_${prefix}_EXPORT_TIMEOUT`,
      max_queue_size: `OTEL_${prefix}_MAX_QUEUE_SIZE`,
      max_export_batch_size: `OTEL_${prefix}_MAX_EXPORT_BATCH_SIZE`,
      exporter: this.#exporter(signal)
    }
    return { batch, simple: { exporter: batch.exporter } }
  }

  #exporter (signal) {
    const kind = `OTEL_${signal}_EXPORTER`
    const otlp = `OTEL_EXPORTER_OTLP_${signal}`
    const headers = `${otlp}_HEADERS`
    const shape = {
      endpoint: `${otlp}_ENDPOINT`,
      headers: (at, value) => this.#set(headers, joined(this.variables[headers], ...this.#pairs(at, value).map((pair) => pair.map(encodeURIComponent).join('=')))),
      headers_list: (at, value) => this.#set(headers, joined(this.#scalar(at, value), this.variables[headers])),
      compression: `${otlp}_COMPRESSION`,
      timeout: `${otlp}_TIMEOUT`,
      encoding: (at, value) => this.#set(`${otlp}_PROTOCOL`, `http/${this.#scalar(at, value) ?? 'protobuf'}`),
      tls: { ca_file: `${otlp}_CERTIFICATE`, key_file: `${otlp}_CLIENT_KEY`, cert_file: `${otlp}_CLIENT_CERTIFICATE`, insecure: `${otlp}_INSECURE` },
      ...signal === 'METRICS' && {
        temporality_preference: `${otlp}_TEMPORALITY_PREFERENCE`,
        default_histogram_aggregation: `${otlp}_DEFAULT_HISTOGRAM_AGGREGATION`
      }
    }
    const output = (at, value) => {
      if ((this.#scalar(at, value) ?? 'stdout') === 'stdout') return
      this.variables[kind] = 'none'
      this.unknown.push(at)
    }
    return this.#oneOf({
      otlp_http: this.#choice({ [kind]: 'otlp', [`${otlp}_PROTOCOL`]: 'http/protobuf' }, shape),
      otlp_grpc: this.#choice({ [kind]: 'otlp', [`${otlp}_PROTOCOL`]: 'grpc' }, shape),
      // The console exporter has no metrics. They stay `none`, the value for everything that is left out.
      console: signal === 'METRICS' ? (at) => { this.unknown.push(at) } : this.#choice({ [kind]: 'console' }),
      'otlp_file/development': this.#choice({ [kind]: 'otlp/stdout' }, { output_stream: output })
    })
  }

  #sampler (prefix = '') {
    const sampler = (name, members) => this.#choice({ OTEL_TRACES_SAMPLER: name }, members)
    const byRatio = sampler(`${prefix}traceidratio`, { ratio: 'OTEL_TRACES_SAMPLER_ARG' })
    const [on, off] = [{ always_on: {} }, { always_off: {} }] // only the parent's own decision is supported
    return this.#oneOf({
      always_on: sampler(`${prefix}always_on`),
      always_off: sampler(`${prefix}always_off`),
      trace_id_ratio_based: byRatio,
      'probability/development': byRatio,
      ...prefix === '' && {
        parent_based: sampler('parentbased_always_on', {
          root: this.#sampler('parentbased_'),
          remote_parent_sampled: on,
          remote_parent_not_sampled: off,
          local_parent_sampled: on,
          local_parent_not_sampled: off
        })
      }
    })
  }

  #readLevel (at, value) {
    const text = this.#scalar(at, value)
    const level = LEVELS.get(text?.toLowerCase().replace(/[2-4]$/, ''))
    if (text !== undefined && level === undefined) this.unknown.push(at)
    this.#set('OTEL_LOG_LEVEL', level)
  }

  #readPropagator (at, value) {
    const names = []
    this.#members(at, value, {
      composite: (at, value) => {
        for (const [index, member] of this.#items(at, value).entries()) {
          if (isObject(member)) names.push(...Object.keys(member))
          else this.unknown.push(`${at}[${index}]`)
        }
      },
      composite_list: (at, value) => names.push(...(this.#scalar(at, value) ?? '').split(',').map((name) => name.trim()))
    })
    const wanted = [...new Set(names)].filter((name) => name !== '')
    if (wanted.length > 0) this.#set('OTEL_PROPAGATORS', wanted.join())
  }

  /** The names and values in `[{ name, value, type }]`; without `hasTypes` all values are strings. */
  #pairs (at, value, hasTypes = false) {
    const pairs = this.#items(at, value).map((member, index) => {
      const name = this.#text(member?.name)
      const item = name === undefined ? NaN : this.#typed(member.value, hasTypes ? member.type : 'string')
      if (Number.isNaN(item)) this.unknown.push(`${at}[${index}]`)
      return [name, item]
    })
    return pairs.filter(([, item]) => item !== undefined && !Number.isNaN(item))
  }

  /** NaN if the value does not have this type; undefined for an empty string. */
  #typed (value, type) {
    if (Array.isArray(value) && type !== 'string') {
      const items = value.map((item) => this.#typed(item, String(type).replace('_array', '')))
      return isAttributeValue(items) ? items : NaN
    }
    if (typeof value === 'object') return NaN
    const text = this.#text(value)
    if (text === undefined || type === 'string') return text
    if (type === 'int' || type === 'double' || typeof value === 'number') return Number.isFinite(Number(text)) ? Number(text) : NaN
    return type === 'bool' || typeof value === 'boolean' ? text === 'true' : text
  }

  #headerNames (at, value) {
    const names = this.#texts(at, value).filter((name) => TOKEN.test(name) || !this.unknown.push(at))
    return names.map((name) => name.toLowerCase())
  }

  #texts (at, value) {
    return this.#items(at, value).map((item, index) => this.#scalar(`${at}[${index}]`, item)).filter((text) => text !== undefined)
  }

  #items (at, value) {
    if (Array.isArray(value)) return value
    if (value !== null && value !== undefined) this.unknown.push(at)
    return []
  }

  #scalar (at, value) {
    if (typeof value === 'object' && value !== null) this.unknown.push(at)
    return this.#text(value)
  }

  /** A scalar as the text of a variable, with `${NAME}` substituted; undefined if it is empty, null or not a scalar. */
  #text (value) {
    if (typeof value === 'number' || typeof value === 'boolean') return `${value}`
    if (typeof value !== 'string') return undefined
    const text = value.replace(/\$\$|\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^\n}]*))?\}|\$\{[^\n}]*\}?/g, (all, name, otherwise = '') => {
      if (all === '$$') return '$'
      if (name === undefined) throw new Error('it has a substitution without a variable name')
      return (Object.hasOwn(this.#environment, name) && this.#environment[name]) || otherwise
    })
    return text === '' ? undefined : text.toWellFormed()
  }
}

/** Joins lists of pairs. A later pair overrides an earlier one. */
function joined (...lists) {
  return lists.filter((list) => list !== undefined && list !== '').join()
}
