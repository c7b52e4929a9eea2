'use strict'

// Encodes a usual line of pino to OTLP bytes (opentelemetry/proto/logs/v1/logs.proto, message LogRecord), in one pass.
//
// Unusual lines are left to record-encoder.js, which parses them: lines with numeric escapes, repeated keys, blanks, long or over-limit
// values, and lines that are not JSON. This code never throws: in V8, an exception costs as much as ten lines.

const { Buffer } = require('node:buffer')
const { writeLength4 } = require('../../otlp/proto-writer.js')
const { json, jsonView, out, outView, cursor, read, isDigits, writeKey, writeField, writeValue, TAG_STRING, TAG_VALUE, QUOTE, COMMA, OPEN_BRACE, CLOSE_BRACE, NOWHERE, TEXT_LENGTH_MAX } = require('./json-values.js')
const { EXCEPTION_KEYS, RECORD_KEYS, contextOf } = require('./plain.js')

const EXCEPTION_TEXTS = [...EXCEPTION_KEYS].map((keys) => keys.map((key) => Buffer.from(key)))
const [[, TYPE]] = EXCEPTION_TEXTS
const CODE = Buffer.from('code')
const KEYS_MAX = 64
const PREFIX_BYTES_MAX = 64
const HEAD_BYTES = 25 // of a record before its attributes. The attributes of the logger's bindings come next, and stay there for the following lines

const TAG_RECORD = 0x12 // ScopeLogs.log_records
const TAG_BODY = 0x2a
const TAG_ATTRIBUTE = 0x32

// Members of a line that the record has as fields, or the resource has as attributes.
const RECORD_KEY_TEXTS = RECORD_KEYS.map((key) => Buffer.from(key))
const TIME = 1
const TRACE_ID = 2
const SPAN_ID = 3
const FLAGS = 4
const perhapsOfRecord = new Uint8Array(256) // the one that a key may be, by the key's first character plus its length; 0: none
for (const [i, key] of RECORD_KEY_TEXTS.entries()) perhapsOfRecord[key[0] + key.length] = i + 1

// What has been read of a line. 1 to 7: where the values of these members begin, 0 if the line has none. Then the numbers of keys and
// attributes, and where the last attribute ends in `out`. `known` has the same for the logger's bindings. Each line begins with a copy.
const KEYS = 8
const ATTRIBUTES = 9
const END = 10
const said = new Int32Array(END + 1)
const known = new Int32Array(END + 1)
const marks = new Int32Array(KEYS_MAX) // of the line's keys, with the keys of the bindings first
const prefix = Buffer.alloc(PREFIX_BYTES_MAX + json.length) // the start of a line, and from PREFIX_BYTES_MAX on the bindings of its logger
const prefixView = new DataView(prefix.buffer)
/** @type {UsualLine | null} */
let last = null // the instance that these belong to

class UsualLine {
  /** The memory for records. Each record is written from the start. */
  bytes = out
  view = outView

  #limits
  #messageKey
  #errorKey
  #errorPrefix
  // Of the logger that wrote the previous line.
  #bindings = ''
  #length = 0 // the bindings' size in bytes; 0: the bindings, or their place in the line, are unusual
  // Where the digits of the time and the bindings begin in the previous line; 0: its start was unusual.
  #digitsAt = 0
  #bindingsAt = 0
  #offset = 0 // where the bindings begin in this line
  #type = '' // of the error that was logged with this line

  /**
   * @param {{ attributes: number, attributeValueLength: number }} limits
   * @param {{ messageKey: string, errorKey: string }} names of the members that are the message and the error
   */
  constructor (limits, { messageKey, errorKey }) {
    this.#limits = limits
    this.#messageKey = Buffer.from(messageKey)
    this.#errorKey = Buffer.from(errorKey)
    this.#errorPrefix = Buffer.from(`${errorKey}.`)
  }

