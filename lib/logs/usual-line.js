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
const { writeLength4, putInt64 } = require('../otlp/proto-writer')

const LINE_LENGTH_MAX = 2000 // a longer one is read sooner by JSON.parse
const BYTES_PER_CHARACTER = 3 // of UTF-8 for a UTF-16 unit
const BYTES_PER_BYTE = 6 // what becomes of an element `-1,`
const HEAD_BYTES_MAX = 64
const KEYS_MAX = 64
const DEPTH_MAX = 32 // of maps and arrays; what lies deeper is its JSON text
const EXACT_DIGITS = 15 // an integer of more may lie where it becomes a number
const LEVEL_LENGTH_MAX = 32
const RECORD_OVERHEAD = 512

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
const NINE = 0x39
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

// Members of a line that the record says in fields of its own, or the resource.
const PID = Buffer.from('pid')
const TIME = Buffer.from('time')
const LEVEL = Buffer.from('level')
const HOSTNAME = Buffer.from('hostname')
const TRACE_ID = Buffer.from('trace_id')
const SPAN_ID = Buffer.from('span_id')
const TRACE_FLAGS = Buffer.from('trace_flags')

const perhapsOfRecord = new Uint8Array(256) // by the hash of a key
for (const key of [PID, TIME, LEVEL, HOSTNAME, TRACE_ID, SPAN_ID, TRACE_FLAGS]) perhapsOfRecord[hashOf(key) & 0xff] = 1

