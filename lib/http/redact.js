'use strict'

// Redacts credentials in a query. If a parameter's name indicates a credential, its value becomes REDACTED. All other bytes stay the same
// (a URLSearchParams round trip would re-encode them). The HTTP conventions list only the signatures of cloud storage, but most credentials
// in queries have other names.
// https://opentelemetry.io/docs/specs/semconv/http/http-spans/ , note on `url.query`

const { atOnce, attempt } = require('../runtime/report.js')

const REDACTED = 'REDACTED'

// Names are compared case-insensitively, without separators and trailing digits: access_token, accessToken, user[access-token].
const CREDENTIALS = [
  'code', 'authcode', 'authorizationcode', 'codeverifier', 'devicecode', 'usercode', 'verificationcode', 'resetcode',
  'recoverycode', 'otpcode', 'mfacode', 'smscode', 'onetimecode', 'accesscode', 'oobcode', 'otp', 'totp', 'pin', 'auth', 'authorization', 'bearer', 'cookie', 'csrf', 'xsrf', 'hmac',
  'jwt', 'dpop', 'pass', 'pwd', 'pw', 'passkey', 'ticket', 'magiclink', 'key', 'samlart', 'samlrequest', 'samlresponse', 'sas', 'session', 'sessionid', 'sessid', 'phpsessid',
  'jsessionid', 'connectsid', 'sid', 'sign', 'accesskeyid', 'awsaccesskeyid'
]
// A name is a credential if it contains a password word (password_confirmation, passwordHash) or ends in one of the other words
// (refresh_token, client_secret).
const PARTS = new RegExp(`pass(?:code|phrase|wd|word)|(?:${[
  'accesskey', 'apikeys?', 'appkey', 'assertion', 'credentials?', 'encryptionkey', 'masterkey', 'privatekey', 'secret',
  'secretkey', 'secrets', 'signature', 'signingkey', 'subscriptionkey', 'token', 'tokenhint', 'tokens', 'verifier'
].join('|')})$`)
const SIGNATURE = 'sig' // from the conventions, which are case-sensitive

// Names are cached, because an app's own names repeat. The cache is limited, because a client can send any names.
const KNOWN_MAX = 256
const KNOWN_LENGTH_MAX = 64
const SLOTS = KNOWN_MAX * 2