  /**
   * Writes the body and attributes of a line after the record's head. HOT, once per line where lines are exported. Budget: 0 objects.
   * @param {string} line @param {string} bindings of its logger @param {import('./logged-error').LoggedError | null} [error]
   * @returns {number} where they end; 0 if the line is unusual
   */
  write (line, bindings, error = null) {
    if (line.length > TEXT_LENGTH_MAX) return 0
    this.#type = ''
    if (bindings !== this.#bindings || last !== this) this.#learn(bindings)
    if (error !== null) this.#type = error.type
    const end = read(line)
    if (json[0] !== OPEN_BRACE) return 0
    begin()
    let at = this.#length === 0 ? 0 : this.#behindBindings()
    if (at === 0) this.#forget()
    this.#offset = at - this.#length
    if (at === 0 || json[at] === COMMA) at = this.#writeMembers(at)
    if (json[at++] !== CLOSE_BRACE) return 0
    while (at < end && json[at] <= 0x20) at++ // the line end
    return at === end ? cursor[0] : 0
  }

  /** The number of attributes of the last line. */
  get attributeCount () { return said[ATTRIBUTES] }

  /** The trace ids on the line, as a context. */
  contextOfLine () {
    if (said[TRACE_ID] === 0) return undefined
    const [traceId, spanId, flags] = [TRACE_ID, SPAN_ID, FLAGS].map((key) => {
      const at = said[key] < 0 ? this.#offset - said[key] : said[key]
      return at === 0 ? undefined : json.latin1Slice(at + 1, json.indexOf(QUOTE, at + 1))
    })
    return contextOf(traceId, spanId, flags)
  }

  /** Encodes a logger's bindings and keeps the result, because all lines of the logger have the same bindings. */
  #learn (bindings) {
    if (last !== this) this.#bindingsAt = 0
    last = this
    this.#bindings = bindings
    this.#forget()
    if (bindings.length > TEXT_LENGTH_MAX) return
    const end = read(bindings)
    if (json[0] !== COMMA || this.#writeMembers(0) !== end) return
    this.#length = json.copy(prefix, PREFIX_BYTES_MAX, 0, end)
    known.set(said)
    known[END] = cursor[0]
    for (let key = TRACE_ID; key <= FLAGS; key++) known[key] = -said[key] // negative: from the start of the bindings, whose place in the line varies
  }

  /** Discards the encoded bindings: the next output overwrites them. */
  #forget () {
    this.#length = 0
    known.fill(0)
    known[END] = HEAD_BYTES
    begin()
  }

