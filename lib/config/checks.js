'use strict'

// The checks of the table of options, and their errors. A check takes an option's path and value and returns the value to use, or throws
// an error that names both. It is never called with `undefined`, which means "not given".

const fs = require('node:fs')
const { isProxy } = require('node:util/types')
const { printable } = require('../runtime/report.js')
const { DURATION_MAX_MS } = require('../runtime/timers.js')

const COUNT_MAX = 2 ** 31 - 1

// For certificates, keys and configuration files. A bundle of all public CAs has a quarter of this.
const FILE_BYTES_MAX = 1024 * 1024

// Used for options that were not given. It has no prototype, so that it inherits nothing.
const EMPTY = Object.freeze(Object.create(null))

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/ // RFC 9110's
// A header value as Node's http accepts it: without control characters, so it cannot start a new line.
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
// Names of headers that carry credentials, for any vendor. Tenant and routing headers (x-scope-orgid) do not match.
const CREDENTIAL = /assertion|auth|bearer|cookie|credential|dpop|dsn|hmac|jw[st]|key|oidc|otp|pass[cpw]|principal|pwd|saml|secret|session|signature|team|ticket|token/

const boolean = readBy(anyOf('true or false', (value) => typeof value === 'boolean'), (names, env) => env.boolean(...names))
const callback = anyOf('a function', (value) => typeof value === 'function')
const text = readBy(anyOf('a non-empty string', (value) => typeof value === 'string' && value.trim() !== ''), (names, env) => env.text(...names))
const count = readBy(anyOf(`an integer from 0 to ${COUNT_MAX}`, (value) => Number.isInteger(value) && value >= 0 && value <= COUNT_MAX),
  (names, env) => env.integer(names, { max: COUNT_MAX }))
const atLeastOne = readBy(anyOf('an integer from 1 on', (value) => Number.isSafeInteger(value) && value > 0), (names, env) => env.integer(names, { min: 1 }))
const bytes = anyOf('a positive integer number of bytes', (value) => Number.isSafeInteger(value) && value > 0)
const duration = readBy((path, value) => Math.min(notNegative('milliseconds')(path, value), DURATION_MAX_MS),
  (names, env) => env.integer(names, { max: DURATION_MAX_MS }))

/** @param {(names: string[], env: Environment) => any} read reads the same kind of value from variables */
function readBy (check, read) {
  return Object.assign(check, { read })
}

function notNegative (unit) {
  return anyOf(`a number of ${unit}, 0 or more`, (value) => typeof value === 'number' && value >= 0)
}

function anyOf (expected, ...accepts) {
  return (path, value) => {
    if (!accepts.some((accept) => accept(value))) throw wrongValue(path, expected, value)
    return value
  }
}

function literal (...values) {
  const check = anyOf(inWords(values.map((value) => typeof value === 'string' ? `'${value}'` : value)), (value) => values.includes(value))
  return Object.assign(readBy(check, (names, env) => env.oneOf(names, values)), { values })
}

/** 'a', 'a or b', 'a, b or c'. */
function inWords (names) {
  return names.join(', ').replace(/, ([^,]*)$/, ' or $1')
}

function orCallback (otherwise) {
  return (path, value) => typeof value === 'function' ? value : otherwise(path, value)
}

// `true` and `false` are replaced by other values.
function orBoolean (otherwise, whenTrue, whenFalse) {
  return (path, value) => {
    if (typeof value === 'boolean') return value ? whenTrue : whenFalse
    if (otherwise.expected !== undefined && !isObject(value)) throw wrongValue(path, `true, false or ${otherwise.expected}`, value)
    return otherwise(path, value)
  }
}

function listOf (checkItem) {
  const check = (path, value) => {
    if (!Array.isArray(value)) throw wrongValue(path, 'an array', value)
    return Array.from(value, (item, index) => checkItem(`${path}[${index}]`, item))
  }
  return Object.assign(check, { item: checkItem })
}

const headerNames = listOf((path, value) => {
  if (typeof value !== 'string' || !TOKEN.test(value)) throw wrongValue(path, 'the name of a header', value)
  return value.toLowerCase()
})

