'use strict'

// Reads parameters of the API's addresses. A wrong one is answered with 400 and its name.

const { LAST } = require('./last')

const UNITS_MS = { s: 1000, m: 60_000, h: 3_600_000 }

class BadParameter extends Error {}

/** @param {URLSearchParams} query @returns {string} @throws BadParameter if the parameter is missing or empty */
function required (query, name) {
  const value = query.get(name)
  if (!value) throw new BadParameter(`${name}: is required`)
  return value
}

/** @returns {number | undefined} undefined without the parameter. @throws BadParameter if it is not a whole number from `min` to `max` */
function integer (query, name, min, max) {
  if (!query.get(name)) return undefined
  const value = Number(query.get(name))
  if (!Number.isInteger(value) || value < min || value > max) throw new BadParameter(`${name}: must be a whole number from ${min} to ${max}`)
  return value
}

/** @returns {string | undefined} undefined without the parameter. @throws BadParameter if it is not one of `names` */
function oneOf (query, name, names) {
  const value = query.get(name)
  if (!value) return undefined
  if (!names.includes(value)) throw new BadParameter(`${name}: must be ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`)
  return value
}

/**
 * The time interval of `from` and `to` (milliseconds since the epoch, either may be missing) or of `last` (`90s`, `15m`, `1h`), which ends now.
 * @param {URLSearchParams} query
 * @param {number} nowMs
 * @returns {{ fromMs: number, toMs: number } | null} inclusive bounds; null without these parameters @throws BadParameter
 */
function interval (query, nowMs) {
  const last = query.get('last')
  if (last) {
    const [, count, unit] = LAST.exec(last) ?? []
    if (count === undefined) throw new BadParameter('last: must be a number of seconds, minutes or hours, such as 90s, 15m or 1h')
    return { fromMs: nowMs - Number(count) * UNITS_MS[unit], toMs: Infinity }
  }
  const fromMs = integer(query, 'from', 0, Number.MAX_SAFE_INTEGER)
  const toMs = integer(query, 'to', 0, Number.MAX_SAFE_INTEGER)
  if (fromMs === undefined && toMs === undefined) return null
  if (fromMs > toMs) throw new BadParameter('from: must not be later than to')
  return { fromMs: fromMs ?? 0, toMs: toMs ?? Infinity }
}

module.exports = { BadParameter, required, integer, oneOf, interval }
