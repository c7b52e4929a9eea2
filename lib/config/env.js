'use strict'

// The only reader of process.env. Follows OpenTelemetry's "Environment Variable Specification": empty means unset, enums are
// case-insensitive, and invalid values are logged and ignored.

const { attempt } = require('../runtime/report.js')
const { describeValue, editDistance, inWords } = require('./checks.js')

const PREFIX = 'OTEL_'
const BOOLEANS = new Map([['true', true], ['false', false]])

const NAME_LENGTH_MAX = 64 // of a variable name, because the edit distance takes quadratic time
const VARIABLE_LENGTH_MAX = 65536 // for lists of pairs

// The variables at the time when the options are resolved. Each getter takes names, the most specific first, and returns `undefined` if
// none has a usable value.
class Environment {
  #values
  #signal
  #asked // names that were looked up
  /** @type {Warning[]} */
  warnings = []
  news = [] // messages to log at info

  constructor (values = process.env, signal = 'TRACES', asked = new Set()) {
    this.#values = values
    this.#asked = asked
    this.#signal = signal
  }

  get values () { return this.#values }

  // Returns the same variables, but drops their warnings.
  muted () { return new Environment(this.#values, this.#signal, this.#asked) }

  // Returns the same variables for another signal: OTEL_EXPORTER_OTLP_METRICS_* instead of TRACES. Shares our warnings and news.
  forSignal (signal) {
    return Object.assign(new Environment(this.#values, signal, this.#asked), { warnings: this.warnings, news: this.news })
  }

  #named (text) {
    return this.#signal === 'TRACES' ? text : text.replace('OTLP_TRACES_', `OTLP_${this.#signal}_`)
  }

  /** @returns {{ name: string, value: string } | undefined} the first variable that is set */
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
    return this.firstValid(names, 'true or false', (value) => BOOLEANS.get(value.toLowerCase()))
  }

  integer (names, { min = 0, max = Number.MAX_SAFE_INTEGER } = {}) {
    return this.firstValid(names, `an integer of at least ${min}`, (value) => {
      if (!/^[0-9]{1,15}$/.test(value) || Number(value) < min) return undefined
      return Math.min(Number(value), max)
    })
  }

  oneOf (names, known) {
    return this.firstValid(names, inWords(known), (value) => known.find((item) => item === value.toLowerCase()))
  }

  // Returns the known names of a list, case-insensitively.
  namesOf (name, known) {
    return this.listOf(name, inWords(known), (item) => known.includes(item.toLowerCase()))?.map((item) => item.toLowerCase())
  }

  // Returns the accepted items of a list.
  listOf (name, expected, accepts) {
    const items = this.text(name)?.split(',').map((item) => item.trim()).filter((item) => item !== '')
    return items?.filter((item) => accepts(item) || this.ignored(name, item, expected))
  }

  ignored (name, value, expected) {
    this.warn('LT_WARN_ENV', `${name} is ignored: it must be ${expected}, received ${describeValue(value)}`)
  }

  /** Warns about names that differ by one letter from a name that is read. Names in the specification differ by more. */
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

  /** @param {Code} code */
  warn (code, text) {
    const message = this.#named(text)
    if (!this.warnings.some((warning) => warning.message === message)) this.warnings.push({ code, message })
  }

  // Returns the first result of `parse` that is not undefined. An invalid specific variable does not hide the general one.
  firstValid (names, expected, parse) {
    for (const name of names) {
      const value = this.text(name)
      if (value === undefined) continue
      const parsed = parse(value)
      if (parsed !== undefined) return parsed
      this.ignored(name, value, expected)
    }
  }
}

// Splits a percent-encoded 'k=v,k2=v2'. A value is undefined if it is missing or if the pair cannot be decoded.
function pairsIn (text) {
  return text.split(',').filter((pair) => pair.trim() !== '').map((pair) => {
    const equals = pair.indexOf('=')
    if (equals === -1) return ['', undefined]
    const key = pair.slice(0, equals).trim()
    return attempt(() => [decodeURIComponent(key), decodeURIComponent(pair.slice(equals + 1).trim())]) ?? [key, undefined]
  })
}

// AWS Lambda sets it again for each invocation.
function invocationTraceHeader () {
  return process.env._X_AMZN_TRACE_ID
}

module.exports = { VARIABLE_LENGTH_MAX, Environment, invocationTraceHeader, pairsIn }
