'use strict'

// Credentials in a query: the values of parameters whose names say so become REDACTED, everything else keeps its bytes
// (a URLSearchParams round trip would re-encode them). The HTTP conventions name the signatures of cloud storage; most
// credentials in queries have other names.
// https://opentelemetry.io/docs/specs/semconv/http/http-spans/ , note on `url.query`

const { atOnce, attempt } = require('../runtime/report.js')

const REDACTED = 'REDACTED'

// Names are compared without case, separators and trailing digits: access_token, accessToken, user[access-token].
const CREDENTIALS = [
  'code', 'authcode', 'authorizationcode', 'codeverifier', 'devicecode', 'usercode', 'verificationcode', 'resetcode',
  'recoverycode', 'otpcode', 'mfacode', 'smscode', 'onetimecode', 'accesscode', 'oobcode', 'otp', 'totp', 'pin', 'auth', 'authorization', 'bearer', 'cookie', 'csrf', 'xsrf', 'hmac',
  'jwt', 'dpop', 'pass', 'pwd', 'pw', 'passkey', 'ticket', 'magiclink', 'key', 'samlart', 'samlrequest', 'samlresponse', 'sas', 'session', 'sessionid', 'sessid', 'phpsessid',
  'jsessionid', 'connectsid', 'sid', 'sign', 'accesskeyid', 'awsaccesskeyid'
]
// A name that holds one of these is one too, password_confirmation, passwordHash; or ends in one: refresh_token, client_secret.
const PARTS = new RegExp(`pass(?:code|phrase|wd|word)|(?:${[
  'accesskey', 'apikeys?', 'appkey', 'assertion', 'credentials?', 'encryptionkey', 'masterkey', 'privatekey', 'secret',
  'secretkey', 'secrets', 'signature', 'signingkey', 'subscriptionkey', 'token', 'tokenhint', 'tokens', 'verifier'
].join('|')})$`)
const SIGNATURE = 'sig' // of the conventions, which compare with case

// An app's own names come again and again; a caller's must not fill the memory.
const KNOWN_MAX = 256
const KNOWN_LENGTH_MAX = 64
const SLOTS = KNOWN_MAX * 2

