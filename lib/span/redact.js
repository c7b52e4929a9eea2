'use strict'

// Credentials in a query: the values of parameters whose names say so become REDACTED, everything else keeps its bytes
// (a URLSearchParams round trip would re-encode them). The HTTP conventions name the signatures of cloud storage; most
// credentials in queries have other names: credential-names.js has them.
// https://opentelemetry.io/docs/specs/semconv/http/http-spans/ , note on `url.query`

const REDACTED = 'REDACTED'

// An app's own names come again and again; a caller's must not fill the memory.
const KNOWN_MAX = 256
const KNOWN_LENGTH_MAX = 64

class QueryRedactor {
  #option
  #names = null // of the option and of ours, from the first query on
  #decide
  #report
  #known = new Map() // name as it came -> whether it is a credential

  /**
   * @param {string[] | ((name: string) => boolean) | null} option names beside ours, or a function that decides about all
   * @param {Report} report
   */
  constructor (option, report) {
    this.#decide = typeof option === 'function' ? option : null
    this.#option = Array.isArray(option) ? option : []
    this.#report = report
  }

  /**
   * @param {string} query without its question mark
   * @returns {string}
   */
  // HOT, once per recorded request or call that has a query. Budget: one short string per parameter.
  redact (query) {
    let redacted = ''
    let copied = 0 // up to here `redacted` has the query
    let start = 0
    let equals = query.indexOf('=')
    while (equals !== -1) {
      let end = query.indexOf('&', start)
      if (end === -1) end = query.length
      if (equals < end) {
        if (this.#isCredential(query.slice(start, equals))) {
          redacted += query.slice(copied, equals + 1) + REDACTED
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

  #isCredential (name) {
    if (this.#decide !== null) return this.#asks(name)
    const known = this.#known.get(name)
    if (known !== undefined) return known
    if (this.#names === null && !this.#load()) return true
    const is = this.#names.has(decoded(name))
    if (this.#known.size === KNOWN_MAX) this.#known.clear()
    if (name.length <= KNOWN_LENGTH_MAX) this.#known.set(name, is)
    return is
  }

  // An application whose callers send no query starts without the names. Where their file cannot be read just now, no value
  // goes out, and the next name asks again.
  #load () {
    try {
      const { CredentialNames } = require('./credential-names')
      this.#names = new CredentialNames(this.#option)
      return true
    } catch (error) {
      this.#report.thrown(error, 'a query could not be looked through, its values are redacted')
      return false
    }
  }

  // Where the user's function fails, its author meant to hide something.
  #asks (name) {
    try {
      return Boolean(this.#decide(decoded(name)))
    } catch (error) {
      this.#report.once('LT_WARN_CALLBACK', `the option redactQuery failed; values that it does not decide about are redacted: ${error?.message}`)
      return true
    }
  }
}

function decoded (name) {
  const text = name.includes('+') ? name.replaceAll('+', ' ') : name
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

module.exports = { QueryRedactor }
