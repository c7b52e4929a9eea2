'use strict'

// The header fields of a response that the exporter goes by, and what they say together (RFC 9112, 6.3 and 9.3).

const LENGTH = /^\d{1,15}$/

// A repeated field is a list, except where that makes no sense: then the first one holds.
const LISTS = new Set(['connection', 'content-length', 'transfer-encoding'])
const SINGLES = new Set(['content-type', 'retry-after'])

class HttpFields {
  #values = new Map()

  // `name` in lower case.
  add (name, value) {
    const before = this.#values.get(name)
    if (before === undefined) {
      if (LISTS.has(name) || SINGLES.has(name)) this.#values.set(name, value)
    } else if (LISTS.has(name)) this.#values.set(name, `${before},${value}`)
  }

  get (name) {
    return this.#values.get(name)
  }

  // Of the body: Infinity where the connection's end is its end, NaN where the fields contradict themselves. Whoever says
  // two lengths may mean another one than we would.
  get byteCount () {
    const length = this.#values.get('content-length')
    if (length === undefined) return Infinity
    return LENGTH.test(length) && !this.#values.has('transfer-encoding') ? Number(length) : NaN
  }

  get isChunked () {
    return this.#list('transfer-encoding').at(-1) === 'chunked'
  }

  // May another request be sent after this response? `minor` is that of HTTP/1.x: '0' or '1'.
  allowsAnother (minor) {
    const options = this.#list('connection')
    return minor === '1' ? !options.includes('close') : options.includes('keep-alive')
  }

  #list (name) {
    return (this.#values.get(name) ?? '').toLowerCase().split(',').map((item) => item.trim())
  }
}

module.exports = { HttpFields }
