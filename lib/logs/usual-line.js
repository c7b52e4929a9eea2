'use strict'

// A line as pino writes nearly all of them, to OTLP bytes (opentelemetry/proto/logs/v1/logs.proto, message LogRecord), in one pass.
//
// It is read from one array and written to another. Both are constants of this module, of which V8 writes address and length into
// its code: a byte takes some four instructions, where one of an array that an object holds takes fifteen.
//
// What is unusual is left to record-encoder.js, which parses the line: errors, escapes by number, a key that comes twice, blanks,
// what is long or passes a limit, and what is no JSON. Nothing is thrown on the way: in V8 that takes as long as ten lines.

const { Buffer } = require('node:buffer')
const { writeNanos } = require('../runtime/timers')
const { writeLength4, writeText, putInt64 } = require('../otlp/proto-writer')
const { RECORD_KEYS, idsOf } = require('./plain')

const LINE_LENGTH_MAX = 2000 // a longer one is read sooner by JSON.parse
const BYTES_PER_CHARACTER = 3 // of UTF-8 for a UTF-16 unit
const BYTES_PER_BYTE = 6 // what becomes of an element `-1,`
const PREFIX_BYTES_MAX = 64
const KEYS_MAX = 64
const DEPTH_MAX = 32 // of maps and arrays; what lies deeper is its JSON text
const EXACT_DIGITS = 15 // an integer of more may lie where it becomes a number
const LEVEL_LENGTH_MAX = 32
const RECORD_OVERHEAD = 512
const HEAD_BYTES = 25 // what `writeHead` writes; the attributes of a logger's bindings come next, and are kept there

const TAG_RECORD = 0x12 // ScopeLogs.log_records
const TAG_SEVERITY_TEXT = 0x1a
const TAG_BODY = 0x2a
const TAG_ATTRIBUTE = 0x32
const TAG_STRING = 0x0a // KeyValue.key, AnyValue.string_value, and what arrays and maps are made of
const TAG_VALUE = 0x12 // KeyValue.value
const TAG_ARRAY = 0x2a
const TAG_MAP = 0x32

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

