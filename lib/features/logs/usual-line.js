'use strict'

// A line as pino writes nearly all of them, to OTLP bytes (opentelemetry/proto/logs/v1/logs.proto, message LogRecord), in one pass.
//
// What is unusual is left to record-encoder.js, which parses the line: escapes by number, a key that comes twice, blanks,
// what is long or passes a limit, and what is no JSON. Nothing is thrown on the way: in V8 that takes as long as ten lines.

const { Buffer } = require('node:buffer')
const { writeLength4 } = require('../../otlp/proto-writer.js')
const { json, jsonView, out, outView, cursor, read, isDigits, writeKey, writeField, writeValue, TAG_STRING, TAG_VALUE, QUOTE, COMMA, OPEN_BRACE, CLOSE_BRACE, NOWHERE, TEXT_LENGTH_MAX } = require('./json-values.js')
const { EXCEPTION_KEYS, RECORD_KEYS, contextOf } = require('./plain.js')

const EXCEPTION_TEXTS = [...EXCEPTION_KEYS].map((keys) => keys.map((key) => Buffer.from(key)))
const [[, TYPE]] = EXCEPTION_TEXTS
const CODE = Buffer.from('code')
const KEYS_MAX = 64
const PREFIX_BYTES_MAX = 64
const HEAD_BYTES = 25 // of what stands before the attributes; those of a logger's bindings come first, and are kept there

const TAG_RECORD = 0x12 // ScopeLogs.log_records
const TAG_BODY = 0x2a
const TAG_ATTRIBUTE = 0x32

// Members of a line that the record says in fields of its own, or the resource.
const RECORD_KEY_TEXTS = RECORD_KEYS.map((key) => Buffer.from(key))
const TIME = 1
const TRACE_ID = 2
const SPAN_ID = 3
const FLAGS = 4
const perhapsOfRecord = new Uint8Array(256) // which of them a key may be, by its first character and length; 0: none
for (const [i, key] of RECORD_KEY_TEXTS.entries()) perhapsOfRecord[key[0] + key.length] = i + 1

// What has been read of a line: at 1 to 7 where the values of these members begin, 0: there are none; how many keys and attributes
// it has, and where the last one ends in `out`. `known` has the same of the logger's bindings, which lines go on from.
const KEYS = 8
const ATTRIBUTES = 9
const END = 10
const said = new Int32Array(END + 1)
const known = new Int32Array(END + 1)
const marks = new Int32Array(KEYS_MAX) // of the line's keys, those of the bindings first
const prefix = Buffer.alloc(PREFIX_BYTES_MAX + json.length) // a line's beginning, and from PREFIX_BYTES_MAX on its logger's bindings
const prefixView = new DataView(prefix.buffer)
/** @type {UsualLine | null} */
let last = null // whose they are

class UsualLine {
  /** The memory that records are written to, each from its beginning. */
  bytes = out
  view = outView