// Checks an object that may have only these members, and copies it to one without a prototype. An unknown name throws. If it does not
// resemble a known name and there is an `onStranger`, it is passed to that function instead, with the hint that `meant` (path) returns.
// `moved`: checks for names that are accepted but not suggested. `others`: is added to the error for unknown members.
function object (shape, { meant = undefined, moved = EMPTY, others = undefined } = EMPTY) {
  const known = Object.keys(shape)
  const expected = known.length > 0 ? `an object with ${known.join(', ')}` : 'an object'
  const check = (path, value, onStranger = null) => {
    const read = Object.create(null)
    const prefix = path === '' ? '' : `${path}.`
    for (const [name, member] of readOwn(path, value, path === '' ? undefined : expected)) {
      const check = Object.hasOwn(shape, name) ? shape[name] : Object.hasOwn(moved, name) ? moved[name] : undefined
      if (check !== undefined) {
        if (member !== undefined) read[name] = check(prefix + name, member)
        continue
      }
      const hint = meant?.(prefix + name)
      const nearest = hint === undefined ? nearestName(name, known) : undefined
      if (onStranger === null || nearest !== undefined) {
        const help = hint !== undefined ? `use ${hint}` : nearest === undefined ? [`known are ${known.join(', ')}`, others].filter(Boolean).join('; ') : `did you mean \`${prefix}${nearest}\`?`
        throw new LightTraceError('LT_ERR_OPTION_UNKNOWN', `unknown option \`${printable(prefix + name)}\`: ${help}`)
      }
      onStranger(name, hint)
    }
    return read
  }
  return Object.assign(check, { expected })
}

// Checks attributes as OpenTelemetry defines them: strings, numbers, booleans, and arrays of one of these types.
function attributes (path, value) {
  const read = Object.create(null)
  for (const [name, member] of readOwn(path, value)) {
    if (member === undefined || member === null) continue
    if (name === '') throw optionInvalid(path, 'an object without empty names', "the name ''")
    if (!isAttributeValue(member)) {
      throw wrongValue(`${path}['${name}']`, 'a string, number, boolean or an array of one of these', member)
    }
    read[name] = Array.isArray(member) ? Object.freeze(Array.from(member)) : member
  }
  return read
}

function isAttributeValue (value) {
  if (!Array.isArray(value)) return isPrimitive(value)
  return value.every((item) => isPrimitive(item) && typeof item === typeof value[0])
}

function isPrimitive (value) {
  return typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)
}

/**
 * Reads own enumerable members, each once. Inherited members are not the user's options, since Object.prototype may be polluted. A
 * getter that throws is a wrong option like any other.
 */
function readOwn (path, value, expected = 'an object') {
  const name = path === '' ? 'options' : path
  if (!isObject(value)) throw wrongValue(name, expected, value)
  try {
    // A Map or Headers has no own keys, and would seem empty.
    if (typeof value.entries === 'function') return Array.from(value.entries(), ([key, member]) => [String(key), member])
    return Object.keys(value).map((key) => [key, value[key]])
  } catch {
    throw optionInvalid(name, 'an object that can be read', 'one that throws when it is read')
  }
}

/** Reads a file. Throws on failure. Does not block on a pipe, a terminal or a device. */
function readFile (path) {
  const file = fs.openSync(path, fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0))
  try {
    if (!fs.fstatSync(file).isFile()) throw new Error('it is no file')
    const bytes = Buffer.allocUnsafe(FILE_BYTES_MAX + 1)
    let length = 0
    for (let more = 1; more > 0 && length < bytes.length; length += more) more = fs.readSync(file, bytes, length, bytes.length - length, null)
    if (length > FILE_BYTES_MAX) throw new Error(`it is longer than ${FILE_BYTES_MAX} bytes`)
    return Buffer.from(bytes.subarray(0, length)) // copied into memory of the right size
  } finally {
    fs.closeSync(file)
  }
}

