'use strict'

// The W3C `baggage` header (https://www.w3.org/TR/baggage/) and the API's Baggage over it:
//
//   userId=alice,serverNode=DF%2028;region=eu;canary , empty=
//   key    value            value   properties
//
// A stranger may fill it: it is read only on demand and when a call goes out, and members that cannot be understood are left out.

const { attempt } = require('../runtime/report.js')

// The SDKs' limits, in and out: unbounded baggage has taken services down (GHSA-8988-4f7v-96qf).
const BYTES_MAX = 8192
const MEMBERS_MAX = 180
const MEMBER_BYTES_MAX = 4096

// What has to be percent-encoded. In properties '%' is left as it is.
const NOT_KEY = /[^\w!#$&'*+.^`|~-]+/g
const NOT_VALUE = /[^!#$&-+\--:<-[\]-~]+/g
const NOT_PROPERTIES = /[^\t -+\--~]+/g

/** The baggage of a header; an empty one if the value is no string. */
function parseBaggage (value) {
  return new Baggage(typeof value === 'string' ? value : '')
}

/**
 * The header for an outgoing call, '' for none. What exceeds the limits is left out in whole members. Never throws.
 * @param {import('@opentelemetry/api').Baggage | undefined} baggage of ours or of another library
 */
function serializeBaggage (baggage) {
  if (baggage === undefined || baggage === null) return ''
  return attempt(() => baggage instanceof Baggage ? baggage.serialize() : textOf(baggage.getAllEntries())) ?? ''
}

/** The API's Baggage. Immutable, so it is read once and written once. */
class Baggage {
  #text
  #entries
  #serialized = null

  constructor (text, entries = null) {
    this.#text = text
    this.#entries = entries
  }

  getEntry (key) {
    const entry = this.#read().get(key)
    return entry === undefined ? undefined : { ...entry }
  }

  getAllEntries () { return Array.from(this.#read(), ([key, entry]) => [key, { ...entry }]) }

  setEntry (key, entry) {
    const copy = attempt(() => ({ ...entry })) ?? {} // an empty one is left out of the header
    return new Baggage('', new Map(this.#read()).set(key, copy))
  }

  removeEntry (key) { return this.removeEntries(key) }

  removeEntries (...keys) {
    const entries = new Map(this.#read())
    for (const key of keys) entries.delete(key)
    return new Baggage('', entries)
  }

  clear () { return new Baggage('', new Map()) }
  serialize () { return (this.#serialized ??= textOf(this.#read())) }

  // A Map, so that `__proto__` and `constructor` are keys like any other.
  #read () { return (this.#entries ??= entriesOf(this.#text)) }
}

function entriesOf (text) {
  const entries = new Map()
  let members = 0
  let at = 0
  while (at < text.length && at < BYTES_MAX && members < MEMBERS_MAX) {
    const comma = text.indexOf(',', at)
    const end = comma === -1 ? text.length : comma
    // A member that lies across the limit is not cut.
    if (end > at && end <= BYTES_MAX && end - at <= MEMBER_BYTES_MAX) {
      members++
      readMember(text.slice(at, end), entries)
    }
    at = end + 1
  }
  return entries
}

function readMember (member, entries) {
  if (/[^\t -~]/.test(member)) return // has no agreed meaning in a header
  const semicolon = member.indexOf(';')
  const pair = semicolon === -1 ? member : member.slice(0, semicolon)
  const equals = pair.indexOf('=')
  if (equals === -1) return
  const key = decoded(pair.slice(0, equals))
  const value = decoded(pair.slice(equals + 1), inUtf8)
  if (key === undefined || key === '' || value === undefined) return
  // Properties are passed on as they came; the API has no meaning for them either.
  const properties = member.slice(semicolon + 1).trim()
  entries.set(key, semicolon === -1 ? { value } : { value, metadata: { toString: () => properties } })
}

// Keys too, although W3C has them as plain tokens: the SDKs write what is no token this way.
function decoded (text, otherwise = undefined) {
  const trimmed = text.trim()
  return trimmed.includes('%') ? attempt(() => decodeURIComponent(trimmed)) ?? otherwise?.(trimmed) : trimmed
}

/** A value whose bytes are no UTF-8: W3C has U+FFFD for them. Undefined where a percent sign has no byte behind it. */
function inUtf8 (text) {
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) return undefined
  return Buffer.from(text.replace(/%(..)/g, (_, byte) => String.fromCharCode(parseInt(byte, 16))), 'latin1').toString()
}

/**
 * What a call carries that has Sentry's members already: these, and ours that are not among them. Undefined where other members are
 * there, which the application has set itself: they may stand for all that is to leave.
 */
function besideSentrys (there, text) {
  if (!there.split(',').every((member) => member.trim().startsWith('sentry-'))) return undefined
  let joined = there
  for (const member of text.split(',')) {
    if (!member.startsWith('sentry-') && joined.length + 1 + member.length <= BYTES_MAX) joined += `,${member}`
  }
  return joined
}

function textOf (entries) {
  let text = ''
  let members = 0
  for (const [key, entry] of entries) {
    if (members === MEMBERS_MAX) break
    const member = memberOf(key, entry)
    const separator = members === 0 ? '' : ','
    if (member === '' || member.length > MEMBER_BYTES_MAX || text.length + separator.length + member.length > BYTES_MAX) continue
    text += separator + member
    members++
  }
  return text
}

function memberOf (key, entry) {
  try {
    const name = encoded(key, NOT_KEY)
    if (name === '' || entry.value === undefined) return ''
    const properties = entry.metadata === undefined ? '' : encoded(entry.metadata, NOT_PROPERTIES).trim()
    return `${name}=${encoded(entry.value, NOT_VALUE)}${properties === '' ? '' : ';' + properties}`
  } catch {
    return '' // users' values may do as they like when they are asked for text
  }
}

// Characters that are allowed stay, so that a header which came within the limits does not outgrow them on its way out.
function encoded (value, refused) {
  const text = String(value)
  if (text.length > MEMBER_BYTES_MAX) return text // it will be left out, and encoding can only lengthen it
  // encodeURIComponent leaves the brackets, and a key may not hold them.
  return text.replace(refused, (chars) => encodeURIComponent(chars.toWellFormed()).replaceAll('(', '%28').replaceAll(')', '%29'))
}

module.exports = { parseBaggage, serializeBaggage, besideSentrys, Baggage }
