'use strict'

// The grammar of one condition. The server reads `where=` with it, and the page its filter field.
//
//   key            the attribute exists         !key           it does not
//   key = value    also != > >= < <= ~          error, !error  failed, not failed
//
// `~` means: contains. A key or a value in double quotes may have any characters (\" is a quote). A quoted key is always an attribute's, and a
// quoted value is always text. A value without quotes goes to the end.

const { KINDS, LEVELS } = require('../otlp/names')

const LENGTH_MAX = 500

// V8 and Node.js compare a longer text at every place of the text that it is searched in: hundreds of steps for each character.
const SEARCHED_MAX = 250

const QUOTED = '"((?:[^"\\\\]|\\\\.)*)"'
const FORM = new RegExp(`^(!?)\\s*(?:${QUOTED}|([^\\s"!=<>~]+))\\s*(?:(!=|>=|<=|[=<>~])\\s*(?:${QUOTED}|([^\\s"=<>~].*)))?$`, 's')
const BARE_KEY = /^[^\s"!=<>~]+$/
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i
const NUMBER_LENGTH_MAX = 40
const UNITS_MS = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

// Keys that mean more than an attribute. Each checks the condition, and may set what it is compared with.
const SPECIAL = {
  duration (condition) {
    const [, number, unit = 'ms'] = /^(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|m|h)?$/.exec(condition.value) ?? []
    if (number === undefined || condition.op === '~') throw new Error('duration is compared with a time, such as duration > 100ms')
    condition.number = Number(number) * UNITS_MS[unit]
  },
  status ({ op, value, number }) {
    const isName = /^(?:error|ok|[1-5]xx)$/i.test(value)
    if (op !== '' && !(number >= 0) && !(isName && op === '=')) throw new Error('status is compared with a number, or is error, ok or a class such as 4xx')
  },
  kind (condition) {
    condition.value = condition.value.toUpperCase()
    if (condition.op !== '' && (condition.op !== '=' || !KINDS.includes(condition.value))) throw new Error(`kind is one of ${KINDS.slice(1).join(', ').toLowerCase()}`)
  },
  level (condition) {
    condition.number = LEVELS.indexOf(condition.value.toLowerCase())
    if (condition.op !== '' && (condition.op === '~' || condition.number === -1)) throw new Error(`level is compared with ${LEVELS.join(', ')}`)
  },
  error ({ op }) {
    if (op !== '') throw new Error('error is given without a value: error or !error')
  },
  name () {},
  service () {},
  body () {}
}

/**
 * @param {string} text
 * @returns {{ key: string, attribute: boolean, op: string, negated: boolean, value: string, quoted: boolean, number: number | undefined }}
 *   op: = > >= < <= ~, or '': the key exists. `attribute`: the key is an attribute's. `number`: the value as a number
 * @throws {Error} with a sentence
 */
function conditionOf (text) {
  if (text.length > LENGTH_MAX) throw new Error(`must have at most ${LENGTH_MAX} characters`)
  const match = FORM.exec(text.trim())
  const [, not, quotedKey, bareKey, sign = '', quotedValue, bareValue] = match ?? []
  if (match === null || quotedKey === '' || (not !== '' && sign !== '')) throw new Error('must be a condition, such as tenant.id = a, duration > 100ms, user.id, !error')
  const value = quotedValue === undefined ? bareValue ?? '' : unquoted(quotedValue)
  const condition = {
    key: bareKey ?? unquoted(quotedKey),
    attribute: bareKey === undefined || !Object.hasOwn(SPECIAL, bareKey),
    op: sign === '!=' ? '=' : sign,
    negated: not !== '' || sign === '!=',
    value,
    quoted: quotedValue !== undefined,
    number: quotedValue === undefined ? numberOf(value) : undefined
  }
  if (sign === '~' && value.toLowerCase().length > SEARCHED_MAX) throw new Error(`~ must be followed by at most ${SEARCHED_MAX} characters`)
  if (!condition.attribute) SPECIAL[condition.key](condition)
  return condition
}

/** Whether a text that was typed into a search field is meant as a condition. One word is not, except `error`. */
function isCondition (text) {
  const [, not, quotedKey, bareKey, sign] = FORM.exec(text.trim()) ?? []
  return (quotedKey ?? bareKey) !== undefined && (not !== '' || sign !== undefined || bareKey === 'error')
}

/** Writes a condition so that conditionOf reads the same. */
function conditionText ({ key, attribute, op, negated = false, value, quoted = false }) {
  const name = BARE_KEY.test(key) && !(attribute && Object.hasOwn(SPECIAL, key)) ? key : inQuotes(key)
  if (op === '') return `${negated ? '!' : ''}${name}`
  const isBare = !quoted && value.trim() === value && /^[^"=<>~]/.test(value)
  return `${name} ${negated ? '!=' : op} ${isBare ? value : inQuotes(value)}`
}

/** @returns {number | undefined} the number that a value or a text is */
function numberOf (value) {
  if (typeof value === 'number') return value
  return typeof value === 'string' && value.length <= NUMBER_LENGTH_MAX && NUMBER.test(value) ? Number(value) : undefined
}

function inQuotes (text) {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

function unquoted (text) {
  return text.replace(/\\(.)/gs, '$1')
}

module.exports = { conditionOf, conditionText, isCondition, numberOf, LENGTH_MAX, SEARCHED_MAX }