  #limits
  #messageKey
  #errorKey
  #errorPrefix
  // Of the logger that wrote the line before.
  #bindings = ''
  #length = 0 // how many bytes its bindings have; 0: they, or where they stand, are unusual
  // Of the line before: where its time's digits begin, and where its bindings do; 0: it did not begin as usual.
  #digitsAt = 0
  #bindingsAt = 0
  #offset = 0 // of this line, where its bindings begin
  #type = '' // of the error that was logged with it

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
   * Writes body and attributes of one line behind a record's head. HOT, once per line where lines are exported. Budget: 0 objects.
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
    while (at < end && json[at] <= 0x20) at++ // its line end
    return at === end ? cursor[0] : 0
  }

  /** How many attributes the line that was written has. */
  get attributeCount () { return said[ATTRIBUTES] }

  /** The ids that the line has of its request, as a context. */
  contextOfLine () {
    if (said[TRACE_ID] === 0) return undefined
    const [traceId, spanId, flags] = [TRACE_ID, SPAN_ID, FLAGS].map((key) => {
      const at = said[key] < 0 ? this.#offset - said[key] : said[key]
      return at === 0 ? undefined : json.latin1Slice(at + 1, json.indexOf(QUOTE, at + 1))
    })
    return contextOf(traceId, spanId, flags)
  }

  /** Keeps what becomes of a logger's bindings: its lines have them all alike. */
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
    for (let key = TRACE_ID; key <= FLAGS; key++) known[key] = -said[key] // where the bindings begin varies
  }

  /** What is kept of the bindings is written over next. */
  #forget () {
    this.#length = 0
    known.fill(0)
    known[END] = HEAD_BYTES
    begin()
  }

  /** Where a line goes on that begins with level, time and its logger's bindings; 0 if it does not. */
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
    // The next line probably has the same level, and another time.
    this.#digitsAt = said[TIME] === 0 ? at : said[TIME]
    this.#bindingsAt = isDigits(this.#digitsAt, at) ? at : 0
    json.copy(prefix, 0, 0, this.#digitsAt)
    return at + this.#length
  }

  // Of what reads, `at` is where something begins; it returns the place behind it, or NOWHERE.

  /** From the brace or comma before a member to what stands behind the last one. */
  #writeMembers (at) {
    do at = this.#writeMember(at)
    while (json[at] === COMMA)
    return at
  }

  #writeMember (at) {
    const start = cursor[0]
    const keyStart = start + 10 // as that of an attribute
    cursor[0] = start + 5
    at = writeKey(at)
    const length = cursor[0] - keyStart
    const place = perhapsOfRecord[(out[keyStart] + length) & 0xff]
    if (place > 0 && isText(RECORD_KEY_TEXTS[place - 1], keyStart, length)) {
      said[place] = at
      at = writeValue(at, Infinity, 0) // and forgets it
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

  /** What pino's serializer makes of an error: each of its members is an attribute, see plain.js. */
  #writeError (at) {
    if (json[at + 1] === CLOSE_BRACE) return at + 2
    do {
      const start = cursor[0]
      const keyStart = start + 10
      const memberStart = keyStart + this.#errorPrefix.length
      cursor[0] = memberStart - 5
      at = writeKey(at)
      const length = cursor[0] - memberStart
      if (json[at] === QUOTE && isText(CODE, memberStart, length)) return NOWHERE // it is the type, which is written by now
      const [, key] = EXCEPTION_TEXTS.find(([member]) => json[at] === QUOTE && isText(member, memberStart, length)) ?? []
      if (key === TYPE && this.#type !== '' && !isJsonText(this.#type, at)) return NOWHERE // the record may have another
      if (key === undefined) this.#errorPrefix.copy(out, keyStart)
      else cursor[0] = keyStart + key.copy(out, keyStart)
      out[start + 5] = TAG_STRING
      writeLength4(outView, start + 6, cursor[0] - keyStart)
      at = this.writeAttribute(start, at)
    } while (json[at] === COMMA)
    return json[at] === CLOSE_BRACE ? at + 1 : NOWHERE
  }

  /** Writes the value of an attribute whose key is written, and what stands around both. */
  writeAttribute (start, at) {
    const keyStart = start + 10
    if (this.#isRepeated(keyStart, cursor[0] - keyStart) || ++said[ATTRIBUTES] > this.#limits.attributes) return NOWHERE
    out[start] = TAG_ATTRIBUTE
    at = writeField(TAG_VALUE, at, this.#limits.attributeValueLength, 0)
    writeLength4(outView, start + 1, cursor[0] - start - 5)
    return at
  }

  /**
   * Whether the line may have the key already: the last one of two holds. A mark is the key's last four bytes, the four before
   * its middle, and its length, which stands before it. Two keys of one mark take the long way for nothing.
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

/** Whether what is read there is what is kept there. */
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

/** Whether the string that begins there is that text, in ASCII and without escapes. */
function isJsonText (text, at) {
  for (let i = 0; i < text.length; i++) if (json[at + 1 + i] !== text.charCodeAt(i)) return false
  return json[at + 1 + text.length] === QUOTE
}

const DOT = 0x2e

/** The same where some attributes must not leave the process. */
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
        if (bytes[length] === DOT) return NOWHERE // some members of the value
      } else if (isPrefix || length === bytes.length) {
        at = writeValue(at, Infinity, 0) // and forgets it
        cursor[0] = start
        return at
      }
    }
    return super.writeAttribute(start, at)
  }
}

/** Whether the shorter one of a text and a key is what the other one begins with. */
function isSameStart (text, keyStart, length) {
  for (let i = Math.min(text.length, length) - 1; i >= 0; i--) if (out[keyStart + i] !== text[i]) return false
  return true
}

module.exports = { UsualLine, OmittingLine, HEAD_BYTES, TAG_RECORD, TAG_BODY, TAG_ATTRIBUTE }