const UNESCAPED = new Uint8Array(256) // what stands behind a backslash; 0: none, or a number
for (const [escape, character] of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t']) UNESCAPED[escape.charCodeAt(0)] = character.charCodeAt(0)

const isDigit = new Uint8Array(256).fill(1, ZERO, NINE + 1)

const POWERS = new Float64Array(EXACT_DIGITS + 1).map((_, i) => 10 ** i)

const UNUSUAL = -1

const json = Buffer.allocUnsafeSlow(LINE_LENGTH_MAX * BYTES_PER_CHARACTER + 8) // the line
const out = Buffer.allocUnsafeSlow(json.length * BYTES_PER_BYTE + RECORD_OVERHEAD)
const outView = new DataView(out.buffer)
const jsonView = new DataView(json.buffer)
const known = Buffer.allocUnsafeSlow(json.length) // the bindings of a logger
const knownView = new DataView(known.buffer)
const knownOut = Buffer.allocUnsafeSlow(out.length) // and what becomes of them
const knownOutView = new DataView(knownOut.buffer)
const head = Buffer.allocUnsafeSlow(HEAD_BYTES_MAX) // what stands before them, level and time
const headView = new DataView(head.buffer)
const knownHashes = new Int32Array(KEYS_MAX)
const hashes = new Int32Array(KEYS_MAX) // of the line's keys
const cursor = new Int32Array(new ArrayBuffer(4)) // where it is written in `out`: a variable would have no address that V8 knows

class UsualLine {
  #limits
  #messageKey
  #messageHash
  #errorHash // of a key that has it, and is no error's, a parser finds it out
  #timeAt = 0
  #traceIdAt = 0 // where the value begins; 0: there is none
  #spanIdAt = 0
  #flagsAt = 0
  #attributes = 0
  #keys = 0
  #end = 0 // of what is read
  // Of the logger that wrote the line before.
  #bindings = ''
  #known = 0 // how long they are in `known`; 0: they are unusual
  #knownWritten = 0
  #knownKeys = 0
  #knownAttributes = 0
  #knownTraceIdAt = 0
  #knownSpanIdAt = 0
  #knownFlagsAt = 0
  // Of the line before, if its bindings stand behind its time.
  #headLength = 0 // up to the digits of its time; 0: there is none
  #headEnd = 0

  /**
   * @param {{ attributes: number, attributeValueLength: number }} limits
   * @param {{ messageKey: string, errorKey: string }} names of the members that are the message and the error
   */
  constructor (limits, { messageKey, errorKey }) {
    this.#limits = limits
    this.#messageKey = Buffer.from(messageKey)
    this.#messageHash = hashOf(this.#messageKey)
    this.#errorHash = hashOf(Buffer.from(errorKey))
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
    if (bindings !== this.#bindings) this.#learn(bindings)
    const end = this.#end = read(line)
    if (json[0] !== OPEN_BRACE) return 0
    this.#writeHead(logged)
    this.#timeAt = this.#traceIdAt = this.#spanIdAt = this.#flagsAt = this.#attributes = this.#keys = 0
    let at = this.#writeMembers(this.#isHead() ? this.#headEnd : 0)
    if (at === UNUSUAL || json[at++] !== CLOSE_BRACE) return 0
    while (at < end && json[at] <= 0x20) at++ // its line end
    if (at !== end) return 0
    if (context !== undefined) writeContext(context)
    else if (this.#traceIdAt !== 0 && this.#spanIdAt !== 0 && !this.#writeIdsOfLine()) return 0
    writeLength4(outView, 1, cursor[0] - 5)
    return cursor[0]
  }

  /** Keeps what becomes of a logger's bindings: its lines have them all alike. */
  #learn (bindings) {
    this.#bindings = bindings
    this.#known = this.#headLength = 0
    if (bindings.length > LINE_LENGTH_MAX) return
    const end = this.#end = read(bindings)
    this.#traceIdAt = this.#spanIdAt = this.#flagsAt = this.#attributes = this.#keys = 0
    cursor[0] = 0
    if (json[0] !== COMMA || this.#writeMembers(0) !== end) return
    this.#known = end
    this.#knownWritten = cursor[0]
    json.copy(known, 0, 0, end)
    out.copy(knownOut, 0, 0, cursor[0])
    this.#knownKeys = this.#keys
    for (let i = 0; i < this.#keys; i++) knownHashes[i] = hashes[i]
    this.#knownAttributes = this.#attributes
    this.#knownTraceIdAt = this.#traceIdAt
    this.#knownSpanIdAt = this.#spanIdAt
    this.#knownFlagsAt = this.#flagsAt
  }

  #writeHead ({ time, observedTime, severityNumber, severityText }) {
    out[0] = TAG_RECORD
    out[5] = 0x09 // time_unix_nano
    writeNanos(outView, 6, time)
    out[14] = 0x59 // observed_time_unix_nano
    writeNanos(outView, 15, observedTime)
    out[23] = 0x10
    out[24] = severityNumber
    cursor[0] = 25
    const { length } = severityText
    if (length === 0) return
    const written = out.utf8Write(severityText, 30)
    out[25] = TAG_SEVERITY_TEXT
    writeLength4(outView, 26, written)
    cursor[0] = 30 + written
  }

  // Of what reads, `at` is where something begins; it returns the place behind it, or UNUSUAL.

  /** From the brace or comma before a member to what stands behind the last one. */
  #writeMembers (at) {
    const source = json
    const target = out
    const written = cursor
    do {
      if (this.#isNext(at)) {
        if (this.#timeAt > 0) this.#learnHead(at)
        at = this.#writeKnown(at)
        if (source[at] !== COMMA) return at
      }
      const start = written[0]
      // Its key is written where that of an attribute stands.
      const keyStart = start + 10
      let from = at + 1
      if (source[from++] !== QUOTE) return UNUSUAL
      let keyEnd = keyStart
      let hash = 0
      let code
      while ((code = source[from++]) !== QUOTE) {
        if (code === BACKSLASH) return UNUSUAL
        target[keyEnd++] = code
        hash = Math.imul(hash, 31) + code | 0
      }
      if (source[from++] !== COLON) return UNUSUAL
      if (perhapsOfRecord[hash & 0xff] === 1 && this.#isOfRecord(keyStart, keyEnd - keyStart, from)) {
        at = this.#writeValue(from, Infinity, 0) // and forgets it
        if (at === UNUSUAL) return UNUSUAL
        written[0] = start
        continue
      }
      if (this.#isRepeated(hash)) return UNUSUAL
      if (hash === this.#messageHash && isText(this.#messageKey, keyStart, keyEnd - keyStart)) {
        target[start] = TAG_BODY
        written[0] = start + 5
        at = this.#writeValue(from, Infinity, 0)
        if (at === UNUSUAL) return UNUSUAL
      } else {
        if (hash === this.#errorHash && source[from] === OPEN_BRACE) return UNUSUAL
        if (keyEnd === keyStart || ++this.#attributes > this.#limits.attributes) return UNUSUAL
        target[start] = TAG_ATTRIBUTE
        target[start + 5] = TAG_STRING
        writeLength4(outView, start + 6, keyEnd - keyStart)
        target[keyEnd] = TAG_VALUE
        written[0] = keyEnd + 5
        at = this.#writeValue(from, this.#limits.attributeValueLength, 0)
        if (at === UNUSUAL) return UNUSUAL
        writeLength4(outView, keyEnd + 1, written[0] - keyEnd - 5)
      }
      writeLength4(outView, start + 1, written[0] - start - 5)
    } while (source[at] === COMMA)
    return at
  }

  /** Whether the logger's bindings come next. */
  #isNext (at) {
    return this.#known > 0 && this.#keys === 0 && at + this.#known <= this.#end && isKnown(at, this.#known)
  }

  /** Whether the line begins as the one before, but for its time. What stands there is no part of the record. */
  #isHead () {
    const source = json
    const length = this.#headLength
    if (length === 0) return false
    const words = length & ~3
    for (let i = 0; i < words; i += 4) if (jsonView.getInt32(i) !== headView.getInt32(i)) return false
    for (let i = words; i < length; i++) if (source[i] !== head[i]) return false
    const end = this.#headEnd
    for (let i = length; i < end; i++) if (isDigit[source[i]] === 0) return false
    return source[end] === COMMA
  }

  #learnHead (end) {
    this.#headLength = 0
    if (end > HEAD_BYTES_MAX) return
    for (let i = this.#timeAt; i < end; i++) if (isDigit[json[i]] === 0) return
    this.#headLength = json.copy(head, 0, 0, this.#timeAt)
    this.#headEnd = end
  }

  #writeKnown (at) {
    const start = cursor[0]
    const end = start + this.#knownWritten
    for (let i = 0, to = start; to < end; i += 4, to += 4) outView.setInt32(to, knownOutView.getInt32(i))
    cursor[0] = end
    for (let i = 0; i < this.#knownKeys; i++) hashes[i] = knownHashes[i]
    this.#keys = this.#knownKeys
    this.#attributes = this.#knownAttributes
    if (this.#knownTraceIdAt !== 0) this.#traceIdAt = at + this.#knownTraceIdAt
    if (this.#knownSpanIdAt !== 0) this.#spanIdAt = at + this.#knownSpanIdAt
    if (this.#knownFlagsAt !== 0) this.#flagsAt = at + this.#knownFlagsAt
    return at + this.#known
  }

  /** Whether the line has a key of that hash already: the last one of two holds. Two keys of one hash take the long way for nothing. */
  #isRepeated (hash) {
    const count = this.#keys
    for (let i = 0; i < count; i++) if (hashes[i] === hash) return true
    if (count === KEYS_MAX) return true
    hashes[count] = hash
    this.#keys = count + 1
    return false
  }

  /** Whether a member is one that is no attribute; notes where the ids are. */
  #isOfRecord (keyStart, length, valueAt) {
    switch (length) {
      case 3: return isText(PID, keyStart, 3)
      case 4:
        if (!isText(TIME, keyStart, 4)) return false
        this.#timeAt = valueAt
        return true
      case 5: return isText(LEVEL, keyStart, 5)
      case 7:
        if (!isText(SPAN_ID, keyStart, 7)) return false
        this.#spanIdAt = valueAt
        return true
      case 8:
        if (isText(HOSTNAME, keyStart, 8)) return true
        if (!isText(TRACE_ID, keyStart, 8)) return false
        this.#traceIdAt = valueAt
        return true
      case 11:
        if (!isText(TRACE_FLAGS, keyStart, 11)) return false
        this.#flagsAt = valueAt
        return true
      default: return false
    }
  }

  /** Writes a field of type AnyValue. */
  #writeField (tag, at, lengthMax, depth) {
    const start = cursor[0]
    out[start] = tag
    cursor[0] = start + 5
    const end = this.#writeValue(at, lengthMax, depth)
    writeLength4(outView, start + 1, cursor[0] - start - 5)
    return end
  }

  #writeValue (at, lengthMax, depth) {
    switch (json[at]) {
      case QUOTE: return this.#writeString(at, lengthMax)
      case OPEN_BRACE: return this.#writeMap(at, lengthMax, depth)
      case OPEN_BRACKET: return this.#writeArray(at, lengthMax, depth)
      case 0x74: return writeWord('true', at, 1)
      case 0x66: return writeWord('false', at, 0)
      case 0x6e: return writeWord('null', at, -1) // an AnyValue without a field
      default: return writeNumber(at)
    }
  }

  #writeString (at, lengthMax) {
    const source = json
    const target = out
    const start = cursor[0] + 5
    let from = at + 1
    let to = start
    let code
    while ((code = source[from++]) !== QUOTE) {
      if (code === BACKSLASH && (code = UNESCAPED[source[from++]]) === 0) return UNUSUAL
      target[to++] = code
    }
    if (to - start > lengthMax) return UNUSUAL // perhaps: it counts characters
    target[start - 5] = TAG_STRING
    writeLength4(outView, start - 4, to - start)
    cursor[0] = to
    return from
  }

  #writeMap (at, lengthMax, depth) {
    if (depth === DEPTH_MAX) return UNUSUAL
    const start = cursor[0]
    out[start] = TAG_MAP
    cursor[0] = start + 5
    if (json[at + 1] === CLOSE_BRACE) at++
    else {
      do {
        const member = cursor[0]
        out[member] = TAG_STRING
        cursor[0] = member + 5
        if (json[++at] !== QUOTE) return UNUSUAL
        at = this.#writeString(at, Infinity)
        if (at === UNUSUAL || json[at] !== COLON) return UNUSUAL
        at = this.#writeField(TAG_VALUE, at + 1, lengthMax, depth + 1)
        if (at === UNUSUAL) return UNUSUAL
        writeLength4(outView, member + 1, cursor[0] - member - 5)
      } while (json[at] === COMMA)
    }
    writeLength4(outView, start + 1, cursor[0] - start - 5)
    return json[at] === CLOSE_BRACE ? at + 1 : UNUSUAL
  }

  #writeArray (at, lengthMax, depth) {
    if (depth === DEPTH_MAX) return UNUSUAL
    const start = cursor[0]
    out[start] = TAG_ARRAY
    cursor[0] = start + 5
    if (json[at + 1] === CLOSE_BRACKET) at++
    else {
      do {
        at = this.#writeField(TAG_STRING, at + 1, lengthMax, depth + 1)
        if (at === UNUSUAL) return UNUSUAL
      } while (json[at] === COMMA)
    }
    writeLength4(outView, start + 1, cursor[0] - start - 5)
    return json[at] === CLOSE_BRACKET ? at + 1 : UNUSUAL
  }

  /** The ids that the line has of its request. */
  #writeIdsOfLine () {
    const traceId = json.latin1Slice(this.#traceIdAt + 1, this.#traceIdAt + 33)
    const spanId = json.latin1Slice(this.#spanIdAt + 1, this.#spanIdAt + 17)
    const flags = this.#flagsAt === 0 ? 0 : parseInt(json.latin1Slice(this.#flagsAt + 1, this.#flagsAt + 3), 16)
    if (!/^[0-9a-f]{32}$/.test(traceId) || !/^[0-9a-f]{16}$/.test(spanId)) return false
    const at = writeIdHeads(flags & 0xff)
    out.hexWrite(traceId, at - 26)
    out.hexWrite(spanId, at - 8)
    return true
  }
}

function hashOf (key) {
  return key.reduce((hash, code) => Math.imul(hash, 31) + code | 0, 0)
}

/** Puts a text's UTF-8 where it is read; returns where it ends. */
function read (text) {
  const end = json.utf8Write(text, 0)
  // What is not closed ends here, whether a backslash stands before it or not, and nothing follows it.
  json[end] = json[end + 1] = QUOTE
  json[end + 2] = 0
  return end
}

/** Whether the logger's bindings stand there. */
function isKnown (at, length) {
  const words = length & ~3
  for (let i = 0; i < words; i += 4) if (jsonView.getInt32(at + i) !== knownView.getInt32(i)) return false
  for (let i = words; i < length; i++) if (json[at + i] !== known[i]) return false
  return true
}

function isText (text, start, length) {
  if (text.length !== length) return false
  for (let i = 0; i < length; i++) if (out[start + i] !== text[i]) return false
  return true
}

function writeWord (word, at, value) {
  for (let i = 1; i < word.length; i++) if (json[at + i] !== word.charCodeAt(i)) return UNUSUAL
  if (value >= 0) {
    out[cursor[0]] = 0x10
    out[cursor[0] + 1] = value
    cursor[0] += 2
  }
  return at + word.length
}

function writeNumber (at) {
  const start = json[at] === MINUS ? at + 1 : at
  let end = start
  let value = 0
  let decimals = 0
  let code
  while ((code = json[end]) >= ZERO && code <= NINE) {
    value = value * 10 + (code - ZERO)
    end++
  }
  if (code === POINT) {
    const point = end++
    while ((code = json[end]) >= ZERO && code <= NINE) {
      value = value * 10 + (code - ZERO)
      end++
    }
    decimals = end - point - 1
  }
  if (end === start || end - start > EXACT_DIGITS || isOfNumber(code)) return writeLongNumber(at)
  if (start !== at) value = -value
  if (decimals === 0) {
    out[cursor[0]] = 0x18
    cursor[0] = putInt64(out, cursor[0] + 1, value)
  } else {
    out[cursor[0]] = 0x21
    outView.setFloat64(cursor[0] + 1, value / POWERS[decimals], true) // exact: both numbers are
    cursor[0] += 9
  }
  return end
}

function writeLongNumber (at) {
  let end = at
  while (isOfNumber(json[end])) end++
  const text = json.latin1Slice(at, end)
  const number = Number(text)
  if (text === '' || Number.isNaN(number)) return UNUSUAL
  if (/^-?\d+$/.test(text)) { // a BigInt, with all its digits
    out[cursor[0]] = TAG_STRING
    writeLength4(outView, cursor[0] + 1, text.length)
    cursor[0] += 5 + out.latin1Write(text, cursor[0] + 5)
  } else {
    out[cursor[0]] = 0x21
    outView.setFloat64(cursor[0] + 1, number, true)
    cursor[0] += 9
  }
  return end
}

/** Digits, sign, point and exponent. */
function isOfNumber (code) {
  return (code >= ZERO && code <= NINE) || code === MINUS || code === 0x2b || code === POINT || code === 0x65 || code === 0x45
}

/** The context at the call. */
function writeContext (context) {
  const at = writeIdHeads(context.flags)
  outView.setInt32(at - 26, context.t0)
  outView.setInt32(at - 22, context.t1)
  outView.setInt32(at - 18, context.t2)
  outView.setInt32(at - 14, context.t3)
  outView.setInt32(at - 8, context.s0)
  outView.setInt32(at - 4, context.s1)
}

/** Writes flags, and the tags of both ids, whose memory follows them; returns where the record ends. */
function writeIdHeads (flags) {
  const at = cursor[0]
  out[at] = 0x45
  outView.setInt32(at + 1, flags, true)
  out[at + 5] = 0x4a
  out[at + 6] = 16
  out[at + 23] = 0x52
  out[at + 24] = 8
  cursor[0] = at + 33
  return cursor[0]
}

module.exports = { UsualLine, DEPTH_MAX, TAG_RECORD, TAG_SEVERITY_TEXT, TAG_BODY, TAG_ATTRIBUTE }
