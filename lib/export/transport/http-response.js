'use strict'

// One HTTP/1.1 response, read from the pieces in which it comes (RFC 9112). Of its header fields it keeps those that
// the exporter goes by, of its body the beginning. What is not a response is an error, never a guess: two lengths, a line
// that ends in LF alone, a folded header.

const { FIELD_VALUE } = require('../../config/captured-headers')
const { HttpFields } = require('./http-fields')

// What Node allows for a head. Interim responses, what chunks have beside their lengths, and trailers share it: nothing can
// go on for ever.
const LINE_BYTES_MAX = 16 * 1024
// A partial success is some 300 bytes; of an error page we want the first words. The specification asks for a limit and
// recommends 4 MiB: a socket that has those for us is read for milliseconds on end.
const BODY_BYTES_MAX = 64 * 1024

const LF = 10
const CRLF_BYTES = 2
const PROTOCOL = 'HTTP/1.'
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/
const FIELD_NAME = /^[\w!#$%&'*+.^`|~-]+$/
const CHUNK_SIZE = /^[0-9a-f]{1,12}(?=[\t ]*(?:;|$))/i

const STATUS = 0
const FIELDS = 1
const CHUNK = 2
const CHUNK_END = 3
const TRAILERS = 4
const BODY = 5
const OVER = 6

class HttpResponse {
  #state = STATUS
  #line = ''
  #lineBytes = 0
  #minor = ''
  #statusOfHead = 0
  #bodyBytesLeft = 0
  #isChunked = false
  #pieces = []
  #bodyBytes = 0

  status = 0 // once the whole head was read, and could be
  fields = new HttpFields()
  isComplete = false // to the last byte of its body
  isOversized = false // the body is longer than what is kept, and was not read to its end
  isKeptAlive = false // another request may be sent where this one came from

  get isOver () {
    return this.#state === OVER
  }

  get body () {
    return Buffer.concat(this.#pieces)
  }

  // Throws an Error with a code where these bytes cannot be part of a response.
  push (bytes) {
    let at = 0
    while (at < bytes.length && this.#state !== OVER) at = this.#state === BODY ? this.#readBody(bytes, at) : this.#readLine(bytes, at)
    // Nobody asked for what comes after it.
    if (at < bytes.length) this.isKeptAlive = false
  }

  // The other side has closed: the end of a body whose length nobody said.
  end () {
    if (this.#state === BODY && this.#bodyBytesLeft === Infinity) this.#complete()
  }

  #readLine (bytes, from) {
    const end = bytes.indexOf(LF, from)
    const to = end === -1 ? bytes.length : end
    this.#lineBytes += to - from + 1
    if (this.#lineBytes > LINE_BYTES_MAX) throw unreadable(`its head is longer than ${LINE_BYTES_MAX} bytes`)
    this.#line += bytes.latin1Slice(from, to)
    if (this.#state === STATUS && !mayBeStatusLine(this.#line)) throw unreadable('it is not HTTP/1')
    if (end === -1) return to
    const line = this.#line
    this.#line = ''
    if (!line.endsWith('\r')) throw unreadable('a line does not end in CR LF')
    this.#onLine(line.slice(0, -1))
    return end + 1
  }

  #onLine (line) {
    if (this.#state === STATUS) this.#onStatusLine(line)
    else if (this.#state === CHUNK) this.#onChunk(line)
    else if (this.#state === CHUNK_END) this.#onChunkEnd(line)
    else if (line !== '') this.#onField(line)
    else if (this.#state === FIELDS) this.#onHead()
    else this.#complete()
  }

  #onStatusLine (line) {
    if (line === '') return // left over from the response before, as some servers do
    const found = STATUS_LINE.exec(line)
    if (found === null) throw unreadable('its status line is not one')
    this.#minor = found[1]
    this.#statusOfHead = Number(found[2])
    this.#state = FIELDS
  }

  #onField (line) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(colon, 0))
    const value = line.slice(colon + 1)
    if (!FIELD_NAME.test(name) || !FIELD_VALUE.test(value)) throw unreadable('a header field is not one')
    if (this.#state === FIELDS) this.fields.add(name.toLowerCase(), value.trim())
  }

  #onHead () {
    const status = this.#statusOfHead
    if (status === 101) throw failure('ECONNRESET', 'the protocol was switched, and nobody had asked for it')
    if (status < 200) {
      this.fields = new HttpFields()
      this.#state = STATUS
      return
    }
    const { byteCount, isChunked } = this.fields
    if (Number.isNaN(byteCount)) throw unreadable('its length is not one')
    this.status = status
    this.isKeptAlive = this.fields.allowsAnother(this.#minor)
    this.#isChunked = isChunked
    if (status === 204 || status === 304) this.#complete()
    else if (isChunked) this.#state = CHUNK
    else this.#expectBody(byteCount)
  }

  #expectBody (byteCount) {
    this.#bodyBytesLeft = byteCount
    this.#state = BODY
    if (byteCount === 0) this.#complete()
  }

  #onChunk (line) {
    const found = CHUNK_SIZE.exec(line)
    if (found === null || !FIELD_VALUE.test(line)) throw unreadable('the length of a chunk is not one')
    this.#lineBytes -= found[0].length + CRLF_BYTES
    this.#bodyBytesLeft = parseInt(found[0], 16)
    this.#state = this.#bodyBytesLeft === 0 ? TRAILERS : BODY
  }

  #onChunkEnd (line) {
    if (line !== '') throw unreadable('a chunk is longer than it says')
    this.#lineBytes -= CRLF_BYTES
    this.#state = CHUNK
  }

  #readBody (bytes, from) {
    const to = Math.min(from + this.#bodyBytesLeft, bytes.length)
    const room = BODY_BYTES_MAX - this.#bodyBytes
    this.#pieces.push(bytes.subarray(from, Math.min(to, from + room)))
    this.#bodyBytes += to - from
    this.#bodyBytesLeft -= to - from
    if (this.#bodyBytes > BODY_BYTES_MAX) {
      this.isOversized = true
      this.isKeptAlive = false
      this.#state = OVER
    } else if (this.#bodyBytesLeft === 0) this.#onBodyRead()
    return to
  }

  #onBodyRead () {
    if (this.#isChunked) this.#state = CHUNK_END
    else this.#complete()
  }

  #complete () {
    this.isComplete = true
    this.#state = OVER
  }
}

// As far as it has come.
function mayBeStatusLine (line) {
  return line.startsWith(PROTOCOL) || PROTOCOL.startsWith(line) || line === '\r'
}

function unreadable (why) {
  return failure('EBADMSG', `the response cannot be read: ${why}`)
}

function failure (code, message) {
  return Object.assign(new Error(message), { code })
}

module.exports = { HttpResponse, BODY_BYTES_MAX }