// A value may be a URL with a query or a password of its own, encoded: a redirect's. Of what is deeper nothing is shown.
const MAY_NEST = /%(?:2[356]|3[df]|40)|[?#@]/i
const NESTING_MAX = 3

// Of bytes.
const REDACTED_BYTES = new Uint8Array(Buffer.from(REDACTED))
const AND = 0x26
const EQUALS = 0x3d
const PERCENT = 0x25
const IS_PLAIN = new Uint8Array(256).fill(1) // neither ends a value nor makes it nest
for (const char of '&%?#@') IS_PLAIN[char.charCodeAt(0)] = 0
const USER_INFO = /(?<=\/\/)[^/?#\s]*@/g

class QueryRedactor {
  #decide
  #names
  /** @type {Report} */ #report
  #known = new Map() // name as it came -> whether it is a credential; a KnownName where it came again
  #knownBytes = new KnownBytes() // these

  /** @param {string[] | ((name: string) => boolean) | null} option names beside ours, or a function that decides about all */
  constructor (option, report) {
    this.#decide = typeof option === 'function' ? option : null
    this.#names = new Set([...CREDENTIALS, ...(Array.isArray(option) ? option.map(normalised) : [])])
    this.#report = report
  }

  /** Whether the user's function decides, which is code of theirs. */
  get asksUser () { return this.#decide !== null }

  /**
   * Redacts a query where it stands in the bytes of its span, with room for `growth` bytes behind it, three at least. The names must have come
   * before, and no value may hold a query: of all else `redact` knows.
   * HOT, once per recorded request that has a query. Budget: 0 objects, 0 strings.
   * @returns {number} where it ends then, or -1 where `redact` has to be asked
   */
  redactBytes (bytes, view, start, end, growth) {
    const known = this.#knownBytes
    const endMax = end + growth - 1
    bytes[end] = AND // so that each parameter ends with one
    let before = known.start
    for (let at = start; at < end; at++) {
      let name = before.next
      const length = lengthOfName(name, view, at)
      if (length !== -1) at += length
      else {
        const from = at
        let hash = 0
        let byte = bytes[at]
        while (byte !== EQUALS && byte !== AND) {
          hash = Math.imul(hash, 31) + byte | 0
          byte = bytes[++at]
        }
        if (byte === AND) continue
        name = before.next = known.find(view, from, hash)
        if (name === null) return -1
      }
      before = name
      const value = ++at
      let byte = bytes[at]
      if (name.isCredential) {
        while (byte !== AND) byte = bytes[++at]
        const grown = value + REDACTED_BYTES.length - at
        if (end + grown > endMax) return -1
        if (grown !== 0) bytes.copyWithin(at + grown, at, end + 1)
        bytes.set(REDACTED_BYTES, value)
        end += grown
        at += grown
      } else {
        for (; byte !== AND; byte = bytes[++at]) {
          while (IS_PLAIN[byte] === 1) byte = bytes[++at]
          if (byte === AND) break
          if (byte !== PERCENT || isNesting(bytes[at + 1], bytes[at + 2])) return -1
        }
      }
    }
    return end
  }

  /** A query, without its question mark. */
  // HOT, once per recorded request or call that has a query. Budget: one short string per parameter.
  redact (query, depth = 0) {
    const mayNest = MAY_NEST.test(query)
    let redacted = ''
    let copied = 0 // up to here `redacted` has the query
    let start = 0
    let equals = query.indexOf('=')
    while (equals !== -1) {
      let end = query.indexOf('&', start)
      if (end === -1) end = query.length
      if (equals < end) {
        const isCredential = this.#isCredential(query.slice(start, equals))
        const value = isCredential ? REDACTED : mayNest ? this.#nested(query.slice(equals + 1, end), depth) : null
        if (value !== null) {
          redacted += query.slice(copied, equals + 1) + value
          copied = end
        }
        equals = query.indexOf('=', end)
      }
      start = end + 1
    }
    return copied === 0 ? query : redacted + query.slice(copied)
  }

  /** The same for a whole URL, or a path with its query. HOT */
  redactUrl (url) {
    const mark = url.indexOf('?')
    if (mark === -1) return url
    const query = url.slice(mark + 1)
    const redacted = this.redact(query)
    return redacted === query ? url : url.slice(0, mark + 1) + redacted
  }

  /** The value of a header: all of it where it is not a URL. */
  redactHeader (value) {
    const mark = value.search(/[?#]/)
    const shown = mark === -1 ? value : value.slice(0, mark) + value.slice(mark).replace(/[^?#]+/g, (query) => this.redact(query))
    return shown.replace(USER_INFO, `${REDACTED}@`)
  }

  /** A value that holds credentials in a query of its own, without them; null for any other. */
  #nested (value, depth) {
    if (!MAY_NEST.test(value)) return null
    if (depth === NESTING_MAX) return REDACTED
    const url = decoded(value)
    const isEncodedTwice = url !== value && !url.includes('=') && MAY_NEST.test(url)
    const shown = isEncodedTwice
      ? this.#nested(url, depth + 1) ?? url
      : url.replace(/[^?#]+/g, (query) => this.redact(query, depth + 1)).replace(USER_INFO, `${REDACTED}@`)
    return shown === url ? null : url === value ? shown : encodeURIComponent(shown.toWellFormed())
  }

  #isCredential (name) {
    if (this.#decide !== null) return this.#ask(name)
    const known = this.#known.get(name)
    if (known instanceof KnownName) return known.isCredential
    if (known !== undefined) {
      this.#known.set(name, this.#knownBytes.add(name, known))
      return known
    }
    const is = this.#matches(decoded(name))
    if (this.#known.size === KNOWN_MAX) {
      this.#known.clear()
      this.#knownBytes = new KnownBytes()
    }
    if (name.length <= KNOWN_LENGTH_MAX) this.#known.set(name, is)
    return is
  }

  #matches (given) {
    if (given === SIGNATURE) return true
    const name = normalised(given)
    return this.#names.has(name) || PARTS.test(name)
  }

  /** The answer of the user's function. Where it fails the value is hidden: its author meant to hide something. */
  #ask (name) {
    const what = 'the option redactQuery failed; values that it does not decide about are redacted'
    return this.#report.attempt('LT_WARN_CALLBACK', what, () => Boolean(atOnce(this.#decide(decoded(name))))) ?? true
  }
}

/** Whether the two bytes behind a percent sign make a character that MAY_NEST has. */
function isNesting (high, low) {
  if (high === 0x32) return low === 0x33 || low === 0x35 || low === 0x36 // %23 %25 %26
  return (high === 0x33 && ((low | 0x20) === 0x64 || (low | 0x20) === 0x66)) || (high === 0x34 && low === 0x30) // %3D %3F %40
}

/** The name of a parameter that came before. */
class KnownName {
  /** @type {KnownName | null} */
  next = null // the one that came behind it: an app's own links and forms have theirs in the same order

  /** @param {Uint8Array} bytes with the equals sign */
  constructor (bytes, isCredential) {
    this.length = bytes.length - 1
    this.last = bytes.length - 1 >> 2
    this.words = new Int32Array(this.last + 1) // four bytes each, the first in the lowest
    for (const [i, byte] of bytes.entries()) this.words[i >> 2] |= byte << (i & 3) * 8
    this.mask = -1 >>> (3 - (this.length & 3)) * 8 | 0 // of the last word
    this.isCredential = isCredential
  }
}

/** Names of parameters as bytes, to be found without making strings of what came: a table with open addresses. */
class KnownBytes {
  #names = new Array(SLOTS).fill(null)
  start = new KnownName(new Uint8Array(1), false) // before the first one

  find (view, from, hash) {
    const names = this.#names
    let at = hash & SLOTS - 1
    while (names[at] !== null && lengthOfName(names[at], view, from) === -1) at = at + 1 & SLOTS - 1
    return names[at]
  }

  add (text, isCredential) {
    const name = new Uint8Array(Buffer.from(`${text}=`))
    let at = 0
    for (let i = 0; i < name.length - 1; i++) at = Math.imul(at, 31) + name[i] | 0
    at &= SLOTS - 1
    while (this.#names[at] !== null) at = at + 1 & SLOTS - 1
    return (this.#names[at] = new KnownName(name, isCredential))
  }
}

/** The length of the name that stands there, if it is this one; else -1. Reads up to three bytes more. HOT */
function lengthOfName (name, view, at) {
  if (name === null) return -1
  const { words, last, length } = name
  for (let i = 0; i < last; i++, at += 4) if (view.getInt32(at, true) !== words[i]) return -1
  return (view.getInt32(at, true) & name.mask) === words[last] ? length : -1
}

let separators = null

/** A name without case, separators and trailing digits. */
function normalised (name) {
  // Not a literal: V8 reads Unicode's tables for one as soon as it reads the file.
  separators ??= new RegExp('[^\\p{L}\\p{N}]', 'gu') // eslint-disable-line prefer-regex-literals
  return name.toLowerCase().replace(separators, '').replace(/(?<=\D)\d{1,4}$/, '')
}

function decoded (name) {
  const text = name.includes('+') ? name.replaceAll('+', ' ') : name
  return text.includes('%') ? attempt(() => decodeURIComponent(text)) ?? text : text
}

module.exports = { QueryRedactor }