const UNESCAPED = new Uint8Array(256) // what stands behind a backslash; 0: none, or a number
for (const [escape, character] of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t']) UNESCAPED[escape.charCodeAt(0)] = character.charCodeAt(0)

const DIGIT = 1
const numeric = new Uint8Array(256).fill(DIGIT, ZERO, ZERO + 10) // 0: no part of a number
for (const character of '+-.eE') numeric[character.charCodeAt(0)] = 2

const POWERS = new Float64Array(EXACT_DIGITS + 1).map((_, i) => 10 ** i)

const json = Buffer.alloc(LINE_LENGTH_MAX * BYTES_PER_CHARACTER + PREFIX_BYTES_MAX + 8) // the line
const jsonView = new DataView(json.buffer)
const NOWHERE = json.length - 1 // what is unusual ends there: a zero, which nothing follows
const out = Buffer.allocUnsafeSlow(2 * json.length * BYTES_PER_BYTE + RECORD_OVERHEAD) // of bindings, and of a line without them
const outView = new DataView(out.buffer)
const cursor = new Int32Array(1) // where it is written in `out`: a variable would have no address that V8 knows

// Members of a line that the record says in fields of its own, or the resource.
const RECORD_KEY_TEXTS = RECORD_KEYS.map((key) => Buffer.from(key))
const TIME = 1
const TRACE_ID = 2
const SPAN_ID = 3
const FLAGS = 4
const perhapsOfRecord = new Uint8Array(256) // which of them a key may be, by its first character and length; 0: none
for (const [i, key] of RECORD_KEY_TEXTS.entries()) perhapsOfRecord[key[0] + key.length] = i + 1
const places = new Int32Array(RECORD_KEYS.length + 1) // where their values begin in the line; 0: there is none
const knownPlaces = new Int32Array(places.length) // and in the bindings

const marks = new Int32Array(KEYS_MAX) // of the line's keys, those of the bindings first
const prefix = Buffer.alloc(PREFIX_BYTES_MAX + json.length) // a line's beginning, and from PREFIX_BYTES_MAX on its logger's bindings
const prefixView = new DataView(prefix.buffer)
/** @type {UsualLine | null} */
let last = null // whose they are

class UsualLine {
  #limits
  #messageKey
  #errorKey
  #attributes = 0
  #keys = 0
  // Of the logger that wrote the line before.
  #bindings = ''
  #known = 0 // how many bytes its bindings have; 0: they, or where they stand, are unusual
  #knownEnd = HEAD_BYTES // of what is written of them
  #knownKeys = 0
  #knownAttributes = 0
  // Of the line before: where its time's digits begin, and where its bindings do; 0: it did not begin as usual.
  #digitsAt = 0
  #bindingsAt = 0

  /**
   * @param {{ attributes: number, attributeValueLength: number }} limits
   * @param {{ messageKey: string, errorKey: string }} names of the members that are the message and the error
   */
  constructor (limits, { messageKey, errorKey }) {
    this.#limits = limits
    this.#messageKey = Buffer.from(messageKey)
    this.#errorKey = Buffer.from(errorKey)
  }

  /** The memory that records are written to, each from its beginning. */
  get bytes () { return out }

  /**
   * Writes one line. HOT, once per line where lines are exported. Budget: 0 objects.
   * @param {import('./tap').LoggedLine} logged
   * @returns {number} how many bytes the record has; 0 if the line is unusual
   */
  write (logged) {
    const { line, bindings, severityText, context } = logged
    if (line.length > LINE_LENGTH_MAX || severityText.length > LEVEL_LENGTH_MAX) return 0
    if (bindings !== this.#bindings || last !== this) this.#learn(bindings)
    const end = read(line)
    if (json[0] !== OPEN_BRACE) return 0
    let at = this.#known === 0 ? 0 : this.#behindBindings()
    if (at === 0) {
      this.#known = 0 // what is kept of them is written over
      this.#begin(HEAD_BYTES, 0, 0)
    }
    const bindingsAt = at - this.#known
    if (at === 0 || json[at] === COMMA) at = this.#writeMembers(at)
    if (json[at++] !== CLOSE_BRACE) return 0
    while (at < end && json[at] <= 0x20) at++ // its line end
    if (at !== end) return 0
    writeHead(out, outView, logged)
    if (severityText !== '') writeLevel(severityText)
    if (context !== undefined) writeContext(context)
    else this.#writeIdsOfLine(bindingsAt)
    writeLength4(outView, 1, cursor[0] - 5)
    return cursor[0]
  }

  #begin (end, keys, attributes) {
    cursor[0] = end
    this.#keys = keys
    this.#attributes = attributes
    for (let i = TIME; i <= FLAGS; i++) places[i] = 0
  }

  /** Keeps what becomes of a logger's bindings: its lines have them all alike. */
  #learn (bindings) {
    if (last !== this) this.#bindingsAt = 0
    last = this
    this.#bindings = bindings
    this.#begin(HEAD_BYTES, 0, 0)
    const end = bindings.length > LINE_LENGTH_MAX ? 0 : read(bindings)
    const isUsual = end > 0 && json[0] === COMMA && this.#writeMembers(0) === end
    this.#known = isUsual ? json.copy(prefix, PREFIX_BYTES_MAX, 0, end) : 0
    this.#knownEnd = cursor[0]
    this.#knownKeys = this.#keys
    this.#knownAttributes = this.#attributes
    knownPlaces.set(places)
  }

  /** Where a line goes on that begins with level, time and its logger's bindings; 0 if it does not. */
  #behindBindings () {
    this.#begin(this.#knownEnd, this.#knownKeys, this.#knownAttributes)
    const start = this.#bindingsAt
    if (start > 0 && isSame(0, 0, this.#digitsAt) && isDigits(this.#digitsAt, start) && isSame(start, PREFIX_BYTES_MAX, this.#known)) {
      return start + this.#known
    }
    let at = 0
    do {
      at = this.#writeMember(at)
      if (json[at] !== COMMA || at > PREFIX_BYTES_MAX || this.#keys !== this.#knownKeys) return 0
    } while (!isSame(at, PREFIX_BYTES_MAX, this.#known))
    // The next line probably has the same level, and another time.
    this.#digitsAt = places[TIME] === 0 ? at : places[TIME]
    this.#bindingsAt = isDigits(this.#digitsAt, at) ? at : 0
    json.copy(prefix, 0, 0, this.#digitsAt)
    return at + this.#known
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
      places[place] = at
      at = writeValue(at, Infinity, 0) // and forgets it
      cursor[0] = start
      return at
    }
    if (at === NOWHERE || this.#isRepeated(keyStart, length)) return NOWHERE
    if (isText(this.#messageKey, keyStart, length)) {
      out[start] = TAG_BODY
      cursor[0] = start + 5
      at = writeValue(at, Infinity, 0)
    } else {
      if (length === 0 || ++this.#attributes > this.#limits.attributes) return NOWHERE
      if (json[at] === OPEN_BRACE && isText(this.#errorKey, keyStart, length)) return NOWHERE
      out[start] = TAG_ATTRIBUTE
      at = writeField(TAG_VALUE, at, this.#limits.attributeValueLength, 0)
    }
    writeLength4(outView, start + 1, cursor[0] - start - 5)
    return at
  }

  /**
   * Whether the line may have the key already: the last one of two holds. A mark is the key's last four bytes, the four before
   * its middle, and its length, which stands before it. Two keys of one mark take the long way for nothing.
   */
  #isRepeated (keyStart, length) {
    const mark = Math.imul(outView.getInt32(keyStart + length - 4), 31) + outView.getInt32(keyStart + (length >> 1) - 4) + length | 0
    const count = this.#keys
    for (let i = 0; i < count; i++) if (marks[i] === mark) return true
    if (count === KEYS_MAX) return true
    marks[count] = mark
    this.#keys = count + 1
    return false
  }

  /** The ids that the line has of its request. */
  #writeIdsOfLine (bindingsAt) {
    if (places[TRACE_ID] === 0 && knownPlaces[TRACE_ID] === 0) return
    const [traceId, spanId, flags] = [TRACE_ID, SPAN_ID, FLAGS].map((key) => {
      const at = places[key] !== 0 || this.#known === 0 || knownPlaces[key] === 0 ? places[key] : bindingsAt + knownPlaces[key]
      return at === 0 ? undefined : json.latin1Slice(at + 1, json.indexOf(QUOTE, at + 1))
    })
    const ids = idsOf(traceId, spanId, flags)
    if (ids !== undefined) cursor[0] = writeIds(out, outView, cursor[0], ids)
  }
}

/** Puts a text's UTF-8 where it is read; returns where it ends. */
function read (text) {
  const end = json.utf8Write(text, 0)
  // What is not closed ends here, whether a backslash stands before it or not, and nothing follows it.
  json[end] = json[end + 1] = QUOTE
  json[end + 2] = 0
  return end
}

/** Whether what is read there is what is kept there. */
function isSame (at, kept, length) {
  const words = length & ~3
  for (let i = 0; i < words; i += 4) if (jsonView.getInt32(at + i) !== prefixView.getInt32(kept + i)) return false
  for (let i = words; i < length; i++) if (json[at + i] !== prefix[kept + i]) return false
  return true
}

function isDigits (at, end) {
  while (at < end && numeric[json[at]] === DIGIT) at++
  return at === end
}

function isText (text, start, length) {
  if (text.length !== length) return false
  for (let i = 0; i < length; i++) if (out[start + i] !== text[i]) return false
  return true
}

/** From the brace or comma before a key to the value. */
function writeKey (at) {
  if (json[at + 1] !== QUOTE) return NOWHERE
  const end = writeString(at + 1, Infinity)
  return json[end] === COLON ? end + 1 : NOWHERE
}

/** Writes a field of type AnyValue. */
function writeField (tag, at, lengthMax, depth) {
  const start = cursor[0]
  out[start] = tag
  cursor[0] = start + 5
  const end = writeValue(at, lengthMax, depth)
  writeLength4(outView, start + 1, cursor[0] - start - 5)
  return end
}

function writeValue (at, lengthMax, depth) {
  switch (json[at]) {
    case QUOTE: return writeString(at, lengthMax)
    case OPEN_BRACE: return writeMap(at, lengthMax, depth)
    case OPEN_BRACKET: return writeArray(at, lengthMax, depth)
    case 0x74: return writeWord('true', at, 1)
    case 0x66: return writeWord('false', at, 0)
    case 0x6e: return writeWord('null', at, -1) // an AnyValue without a field
    default: return writeNumber(at)
  }
}

function writeString (at, lengthMax) {
  const source = json
  const target = out
  const start = cursor[0] + 5
  let from = at + 1
  let to = start
  let code
  while ((code = source[from++]) !== QUOTE) {
    if (code === BACKSLASH && (code = UNESCAPED[source[from++]]) === 0) return NOWHERE
    target[to++] = code
  }
  if (to - start > lengthMax) return NOWHERE // perhaps: it counts characters
  target[start - 5] = TAG_STRING
  writeLength4(outView, start - 4, to - start)
  cursor[0] = to
  return from
}

function writeMap (at, lengthMax, depth) {
  if (depth === DEPTH_MAX) return NOWHERE
  const start = cursor[0]
  out[start] = TAG_MAP
  cursor[0] = start + 5
  if (json[at + 1] === CLOSE_BRACE) at++
  else {
    do {
      const member = cursor[0]
      out[member] = TAG_STRING
      cursor[0] = member + 5
      at = writeKey(at)
      if (at === NOWHERE) return NOWHERE
      at = writeField(TAG_VALUE, at, lengthMax, depth + 1)
      writeLength4(outView, member + 1, cursor[0] - member - 5)
    } while (json[at] === COMMA)
  }
  writeLength4(outView, start + 1, cursor[0] - start - 5)
  return json[at] === CLOSE_BRACE ? at + 1 : NOWHERE
}

function writeArray (at, lengthMax, depth) {
  if (depth === DEPTH_MAX) return NOWHERE
  const start = cursor[0]
  out[start] = TAG_ARRAY
  cursor[0] = start + 5
  if (json[at + 1] === CLOSE_BRACKET) at++
  else {
    do at = writeField(TAG_STRING, at + 1, lengthMax, depth + 1)
    while (json[at] === COMMA)
  }
  writeLength4(outView, start + 1, cursor[0] - start - 5)
  return json[at] === CLOSE_BRACKET ? at + 1 : NOWHERE
}

function writeWord (word, at, value) {
  for (let i = 1; i < word.length; i++) if (json[at + i] !== word.charCodeAt(i)) return NOWHERE
  if (value >= 0) {
    out[cursor[0]++] = 0x10
    out[cursor[0]++] = value
  }
  return at + word.length
}

function writeNumber (at) {
  const start = json[at] === MINUS ? at + 1 : at
  let end = start
  let value = 0
  let point = 0
  let code
  while (numeric[code = json[end]] === DIGIT || (code === POINT && point === 0)) {
    if (code === POINT) point = end
    else value = value * 10 + (code - ZERO)
    end++
  }
  if (end === start || end - start > EXACT_DIGITS || numeric[code] !== 0) return writeLongNumber(at)
  if (start !== at) value = -value
  if (point === 0) {
    out[cursor[0]] = 0x18
    cursor[0] = putInt64(out, cursor[0] + 1, value)
  } else writeDouble(value / POWERS[end - point - 1]) // exact: both numbers are
  return end
}

function writeLongNumber (at) {
  let end = at
  while (numeric[json[end]] !== 0) end++
  const text = json.latin1Slice(at, end)
  const number = Number(text)
  if (text === '' || Number.isNaN(number)) return NOWHERE
  if (/^-?\d+$/.test(text)) { // a BigInt, with all its digits
    out[cursor[0]] = TAG_STRING
    writeLength4(outView, cursor[0] + 1, text.length)
    cursor[0] += 5 + out.latin1Write(text, cursor[0] + 5)
  } else writeDouble(number)
  return end
}

function writeDouble (number) {
  out[cursor[0]] = 0x21
  outView.setFloat64(cursor[0] + 1, number, true)
  cursor[0] += 9
}

function writeHead (bytes, view, { time, observedTime, severityNumber }) {
  bytes[0] = TAG_RECORD
  bytes[5] = 0x09 // time_unix_nano
  writeNanos(view, 6, time)
  bytes[14] = 0x59 // observed_time_unix_nano
  writeNanos(view, 15, observedTime)
  bytes[23] = 0x10
  bytes[24] = severityNumber
}

function writeLevel (name) {
  const start = cursor[0]
  out[start] = TAG_SEVERITY_TEXT
  cursor[0] = writeText(out, start + 5, name)
  writeLength4(outView, start + 1, cursor[0] - start - 5)
}

/** The context at the call. */
function writeContext (context) {
  const at = cursor[0] = writeIdHeads(out, outView, cursor[0], context.flags)
  outView.setInt32(at - 26, context.t0)
  outView.setInt32(at - 22, context.t1)
  outView.setInt32(at - 18, context.t2)
  outView.setInt32(at - 14, context.t3)
  outView.setInt32(at - 8, context.s0)
  outView.setInt32(at - 4, context.s1)
}

/** Writes flags and ids in hex; returns where they end. */
function writeIds (bytes, view, position, { flags, traceId, spanId }) {
  const end = writeIdHeads(bytes, view, position, flags)
  bytes.hexWrite(traceId, end - 26)
  bytes.hexWrite(spanId, end - 8)
  return end
}

/** Writes flags, and the tags of both ids, whose memory follows them; returns where that ends. */
function writeIdHeads (bytes, view, at, flags) {
  bytes[at] = 0x45
  view.setInt32(at + 1, flags, true)
  bytes[at + 5] = 0x4a
  bytes[at + 6] = 16
  bytes[at + 23] = 0x52
  bytes[at + 24] = 8
  return at + 33
}

module.exports = { UsualLine, writeHead, writeIds, DEPTH_MAX, HEAD_BYTES, TAG_SEVERITY_TEXT, TAG_BODY, TAG_ATTRIBUTE }
