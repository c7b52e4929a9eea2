'use strict'

// Credentials in a query: the values of parameters whose names say so become REDACTED, everything else keeps its bytes
// (a URLSearchParams round trip would re-encode them). The HTTP conventions name the signatures of cloud storage; most
// credentials in queries have other names.
// https://opentelemetry.io/docs/specs/semconv/http/http-spans/ , note on `url.query`

const { atOnce } = require('../runtime/report')

const REDACTED = 'REDACTED'

// Names are compared without case, separators and trailing digits: access_token, accessToken, user[access-token].
const CREDENTIALS = [
  'code', 'authcode', 'authorizationcode', 'codeverifier', 'devicecode', 'usercode', 'verificationcode', 'resetcode',
  'recoverycode', 'otpcode', 'mfacode', 'smscode', 'onetimecode', 'accesscode', 'oobcode', 'otp', 'totp', 'pin', 'auth', 'authorization', 'bearer', 'cookie', 'csrf', 'xsrf', 'hmac',
  'jwt', 'dpop', 'pass', 'pwd', 'pw', 'passkey', 'ticket', 'magiclink', 'key', 'samlart', 'samlrequest', 'samlresponse', 'sas', 'session', 'sessionid', 'sessid', 'phpsessid',
  'jsessionid', 'connectsid', 'sid', 'sign', 'accesskeyid', 'awsaccesskeyid'
]
// A name that ends in one of these is one too: refresh_token, X-Amz-Security-Token, client_secret, new_password.
const ENDINGS = [
  'accesskey', 'apikey', 'apikeys', 'appkey', 'assertion', 'credential', 'credentials', 'encryptionkey', 'masterkey', 'privatekey', 'secret',
  'secretkey', 'secrets', 'signature', 'signingkey', 'subscriptionkey', 'token', 'tokenhint', 'tokens', 'verifier'
]
// And one that holds one of these: password_confirmation, passwordHash.
const PARTS = /pass(?:code|phrase|wd|word)/
const SIGNATURE = 'sig' // of the conventions, which compare with case

// An app's own names come again and again; a caller's must not fill the memory.
const KNOWN_MAX = 256
const KNOWN_LENGTH_MAX = 64

// A value may be a URL with a query or a password of its own, encoded: a redirect's. Of what is deeper nothing is shown.
const MAY_NEST = /%(?:2[356]|3[df]|40)|[?#@]/i
const NESTING_MAX = 3
const USER_INFO = /(?<=\/\/)[^/?#\s]*@/g

class QueryRedactor {
  #decide
  #names
  #report
  #known = new Map() // name as it came -> whether it is a credential

  /** @param {string[] | ((name: string) => boolean) | null} option names beside ours, or a function that decides about all */
  constructor (option, report) {
    this.#decide = typeof option === 'function' ? option : null
    this.#names = new Set([...CREDENTIALS, ...(Array.isArray(option) ? option.map(normalised) : [])])
    this.#report = report
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
    if (known !== undefined) return known
    const is = this.#matches(decoded(name))
    if (this.#known.size === KNOWN_MAX) this.#known.clear()
    if (name.length <= KNOWN_LENGTH_MAX) this.#known.set(name, is)
    return is
  }

  #matches (given) {
    if (given === SIGNATURE) return true
    const name = normalised(given)
    return this.#names.has(name) || PARTS.test(name) || ENDINGS.some((ending) => name.endsWith(ending))
  }

  /** The answer of the user's function. Where it fails the value is hidden: its author meant to hide something. */
  #ask (name) {
    try {
      return Boolean(atOnce(this.#decide(decoded(name))))
    } catch (error) {
      this.#report.failed('LT_WARN_CALLBACK', 'the option redactQuery failed; values that it does not decide about are redacted', error)
      return true
    }
  }
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
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

module.exports = { QueryRedactor }