function isObject (value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The error that `register` and adding a route throw. Codes are API, messages are not. */
class LightTraceError extends Error {
  /** @param {Code} code */
  constructor (code, message) {
    super(message)
    this.code = code
  }

  get name () { return 'LightTraceError' } // not an own property, as in Node's errors
}

// `received` is a text: `describeValue(value)`, or just the type if the value may be a secret.
function optionInvalid (path, expected, received) {
  return new LightTraceError('LT_ERR_OPTION_INVALID', `\`${printable(path)}\` must be ${expected}, received ${received}`)
}

function wrongValue (path, expected, value) {
  return optionInvalid(path, expected, describeValue(value))
}

// Words in one case or in camel case, and numbers. Keys and tokens do not look like this.
const WORD = /^(?:[A-Za-z]?[a-z]{0,20}(?:[A-Z][a-z]{1,20}){0,3}|[A-Z]{2,20}|\d{1,15}|[A-Za-z]{0,8}\d{1,3}[A-Za-z]{0,8})$/
// Excludes `user:password@host`, queries and named credentials.
const NOT_QUOTED = /[@?]|basic /
const QUOTED_MAX = 64

/**
 * Describes a value in a few words, without running its code. All messages quote configuration values with this function. A text that
 * does not consist of plain words and numbers is not shown, because it may be a misplaced secret.
 */
function describeValue (value) {
  if (typeof value === 'string') {
    const shown = printable(value, QUOTED_MAX)
    const lower = shown.toLowerCase()
    const isPlain = !NOT_QUOTED.test(lower) && !CREDENTIAL.test(lower) && shown.split(/[^A-Za-z0-9]+/).every((word) => WORD.test(word))
    return isPlain ? `'${shown}'` : `a string of ${value.length} characters, which is not shown`
  }
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'symbol') return 'a symbol'
  if (typeof value !== 'object' || value === null) return `${value}`
  return !isProxy(value) && Array.isArray(value) ? 'an array' : 'an object' // a revoked proxy throws at isArray
}

// Longer names are not typos, and the distance takes quadratic time.
const NAME_MAX = 64
// A typo changes one or two letters. In a short name two changes would make a different word.
const LETTERS_PER_ERROR = 3
const ERRORS_MAX = 2
// Matches names that are longer or shorter than ours, as `ignorePaths` and `service`. With fewer letters, too many words would match
// (`keepAlive`).
const COMMON_START_MIN = 5

/** @returns {string | undefined} the known name that `name` resembles */
function nearestName (name, known) {
  const wanted = name.slice(0, NAME_MAX).toLowerCase()
  let nearest
  let least = Math.min(ERRORS_MAX, Math.floor(wanted.length / LETTERS_PER_ERROR)) + 1
  for (const candidate of known) {
    const distance = editDistance(wanted, candidate.toLowerCase())
    if (distance < least) {
      least = distance
      nearest = candidate
    }
  }
  return nearest ?? known.find((candidate) => startAlike(wanted, candidate.toLowerCase()))
}

function startAlike (a, b) {
  return Math.min(a.length, b.length) >= COMMON_START_MIN && (a.startsWith(b) || b.startsWith(a))
}

// Levenshtein distance, row by row. Two swapped letters count as one error.
function editDistance (a, b) {
  let beforePrevious = []
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = previous[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? beforePrevious[j - 2] + 1 : Infinity
      row.push(Math.min(replaced, swapped, previous[j] + 1, row[j - 1] + 1))
    }
    beforePrevious = previous
    previous = row
  }
  return previous[b.length]
}

/** Removes the byte order mark that Windows editors write. */
function withoutMark (text) { return text.replace(/^\ufeff/, '') }

const values = { atLeastOne, attributes, boolean, bytes, callback, count, duration, headerNames, text }
const kinds = { anyOf, listOf, literal, notNegative, object, orBoolean, orCallback }
const parts = { COUNT_MAX, CREDENTIAL, DURATION_MAX_MS, EMPTY, FIELD_VALUE, FILE_BYTES_MAX, TOKEN, isAttributeValue, isObject, readFile, readOwn, withoutMark }
const errors = { LightTraceError, describeValue, editDistance, inWords, nearestName, optionInvalid, wrongValue }

module.exports = { ...values, ...kinds, ...parts, ...errors }
