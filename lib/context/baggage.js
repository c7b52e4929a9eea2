'use strict'

// The W3C `baggage` header (https://www.w3.org/TR/baggage/) and the API's Baggage over it:
//
//   userId=alice,serverNode=DF%2028;region=eu;canary , empty=
//   key    value            value   properties
//
// Any client can fill it. So it is read only on demand and for outgoing calls, and members that cannot be parsed are dropped.

const { attempt } = require('../runtime/report.js')

// The SDKs' limits, for incoming and outgoing headers. Unbounded baggage has taken services down (GHSA-8988-4f7v-96qf).
const BYTES_MAX = 8192
const MEMBERS_MAX = 180
const MEMBER_BYTES_MAX = 4096

// Characters that must be percent-encoded. In properties, '%' is not encoded.
const NOT_KEY = /[^\w!#$&'*+.^`|~-]+/g
const NOT_VALUE = /[^!#$&-+\--:<-[\]-~]+/g
const NOT_PROPERTIES = /[^\t -+\--~]+/g

/** The baggage of a header. Empty if the value is not a string. */
function parseBaggage (value) {
  return new Baggage(typeof value === 'string' ? value : '')
}

/**
 * The header for an outgoing call, '' for no header. Members that exceed the limits are dropped whole. Never throws.
 * @param {import('@opentelemetry/api').Baggage | undefined} baggage ours or another library's
 */
function serializeBaggage (baggage) {
  if (baggage === undefined || baggage === null) return ''
  return attempt(() => baggage instanceof Baggage ? baggage.serialize() : textOf(baggage.getAllEntries())) ?? ''
}

/** The API's Baggage. Immutable, so it is parsed and serialized at most once. */
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
    const copy = attempt(() => ({ ...entry })) ?? {} // an empty entry does not go into the header
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

  // A Map, so that `__proto__` and `constructor` are ordinary keys.
  #read () { return (this.#entries ??= entriesOf(this.#text)) }
}

function entriesOf (text) {
  const entries = new Map()
  let members = 0
  let at = 0
  while (at < text.length && at < BYTES_MAX && members < MEMBERS_MAX) {
    const comma = text.indexOf(',', at)
    const end = comma === -1 ? text.length : comma
    // A member that crosses the limit is dropped, not cut.
    if (end > at && end <= BYTES_MAX && end - at <= MEMBER_BYTES_MAX) {
      members++
      readMember(text.slice(at, end), entries)
    }
    at = end + 1
  }
  return entries
}

function readMember (member, entries) {
  if (/[^\t -~]/.test(member)) return // other characters have no agreed meaning in a header
  const semicolon = member.indexOf(';')
  const pair = semicolon === -1 ? member : member.slice(0, semicolon)
  const equals = pair.indexOf('=')
  if (equals === -1) return
  const key = decoded(pair.slice(0, equals))
  const value = decoded(pair.slice(equals + 1), inUtf8)
  if (key === undefined || key === '' || value === undefined) return
  // Properties are passed on unchanged. The API gives them no meaning either.
  const properties = member.slice(semicolon + 1).trim()
  entries.set(key, semicolon === -1 ? { value } : { value, metadata: { toString: () => properties } })
}

// Also used for keys. W3C defines keys as plain tokens, but the SDKs percent-encode keys that are not.
function decoded (text, otherwise = undefined) {
  const trimmed = text.trim()
  return trimmed.includes('%') ? attempt(() => decodeURIComponent(trimmed)) ?? otherwise?.(trimmed) : trimmed
}

/** Decodes a value that is not valid UTF-8: W3C replaces invalid bytes with U+FFFD. Undefined if a percent sign has no hex byte after it. */
function inUtf8 (text) {
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) return undefined
  return Buffer.from(text.replace(/%(..)/g, (_, byte) => String.fromCharCode(parseInt(byte, 16))), 'latin1').toString()
}

/**
 * The baggage of a call whose header has Sentry's members already: those, plus our members that are not Sentry's. Undefined if the header
 * has other members. Then the application has set it, and we add nothing, because it may want nothing else to leave.
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
    return '' // converting a user's value to text may throw
  }
}

// Allowed characters are not encoded. Otherwise a header that arrived within the limits could exceed them when it is sent.
function encoded (value, refused) {
  const text = String(value)
  if (text.length > MEMBER_BYTES_MAX) return text // it will be dropped, and encoding can only lengthen it
  // encodeURIComponent does not encode parentheses, which a key must not contain.
  return text.replace(refused, (chars) => encodeURIComponent(chars.toWellFormed()).replaceAll('(', '%28').replaceAll(')', '%29'))
}

module.exports = { parseBaggage, serializeBaggage, besideSentrys, Baggage }