  /** The place after the level, the time and the logger's bindings; 0 if the line does not start with them. */
  #behindBindings () {
    const start = this.#bindingsAt
    if (start > 0 && isSame(0, 0, this.#digitsAt) && isDigits(this.#digitsAt, start) && isSame(start, PREFIX_BYTES_MAX, this.#length)) {
      return start + this.#length
    }
    let at = 0
    do {
      at = this.#writeMember(at)
      if (json[at] !== COMMA || at > PREFIX_BYTES_MAX || said[KEYS] !== known[KEYS]) return 0
    } while (!isSame(at, PREFIX_BYTES_MAX, this.#length))
    // The next line probably has the same level and a different time.
    this.#digitsAt = said[TIME] === 0 ? at : said[TIME]
    this.#bindingsAt = isDigits(this.#digitsAt, at) ? at : 0
    json.copy(prefix, 0, 0, this.#digitsAt)
    return at + this.#length
  }

  // In the methods below, `at` is where something begins. They return the place after it, or NOWHERE.

  /** Reads from the brace or comma before a member to the end of the last member. */
  #writeMembers (at) {
    do at = this.#writeMember(at)
    while (json[at] === COMMA)
    return at
  }

  #writeMember (at) {
    const start = cursor[0]
    const keyStart = start + 10 // the place for the key of an attribute
    cursor[0] = start + 5
    at = writeKey(at)
    const length = cursor[0] - keyStart
    const place = perhapsOfRecord[(out[keyStart] + length) & 0xff]
    if (place > 0 && isText(RECORD_KEY_TEXTS[place - 1], keyStart, length)) {
      said[place] = at
      at = writeValue(at, Infinity, 0) // the next output overwrites it
      cursor[0] = start
      return at
    }
    if (at === NOWHERE) return NOWHERE
    if (json[at] === OPEN_BRACE && isText(this.#errorKey, keyStart, length)) {
      if (this.#isRepeated(keyStart, length)) return NOWHERE
      cursor[0] = start
      return this.#writeError(at)
    }
    if (!isText(this.#messageKey, keyStart, length)) return length === 0 ? NOWHERE : this.writeAttribute(start, at)
    if (this.#isRepeated(keyStart, length)) return NOWHERE
    out[start] = TAG_BODY
    cursor[0] = start + 5
    at = writeValue(at, Infinity, 0)
    writeLength4(outView, start + 1, cursor[0] - start - 5)
    return at
  }

  /** Writes an error from pino's serializer. Each of its members is an attribute, see plain.js. */
  #writeError (at) {
    if (json[at + 1] === CLOSE_BRACE) return at + 2
    do {
      const start = cursor[0]
      const keyStart = start + 10
      const memberStart = keyStart + this.#errorPrefix.length
      cursor[0] = memberStart - 5
      at = writeKey(at)
      const length = cursor[0] - memberStart
      if (json[at] === QUOTE && isText(CODE, memberStart, length)) return NOWHERE // `code` is the type then, but the type is already written
      const [, key] = EXCEPTION_TEXTS.find(([member]) => json[at] === QUOTE && isText(member, memberStart, length)) ?? []
      if (key === TYPE && this.#type !== '' && !isJsonText(this.#type, at)) return NOWHERE // the record may need a different type
      if (key === undefined) this.#errorPrefix.copy(out, keyStart)
      else cursor[0] = keyStart + key.copy(out, keyStart)
      out[start + 5] = TAG_STRING
      writeLength4(outView, start + 6, cursor[0] - keyStart)
      at = this.writeAttribute(start, at)
    } while (json[at] === COMMA)
    return json[at] === CLOSE_BRACE ? at + 1 : NOWHERE
  }

  /** Writes the value of an attribute whose key is already written, and the fields around both. */
  writeAttribute (start, at) {
    const keyStart = start + 10
    if (this.#isRepeated(keyStart, cursor[0] - keyStart) || ++said[ATTRIBUTES] > this.#limits.attributes) return NOWHERE
    out[start] = TAG_ATTRIBUTE
    at = writeField(TAG_VALUE, at, this.#limits.attributeValueLength, 0)
    writeLength4(outView, start + 1, cursor[0] - start - 5)
    return at
  }

  /**
   * Whether the line may already have the key; the last of two values must win. A mark combines the key's last four bytes, the four
   * before its middle, and its length, which is also in the bytes before a short key. If two keys have the same mark by chance, the
   * line is parsed for nothing.
   */
  #isRepeated (keyStart, length) {
    const mark = Math.imul(outView.getInt32(keyStart + length - 4), 31) + outView.getInt32(keyStart + (length >> 1) - 4) + length | 0
    const count = said[KEYS]
    for (let i = 0; i < count; i++) if (marks[i] === mark) return true
    if (count === KEYS_MAX) return true
    marks[count] = mark
    said[KEYS] = count + 1
    return false
  }
}

function begin () {
  for (let i = 0; i < said.length; i++) said[i] = known[i]
  cursor[0] = said[END]
}

/** Whether `json` at `at` has the same bytes as `prefix` at `kept`. */
function isSame (at, kept, length) {
  const words = length & ~3
  for (let i = 0; i < words; i += 4) if (jsonView.getInt32(at + i) !== prefixView.getInt32(kept + i)) return false
  for (let i = words; i < length; i++) if (json[at + i] !== prefix[kept + i]) return false
  return true
}

function isText (text, start, length) {
  if (text.length !== length) return false
  for (let i = 0; i < length; i++) if (out[start + i] !== text[i]) return false
  return true
}

/** Whether the JSON string at `at` is this text, in ASCII and without escapes. */
function isJsonText (text, at) {
  for (let i = 0; i < text.length; i++) if (json[at + 1 + i] !== text.charCodeAt(i)) return false
  return json[at + 1 + text.length] === QUOTE
}

const DOT = 0x2e

/** A UsualLine that leaves out the attributes of `omitAttributes`. */
class OmittingLine extends UsualLine {
  #patterns

  /** @param {import('../omit').Omission} omit */
  constructor (limits, names, omit) {
    super(limits, names)
    this.#patterns = omit.patterns.map(({ text, isPrefix }) => ({ bytes: Buffer.from(text), isPrefix }))
  }

  writeAttribute (start, at) {
    const keyStart = start + 10
    const length = cursor[0] - keyStart
    for (const { bytes, isPrefix } of this.#patterns) {
      if (!isSameStart(bytes, keyStart, length)) continue
      if (bytes.length > length) {
        if (bytes[length] === DOT) return NOWHERE // only members of the value are omitted
      } else if (isPrefix || length === bytes.length) {
        at = writeValue(at, Infinity, 0) // the next output overwrites it
        cursor[0] = start
        return at
      }
    }
    return super.writeAttribute(start, at)
  }
}

/** Whether one of a text and a key starts with the other. */
function isSameStart (text, keyStart, length) {
  for (let i = Math.min(text.length, length) - 1; i >= 0; i--) if (out[keyStart + i] !== text[i]) return false
  return true
}

module.exports = { UsualLine, OmittingLine, HEAD_BYTES, TAG_RECORD, TAG_BODY, TAG_ATTRIBUTE }
