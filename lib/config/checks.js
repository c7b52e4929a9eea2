'use strict'

// The words in which options.js says what it accepts. A check takes the option's path and value and
// returns the value to use, or throws what names both. `undefined` never reaches one: it means "not given".

// setTimeout takes a signed 32-bit number of milliseconds; above, it fires at once. 24.8 days stand for "no limit".
const DURATION_MAX_MS = 2 ** 31 - 1
const COUNT_MAX = 2 ** 31 - 1

// What stands for options that were not given: without a prototype, so that nothing is inherited either.
const EMPTY = Object.freeze(Object.create(null))

const boolean = check('true or false', (value) => typeof value === 'boolean')
const callback = check('a function', (value) => typeof value === 'function')
const text = check('a non-empty string', (value) => typeof value === 'string' && value.trim() !== '')
const count = check(`an integer from 0 to ${COUNT_MAX}`, (value) => Number.isInteger(value) && value >= 0 && value <= COUNT_MAX)
const bytes = check('a positive integer number of bytes', (value) => Number.isSafeInteger(value) && value > 0)
const isDuration = check('a number of milliseconds, 0 or more', (value) => typeof value === 'number' && value >= 0)

module.exports = { COUNT_MAX, DURATION_MAX_MS, EMPTY, anyOf, attributes, boolean, bytes, callback, count, duration, listOf, literal, object, orCallback, readOwn, text, wrong, wrongValue }

// Who has made no mistake starts faster without the errors.
function wrong (path, expected, received) {
  return require('./errors').optionInvalid(path, expected, received)
}

function wrongValue (path, expected, value) {
  return wrong(path, expected, require('./errors').describeValue(value))
}

function duration (path, value) {
  return Math.min(isDuration(path, value), DURATION_MAX_MS)
}

// The simplest check: what was accepted is used as it came.
function check (expected, accepts) {
  return (path, value) => {
    if (!accepts(value)) throw wrongValue(path, expected, value)
    return value
  }
}

function literal (...values) {
  return check(values.map((value) => typeof value === 'string' ? `'${value}'` : value).join(' or '), (value) => values.includes(value))
}

function anyOf (expected, ...accepts) {
  return check(expected, (value) => accepts.some((accept) => accept(value)))
}

function orCallback (otherwise) {
  return (path, value) => typeof value === 'function' ? value : otherwise(path, value)
}

function listOf (checkItem) {
  return (path, value) => {
    if (!Array.isArray(value)) throw wrongValue(path, 'an array', value)
    return Array.from(value, (item, index) => checkItem(`${path}[${index}]`, item))
  }
}

// An object with these members and no others, copied to one without a prototype. A name that is not known throws, or, where
// the caller has a use for names that resemble none of ours, is given to `onStranger`.
function object (shape) {
  const known = Object.keys(shape)
  return (path, value, onStranger = null) => {
    const read = Object.create(null)
    const prefix = path === '' ? '' : `${path}.`
    for (const [name, member] of readOwn(path, value)) {
      if (!Object.hasOwn(shape, name)) {
        const { resembles, optionUnknown } = require('./errors')
        if (onStranger === null || resembles(name, known)) throw optionUnknown(prefix + name, known)
        onStranger(name)
        continue
      }
      if (member !== undefined) read[name] = shape[name](prefix + name, member)
    }
    return read
  }
}

// Attributes as OpenTelemetry has them: strings, numbers, booleans, and arrays of one of these kinds.
function attributes (path, value) {
  const read = Object.create(null)
  for (const [name, member] of readOwn(path, value)) {
    if (member === undefined || member === null) continue
    if (name === '') throw wrong(path, 'an object without empty names', "the name ''")
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

// Own enumerable members, each read once. Inherited ones are never seen: with a polluted Object.prototype
// they would be somebody else's options. A getter that throws is a wrong option like any other.
function readOwn (path, value) {
  const name = path === '' ? 'options' : path
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw wrongValue(name, 'an object', value)
  }
  try {
    return Object.keys(value).map((key) => [key, value[key]])
  } catch {
    throw wrong(name, 'an object that can be read', 'one that throws')
  }
}
