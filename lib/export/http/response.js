'use strict'

// One HTTP/1.1 response, read from the pieces in which it comes (RFC 9112). Of its body it keeps the beginning. What is not a
// response is an error, never a guess: two lengths, a line that ends in LF alone, a folded header.

const { FIELD_VALUE } = require('../../config/checks')

// What Node allows for a head. Interim responses, what chunks have beside their lengths, and trailers share it.
const HEAD_BYTES_MAX = 16 * 1024
// The specification's limit. What answers with more is no collector.
const BODY_BYTES_MAX = 4 * 1024 * 1024
// A partial success is some 300 bytes; of an error page we want the first words.
const KEPT_BYTES_MAX = 64 * 1024

const NONE = Buffer.alloc(0)
const LF = 10
const CR = 13
const CRLF = '\r\n'
const PROTOCOL = 'HTTP/1.'
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/
const FIELD_NAME = /^[\w!#$%&'*+.^`|~-]+$/
const LENGTH = /^\d{1,15}$/
const CHUNK_SIZE = /^[0-9a-f]{1,12}(?=[\t ]*(?:;|$))/i

class HttpResponse {
  #reading = this.#read()
  #bytes = NONE // the piece that is being read, up to #at
  #at = 0
  #headBytes = 0
  #pieces = []
  #bodyBytes = 0
  #endsWithConnection = false

  status = 0 // once the whole head was read, and could be
  fields = new Map() // by names in lower case
  isOver = false
  isComplete = false // to the last byte of its body
  isOversized = false // the body is longer than what is read, and was not read to its end
  isKeptAlive = false // another request may be sent on its connection

  get isCut () { return this.#bodyBytes > KEPT_BYTES_MAX || !this.isComplete }
  get body () { return Buffer.concat(this.#pieces) }

  // Throws an Error with a code if these bytes cannot be part of a response.
  push (bytes) {
    this.#bytes = bytes
    this.#at = 0
    if (!this.isOver) this.isOver = this.#reading.next().done === true
    // We have asked for nothing that comes after it.
    if (this.#at < bytes.length) this.isKeptAlive = false
  }

  // The other side has closed: the end of a body without a length.
  end () {
    if (this.#endsWithConnection && !this.isOver) this.isOver = this.isComplete = true
  }

  // The generators below yield whenever they need another piece.
  * #read () {
    let minor = ''
    let status = 0
    while (status < 200) { // interim responses come first
      ({ minor, status } = yield * this.#readStatusLine())
      if (status === 101) throw failure('ECONNRESET', 'it switches the protocol without being asked')
      this.fields = yield * this.#readFields()
    }
    const length = this.#bodyLength()
    const options = this.#list('connection')
    this.status = status
    this.isKeptAlive = minor === '1' ? !options.includes('close') : options.includes('keep-alive')
    if (status !== 204 && status !== 304) {
      if (this.#list('transfer-encoding').at(-1) === 'chunked') yield * this.#readChunks()
      else yield * this.#readBody(length)
    }
    this.isComplete = !this.isOversized
  }

  * #readStatusLine () {
    let line = ''
    while (line === '') line = yield * this.#readLine(mayBeStatusLine) // some servers leave an empty one over
    const found = STATUS_LINE.exec(line)
    if (found === null) throw unreadable('its status line is malformed')
    return { minor: found[1], status: Number(found[2]) }
  }

  * #readFields () {
    const fields = new Map()
    for (;;) {
      const line = this.#lineAtHand() ?? (yield * this.#readLine())
      if (line === '') return fields
      const colon = line.indexOf(':')
      const name = line.slice(0, Math.max(colon, 0)).toLowerCase()
      const value = line.slice(colon + 1)
      if (!FIELD_NAME.test(name) || !FIELD_VALUE.test(value)) throw unreadable('a header field is malformed')
      // A repeated field is a list, except where that makes no sense: there the first one holds.
      if (!fields.has(name)) fields.set(name, value.trim())
      else if (name !== 'content-type' && name !== 'retry-after') fields.set(name, `${fields.get(name)},${value.trim()}`)
    }
  }

  // Infinity if the connection's end is the body's end. Two lengths are an error: the server may mean another one than we would.
  #bodyLength () {
    const length = this.fields.get('content-length')
    if (length === undefined) return Infinity
    if (!LENGTH.test(length) || this.fields.has('transfer-encoding')) throw unreadable('its content-length is malformed')
    return Number(length)
  }

  #list (name) {
    const value = this.fields.get(name)
    return value === undefined ? [] : value.toLowerCase().split(',').map((item) => item.trim())
  }

  * #readChunks () {
    while (!this.isOversized) {
      const line = yield * this.#readLine()
      const found = CHUNK_SIZE.exec(line)
      if (found === null || !FIELD_VALUE.test(line)) throw unreadable('the length of a chunk is malformed')
      const length = parseInt(found[0], 16)
      if (length === 0) return yield * this.#readFields() // trailers, which nothing here goes by
      yield * this.#readBody(length)
      if (!this.isOversized && (yield * this.#readLine()) !== '') throw unreadable('a chunk is longer than it says')
      this.#headBytes -= found[0].length + 2 * CRLF.length
    }
  }

  * #readBody (length) {
    this.#endsWithConnection = length === Infinity
    for (let left = length; left > 0 && !this.isOversized;) {
      if (this.#at === this.#bytes.length) yield
      const part = this.#bytes.subarray(this.#at, this.#at + left)
      if (this.#bodyBytes < KEPT_BYTES_MAX) this.#pieces.push(part.subarray(0, KEPT_BYTES_MAX - this.#bodyBytes))
      this.#at += part.length
      this.#bodyBytes += part.length
      left -= part.length
      this.isOversized = this.#bodyBytes > BODY_BYTES_MAX
    }
    if (this.isOversized) this.isKeptAlive = false
  }

  // The next line, if all of it has come: a generator for each would take most of the time of an answer. Undefined if it has not,
  // or is not well-formed.
  #lineAtHand () {
    const end = this.#bytes.indexOf(LF, this.#at)
    const start = this.#at
    if (end <= start || this.#bytes[end - 1] !== CR || this.#headBytes + end + 1 - start > HEAD_BYTES_MAX) return undefined
    this.#headBytes += end + 1 - start
    this.#at = end + 1
    return this.#bytes.latin1Slice(start, end - 1)
  }

  // Reads a line, returns it without its CR LF. `mayBe` refuses one early, by its beginning.
  * #readLine (mayBe = (beginning) => true) {
    for (let line = ''; ;) {
      const end = this.#bytes.indexOf(LF, this.#at)
      const to = end === -1 ? this.#bytes.length : end + 1
      line += this.#bytes.toString('latin1', this.#at, to)
      this.#headBytes += to - this.#at
      this.#at = to
      if (this.#headBytes > HEAD_BYTES_MAX) throw unreadable(`its head is longer than ${HEAD_BYTES_MAX} bytes`)
      if (!mayBe(line)) throw unreadable('it is not HTTP/1')
      if (line.endsWith(CRLF)) return line.slice(0, -CRLF.length)
      if (end !== -1) throw unreadable('a line does not end in CR LF')
      yield
    }
  }
}

function mayBeStatusLine (beginning) {
  return beginning.startsWith(PROTOCOL) || PROTOCOL.startsWith(beginning) || CRLF.startsWith(beginning)
}

function unreadable (why) {
  return failure('EBADMSG', `the response cannot be read: ${why}`)
}

function failure (code, message) {
  return Object.assign(new Error(message), { code })
}

module.exports = { HttpResponse, BODY_BYTES_MAX, KEPT_BYTES_MAX }