// A value may be an encoded URL with its own query or password, as in redirects. Values nested deeper than NESTING_MAX are redacted whole.
const MAY_NEST = /%(?:2[356]|3[df]|40)|[?#@]/i
const NESTING_MAX = 3

// For `redactBytes`.
const REDACTED_BYTES = new Uint8Array(Buffer.from(REDACTED))
const AND = 0x26
const EQUALS = 0x3d
const PERCENT = 0x25
const IS_PLAIN = new Uint8Array(256).fill(1) // bytes that neither end a value nor indicate a nested URL
for (const char of '&%?#@') IS_PLAIN[char.charCodeAt(0)] = 0
const USER_INFO = /(?<=\/\/)[^/?#\s]*@/g

class QueryRedactor {
  #decide
  #names
  /** @type {Report} */ #report
  #known = new Map() // name as received -> whether it is a credential; a KnownName from its second occurrence on
  #knownBytes = new KnownBytes() // the KnownNames

  /** @param {string[] | ((name: string) => boolean) | null} option names in addition to ours, or a function that decides about all names */
  constructor (option, report) {
    this.#decide = typeof option === 'function' ? option : null
    this.#names = new Set([...CREDENTIALS, ...(Array.isArray(option) ? option.map(normalised) : [])])
    this.#report = report
  }

  /** Whether a function of the user decides, so that redacting runs user code. */
  get asksUser () { return this.#decide !== null }

  /**
   * Redacts a query in place, in the encoded bytes of its span. There must be room for `growth` bytes after it, at least three. It works only
   * if all names are known and no value contains a query. Other queries need `redact`.
   * HOT, once per recorded request that has a query. Budget: 0 objects, 0 strings.
   * @returns {number} the new end of the query, or -1 if `redact` is needed
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

  /** Redacts a query, which is passed without its question mark. */
  // HOT, once per recorded request or call that has a query. Budget: one short string per parameter.
  redact (query, depth = 0) {
    const mayNest = MAY_NEST.test(query)
    let redacted = ''
    let copied = 0 // `redacted` covers the query up to this index
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

  /** Redacts a whole URL, or a path with its query. HOT */
  redactUrl (url) {
    const mark = url.indexOf('?')
    if (mark === -1) return url
    const query = url.slice(mark + 1)
    const redacted = this.redact(query)
    return redacted === query ? url : url.slice(0, mark + 1) + redacted
  }

  /** Redacts the value of a header. A value that is not a URL does not change. */
  redactHeader (value) {
    const mark = value.search(/[?#]/)
    const shown = mark === -1 ? value : value.slice(0, mark) + value.slice(mark).replace(/[^?#]+/g, (query) => this.redact(query))
    return shown.replace(USER_INFO, `${REDACTED}@`)
  }

  /** The value without the credentials in its own query. Null if it has no credentials. */
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

  /** Asks the user's function. If it fails the value is redacted, because its author wanted to hide something. */
  #ask (name) {
    const what = 'the option redactQuery failed; values that it does not decide about are redacted'
    return this.#report.attempt('LT_WARN_CALLBACK', what, () => Boolean(atOnce(this.#decide(decoded(name))))) ?? true
  }
}

/** Whether the two bytes after a percent sign encode a character of MAY_NEST. */
function isNesting (high, low) {
  if (high === 0x32) return low === 0x33 || low === 0x35 || low === 0x36 // %23 %25 %26
  return (high === 0x33 && ((low | 0x20) === 0x64 || (low | 0x20) === 0x66)) || (high === 0x34 && low === 0x30) // %3D %3F %40
}

/** The name of a parameter that was received before. */
class KnownName {
  /** @type {KnownName | null} */
  next = null // the name that last followed this one, because an app's links and forms have their parameters in a fixed order

  /** @param {Uint8Array} bytes the name with its equals sign */
  constructor (bytes, isCredential) {
    this.length = bytes.length - 1
    this.last = bytes.length - 1 >> 2
    this.words = new Int32Array(this.last + 1) // four bytes each, the first in the lowest
    for (const [i, byte] of bytes.entries()) this.words[i >> 2] |= byte << (i & 3) * 8
    this.mask = -1 >>> (3 - (this.length & 3)) * 8 | 0 // for the last word
    this.isCredential = isCredential
  }
}

/** A hash table (open addressing) of parameter names as bytes. Lookups create no strings. */
class KnownBytes {
  #names = new Array(SLOTS).fill(null)
  start = new KnownName(new Uint8Array(1), false) // precedes the first name of a query

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

/** The length of `name` if it is at this position, else -1. Reads up to three bytes beyond the name. HOT */
function lengthOfName (name, view, at) {
  if (name === null) return -1
  const { words, last, length } = name
  for (let i = 0; i < last; i++, at += 4) if (view.getInt32(at, true) !== words[i]) return -1
  return (view.getInt32(at, true) & name.mask) === words[last] ? length : -1
}

let separators = null

/** A name in lower case, without separators and trailing digits. */
function normalised (name) {
  // Not a literal, because V8 would load Unicode tables for it when it parses the file.
  separators ??= new RegExp('[^\\p{L}\\p{N}]', 'gu') // eslint-disable-line prefer-regex-literals
  return name.toLowerCase().replace(separators, '').replace(/(?<=\D)\d{1,4}$/, '')
}

function decoded (name) {
  const text = name.includes('+') ? name.replaceAll('+', ' ') : name
  return text.includes('%') ? attempt(() => decodeURIComponent(text)) ?? text : text
}

module.exports = { QueryRedactor }
