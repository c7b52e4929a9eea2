'use strict'

// Reads one HTTP/1.1 response piece by piece (RFC 9112). Keeps only the beginning of the body. Malformed input is an error and never
// guessed at: two lengths, a line that ends in a bare LF, a folded header.

const { FIELD_VALUE } = require('../../config/checks.js')
const { attempt } = require('../../runtime/report.js')
const { fieldEnd, bodyStart } = require('../../otlp/request.js')
const { dispositionOf, retryAfterMs } = require('./retry.js')
const { quoted } = require('./secrets.js')

// Node's limit for a head. Interim responses, chunk extensions and trailers count towards it.
const HEAD_BYTES_MAX = 16 * 1024
// The specification's limit. A server that answers with more is not a collector.
const BODY_BYTES_MAX = 4 * 1024 * 1024
// A partial success has about 300 bytes. Of an error page we need only the first words.
const KEPT_BYTES_MAX = 64 * 1024

const NONE = Buffer.alloc(0)
const LF = 10
const CR = 13
const CRLF = '\r\n'
const PROTOCOL = 'HTTP/1.'
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/
const FIELD = /^[\w!#$%&'*+.^`|~-]+:[\t\x20-\x7e\x80-\xff]*$/
const FIELDS = new Set(['content-type', 'content-length', 'transfer-encoding', 'connection', 'retry-after']) // the fields that we use
const LENGTH = /^\d{1,15}$/
const CHUNK_SIZE = /^[0-9a-f]{1,12}(?=[\t ]*(?:;|$))/i

class HttpResponse {
  #onLine = this.#readStatusLine // handles the next line, without its CR LF
  #rest = NONE // the beginning of an incomplete line
  #left = 0 // bytes of the body or chunk that are still missing
  #isChunked = false
  #head = { minor: '', status: 0 }
  #headBytes = 0
  #pieces = []
  #bodyBytes = 0

  status = 0 // set once the whole head was read and found valid
  fields = new Map() // those of FIELDS, by lower-case name
  isOver = false
  isComplete = false // the body was read to its last byte
  isOversized = false // the body is longer than BODY_BYTES_MAX and was not read to its end
  isKeptAlive = false // its connection may be used for another request

  get isCut () { return this.#bodyBytes > KEPT_BYTES_MAX || !this.isComplete }
  get body () { return this.#pieces.length === 0 ? NONE : Buffer.concat(this.#pieces) }

  // Throws an Error with a code if these bytes cannot be part of a response.
  push (piece) {
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece])
    let at = 0
    while (!this.isOver) {
      const taken = this.#left > 0 ? this.#takeBody(bytes, at) : this.#takeLine(bytes, at)
      if (taken === 0) break
      at += taken
    }
    this.#rest = bytes.subarray(at)
    if (this.isOver && at < bytes.length) this.isKeptAlive = false // we did not ask for the bytes after it
  }

  // The server has closed the connection, which ends a body without a length.
  end () {
    if (this.#left === Infinity) this.#finish()
  }

  // Both methods return the number of bytes that they used, or 0 if they need more.

  #takeLine (bytes, at) {
    const end = bytes.indexOf(LF, at)
    const taken = (end === -1 ? bytes.length : end + 1) - at
    if (this.#headBytes + taken > HEAD_BYTES_MAX) throw unreadable(`its head is longer than ${HEAD_BYTES_MAX} bytes`)
    if (this.#onLine === this.#readStatusLine && !mayBeStatusLine(bytes.latin1Slice(at, at + taken))) throw unreadable('it is not HTTP/1')
    if (end === -1) return 0
    if (taken === 1 || bytes[end - 1] !== CR) throw unreadable('a line does not end in CR LF')
    this.#headBytes += taken
    this.#onLine(bytes.latin1Slice(at, end - 1))
    return taken
  }

  #takeBody (bytes, at) {
    const part = bytes.subarray(at, at + this.#left)
    if (this.#bodyBytes < KEPT_BYTES_MAX) this.#pieces.push(part.subarray(0, KEPT_BYTES_MAX - this.#bodyBytes))
    this.#bodyBytes += part.length
    this.#left -= part.length
    this.isOversized = this.#bodyBytes > BODY_BYTES_MAX
    if (this.isOversized || (this.#left === 0 && !this.#isChunked)) this.#finish()
    return part.length
  }

  #readStatusLine (line) {
    if (line === '') return // some servers send a stray empty line first
    const found = STATUS_LINE.exec(line)
    if (found === null) throw unreadable('its status line is malformed')
    this.#head = { minor: found[1], status: Number(found[2]) }
    if (this.#head.status === 101) throw failure('ECONNRESET', 'it switches the protocol without being asked')
    this.fields = new Map()
    this.#onLine = this.#readField
  }

  #readField (line) {
    if (line === '') this.#endHead()
    else addField(this.fields, line)
  }

  #endHead () {
    const { minor, status } = this.#head
    if (status < 200) { // an interim response; the final one follows
      this.#onLine = this.#readStatusLine
      return
    }
    const length = this.#bodyLength()
    const options = this.#list('connection')
    this.status = status
    this.isKeptAlive = minor === '1' ? !options.includes('close') : options.includes('keep-alive')
    this.#isChunked = this.#list('transfer-encoding').at(-1) === 'chunked'
    if (status === 204 || status === 304 || length === 0) this.#finish()
    else if (this.#isChunked) this.#onLine = this.#readChunkSize
    else this.#left = length
  }

  // Infinity if the body ends with the connection. Two lengths are an error, because we cannot know which one the server means.
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

  #readChunkSize (line) {
    const found = CHUNK_SIZE.exec(line)
    if (found === null || !FIELD_VALUE.test(line)) throw unreadable('the length of a chunk is malformed')
    this.#headBytes -= found[0].length + CRLF.length
    this.#left = parseInt(found[0], 16)
    this.#onLine = this.#left === 0 ? this.#readTrailer : this.#endChunk
  }

  #endChunk (line) {
    if (line !== '') throw unreadable('a chunk is longer than it says')
    this.#headBytes -= CRLF.length
    this.#onLine = this.#readChunkSize
  }

  #readTrailer (line) { // validated and ignored
    if (line === '') this.#finish()
    else addField(new Map(), line)
  }

  #finish () {
    this.#left = 0
    this.isOver = true
    this.isComplete = !this.isOversized
    if (this.isOversized) this.isKeptAlive = false
  }
}

// A repeated field is joined into a list. If a list makes no sense for it, the first value counts.
function addField (fields, line) {
  if (!FIELD.test(line)) throw unreadable('a header field is malformed')
  const colon = line.indexOf(':')
  const name = line.slice(0, colon).toLowerCase()
  if (!FIELDS.has(name)) return
  const value = line.slice(colon + 1).trim()
  if (!fields.has(name)) fields.set(name, value)
  else if (name !== 'content-type' && name !== 'retry-after') fields.set(name, `${fields.get(name)},${value}`)
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

// Interprets a collector's response: whether it is OTLP, and what happened to the spans. The body is untrusted: nothing here throws,
// recurses or allocates because of what it claims, and its text is passed on only through `quoted`.
// https://opentelemetry.io/docs/specs/otlp/#otlphttp-response

const PROTOBUF_TYPE = /^application\/(x-protobuf|protobuf|vnd\.google\.protobuf)\b/
const JSON_TYPE = /^(application\/json|application\/[\w.-]+\+json\b|text\/json)/
const JSON_BEGINS = /^\s*\{/
// The number of rejected spans, or of rejected data points of metrics.
const REJECTED = /"rejected_?(?:spans|data_?points)"\s*:\s*"?(-?\d+)/i
const REJECTED_KEY = /^rejected_?(?:spans|data_?points)$/i
const HTML_BEGINS = /^\s*<(!doctype\s+html|html)\b/i
// eslint-disable-next-line no-control-regex
const NO_TEXT = /[\u0000-\u0008\u000e-\u001f\ufffd]/
const TEXT_BYTES_MAX = 1024 // of a message or a page

// Tags of protobuf fields: number << 3 | wire type.
const TAG_PARTIAL_SUCCESS = 0x0a
const TAG_REJECTED = 0x08
const TAG_MESSAGE = 0x12
const TAGS = new Set([TAG_PARTIAL_SUCCESS, TAG_REJECTED, TAG_MESSAGE]) // the tags that we read, one byte each
const TAG_BROKEN = 0 // no field has this tag
const TAG_MIN = 8

/**
 * Reads an HttpResponse into the fields of an Outcome. The format is 'empty', 'protobuf', 'json', 'html', 'grpc' or 'other'.
 * A success that is a web page or gRPC does not come from an OTLP/HTTP receiver. A success that is longer than the specification
 * allows is a failure, and is not retried. `secrets` are never quoted, see secrets.js.
 */
function readAnswer ({ status, fields, body, isCut, isOversized }, wallNow, secrets = [], hasProxy = false) {
  const isEmpty = body.length === 0 // as with most collectors
  const type = (fields.get('content-type') ?? '').toLowerCase()
  const text = isEmpty ? '' : body.toString('utf8', 0, TEXT_BYTES_MAX)
  const isJson = !isEmpty && (JSON_TYPE.test(type) || (type === '' && JSON_BEGINS.test(text)))
  const json = isJson ? parse(body, text, isCut) : undefined
  const format = formatOf(type, body, text, json)
  const disposition = dispositionOf(status, { format, isTooLong: isOversized, hasProxy })
  const isSuccess = disposition === 'delivered' || disposition === 'misdirected'
  return {
    status,
    error: null,
    disposition,
    retryAfterMs: retryAfterMs(fields.get('retry-after'), wallNow),
    format,
    partialSuccess: isSuccess ? partialSuccessOf(format, body, json, isCut, secrets) : null,
    message: isSuccess ? '' : isOversized && status < 300 ? 'its answer is longer than 4 MiB' : messageOf(format, body, text, type, secrets)
  }
}

// Returns undefined if it is not JSON. From JSON that was cut off it reads only the number, which comes before the message.
function parse (body, text, isCut) {
  if (isCut) return JSON_BEGINS.test(text) ? { partialSuccess: { rejectedSpans: REJECTED.exec(text)?.[1] } } : undefined
  return attempt(() => JSON.parse(body.toString()))
}

function formatOf (type, body, text, json) {
  if (type.startsWith('application/grpc')) return 'grpc'
  if (body.length === 0) return 'empty'
  if (PROTOBUF_TYPE.test(type)) return 'protobuf'
  if (json !== undefined) return json !== null && typeof json === 'object' && !Array.isArray(json) ? 'json' : 'other'
  if (type.includes('html') || HTML_BEGINS.test(text)) return 'html'
  return type === '' ? 'protobuf' : 'other'
}

function partialSuccessOf (format, body, json, isCut, secrets) {
  if (format === 'protobuf') return readPartialSuccess(body, isCut, secrets)
  if (format !== 'json') return null
  const found = own(json, 'partialSuccess') ?? own(json, 'partial_success')
  if (found === null || typeof found !== 'object') return null
  // OTLP JSON writes an int64 as a string of digits.
  const rejected = Number(found[Object.keys(found).find((key) => REJECTED_KEY.test(key))] ?? 0)
  const message = own(found, 'errorMessage') ?? own(found, 'error_message')
  return { rejected: Number.isFinite(rejected) ? rejected : 0, message: typeof message === 'string' ? quoted(message, secrets) : '' }
}

function own (object, key) {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

// By the specification, a failure's body is google.rpc.Status { 1: code, 2: message }. A proxy may send other text. Web pages are not
// logged.
function messageOf (format, body, text, type, secrets) {
  if (format === 'protobuf' && type !== '') return readText(readFields(body, true).get(TAG_MESSAGE), secrets)
  if (format === 'json' || type.startsWith('text/plain')) return quoted(text, secrets)
  return format === 'protobuf' && !NO_TEXT.test(text) ? quoted(text, secrets) : ''
}

// Reads ExportTraceServiceResponse, 1: partial_success { 1: rejected_spans int64, 2: error_message string }. Returns null for
// anything else. `rejected` is not range-checked. It is valid even if the response was cut off, because it comes before the message.
function readPartialSuccess (bytes, isCutOff = false, secrets = []) {
  const response = readFields(bytes, isCutOff)
  if (response.has(TAG_BROKEN) || !response.has(TAG_PARTIAL_SUCCESS)) return null
  const fields = readFields(contentOf(response.get(TAG_PARTIAL_SUCCESS)), isCutOff)
  const rejected = fields.has(TAG_REJECTED) ? int64In(fields.get(TAG_REJECTED)) : 0
  return fields.has(TAG_BROKEN) || Number.isNaN(rejected) ? null : { rejected, message: readText(fields.get(TAG_MESSAGE), secrets) }
}

function readText (field, secrets) {
  return field === undefined ? '' : quoted(contentOf(field).toString('utf8', 0, TEXT_BYTES_MAX), secrets)
}

// Returns the last field of each tag in TAGS, without the tag. Stops at malformed bytes and then sets TAG_BROKEN. If the body was cut
// off, the last field may be incomplete.
function readFields (bytes, isCutOff) {
  const fields = new Map()
  for (let at = 0, end; at < bytes.length; at = end) {
    end = fieldEnd(bytes, at, isCutOff ? Infinity : bytes.length)
    if (end === -1 || bytes[at] < TAG_MIN) return fields.set(TAG_BROKEN, bytes)
    if (TAGS.has(bytes[at])) fields.set(bytes[at], bytes.subarray(at + 1, end))
  }
  return fields
}

/** Returns a field's content, without its length. */
function contentOf (field) { return field.subarray(bodyStart(field, 0)) }

// Returns NaN if the varint was cut off or is longer than ten bytes. Decodes negative values. Rounds values above 2^53.
function int64In (varint) {
  if (varint.length > 10 || !(varint.at(-1) < 0x80)) return NaN
  const value = varint.reduce((sum, byte, i) => sum + (byte & 0x7f) * 128 ** i, 0)
  return varint[9] > 0 ? value - 2 ** 64 : value // bit 63, the sign
}

module.exports = { HttpResponse, BODY_BYTES_MAX, KEPT_BYTES_MAX, readPartialSuccess, readAnswer }
