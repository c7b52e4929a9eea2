'use strict'

// Lines of pino, and events, to OTLP bytes (opentelemetry/proto/logs/v1/logs.proto, message LogRecord), straight into the exporter's
// open chunk.
//
// What is read is the line itself, not the objects that were logged: what redaction, serializers and formatters have left out of it
// must not leave by this way either. Its UTF-8 is copied text by text, as it is read; nothing is parsed into objects.

const { Buffer } = require('node:buffer')
const { cut } = require('../span/attributes')
const { keepAnchored, writeNanos } = require('../runtime/timers')
const { ProtoWriter, writeLength4, attributesBound, writeAttributes } = require('../otlp/proto-writer')
const { openRun, RUN_BYTES } = require('../otlp/span-encoder')
const { encodeScope } = require('../otlp/request')

const TAG_RECORD = 0x12 // ScopeLogs.log_records
const TAG_SEVERITY_TEXT = 0x1a
const TAG_BODY = 0x2a
const TAG_ATTRIBUTE = 0x32
const TAG_EVENT_NAME = 0x62
const TAG_STRING = 0x0a // KeyValue.key, AnyValue.string_value, and what arrays and maps are made of
const TAG_VALUE = 0x12 // KeyValue.value
const TAG_ARRAY = 0x2a
const TAG_MAP = 0x32

const RECORD_OVERHEAD = 400 // times, severity, ids, and the keys of an exception
const BYTES_PER_BYTE = 8 // of the densest lines: a member `"":-1,` of an error takes 27 bytes and the error's own key
const ERROR_KEY_LENGTH_MAX = 20 // so it is no longer than this
const DEPTH_MAX = 32 // of maps and arrays; what lies deeper is its JSON text
const INT64_DIGITS = 15 // an integer of more may lie where it becomes a number
const LOOP_LENGTH_MAX = 48 // up to which a loop over bytes is faster than the call into C++
const SCRATCH_BYTES = 16 * 1024
const BYTES_PER_CHARACTER = 3 // of UTF-8 for a UTF-16 unit

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
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

const EXCEPTION_KEYS = new Map([['type', 'exception.type'], ['message', 'exception.message'], ['stack', 'exception.stacktrace']])

// Thrown and caught in this file.
const MALFORMED = new SyntaxError('no JSON')
const REPEATED = new SyntaxError('a key comes twice')

const NOWHERE = -1

class RecordEncoder {
  #exporter
  #limits
  #messageKey
  #errorKey
  #writer = new ProtoWriter()
  #scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
  #json = this.#scratch // the line
  #end = 0 // of it
  #attributes = 0
  #dropped = 0
  // The keys that the line has had: a bit of a hash for each, and where they begin and end.
  #seen = 0
  #keys = []
  #keyCount = 0
  #traceIdAt = NOWHERE // where the value begins
  #spanIdAt = NOWHERE
  #traceFlagsAt = NOWHERE

  /**
   * @param {Exporter} exporter
   * @param {{ attributes: number, attributeValueLength: number }} limits
   * @param {{ messageKey: string, errorKey: string }} names of the members that are the message and the error
   */
  constructor (exporter, limits, { messageKey, errorKey }) {
    this.#exporter = exporter
    this.#limits = limits
    this.#messageKey = Buffer.from(messageKey)
    this.#errorKey = Buffer.from(errorKey.length <= ERROR_KEY_LENGTH_MAX ? errorKey : '')
  }

  /**
   * Writes one line. HOT, once per line where lines are exported. Budget: 0 objects.
   * @param {import('./tap').LoggedLine} logged
   */
  accept (logged) {
    keepAnchored(logged.time)
    try {
      this.#encode(logged)
    } catch (error) {
      this.#exporter.dropFailed(error)
    }
  }

  #encode (logged) {
    const exporter = this.#exporter
    const { line, list } = logged
    if (line.length > exporter.spanBytesMax) return exporter.dropTooLarge(line.length)
    this.#read(line)
    const scope = encodeScope(logged.scope)
    const runBytes = scope.length + RUN_BYTES
    const bound = RECORD_OVERHEAD + this.#end * BYTES_PER_BYTE + (list === null ? 0 : attributesBound(list))
    if (exporter.isLong(bound + runBytes)) return this.#encodeLong(logged, bound, scope)
    const chunk = this.#inRun(exporter.reserve(bound + runBytes), scope)
    if (chunk === null) return
    this.#writer.open(chunk.bytes, chunk.view, chunk.length)
    this.#write(logged)
    this.#close(chunk)
  }

  /** Puts the line's UTF-8 where it is read. */
  #read (line) {
    const isLong = line.length * BYTES_PER_CHARACTER > SCRATCH_BYTES
    this.#json = isLong ? Buffer.from(line) : this.#scratch
    this.#end = isLong ? this.#json.length : this.#scratch.utf8Write(line, 0)
  }

  /** A line of which it cannot be said before how many bytes it takes: into memory of its own first. */
  #encodeLong (logged, bound, scope) {
    const exporter = this.#exporter
    const runBytes = scope.length + RUN_BYTES
    const writer = this.#writer
    const memory = Buffer.allocUnsafeSlow(bound)
    writer.open(memory, new DataView(memory.buffer), 0)
    this.#write(logged)
    const record = memory.subarray(0, writer.position)
    this.#json = this.#scratch // lets go of it
    if (record.length + runBytes > exporter.spanBytesMax) return exporter.dropTooLarge(record.length)
    const chunk = this.#inRun(exporter.reserve(record.length + runBytes, true), scope)
    if (chunk === null) return
    writer.open(chunk.bytes, chunk.view, chunk.length)
    writer.copy(record)
    this.#close(chunk)
  }

  #inRun (chunk, scope) {
    if (chunk !== null && chunk.scope !== scope) openRun(this.#writer, chunk, scope)
    return chunk
  }

  #close (chunk) {
    const end = this.#writer.position
    writeLength4(chunk.view, chunk.scopeSpansStart, end - chunk.scopeSpansStart - 4)
    this.#exporter.commit(chunk, end)
  }

  #write (logged) {
    const writer = this.#writer
    const start = writer.position
    this.#writeHead(logged)
    const membersStart = writer.position
    try {
      if (logged.list === null) this.#writeMembers()
      else this.#writeEvent(logged)
    } catch (error) {
      writer.position = membersStart
      if (error === REPEATED) this.#writeLastMembers(logged.line)
      else if (error === MALFORMED) this.#writeText(logged.line)
      else throw error
    }
    this.#writeTrace(logged.context)
    writeLength4(writer.view, start + 1, writer.position - start - 5)
  }

  #writeHead ({ time, observedTime, severityNumber, severityText }) {
    const writer = this.#writer
    const { view } = writer
    writer.byte(TAG_RECORD)
    writer.reserve4()
    writer.byte(0x09) // time_unix_nano
    writeNanos(view, writer.position, time)
    writer.position += 8
    writer.byte(0x59) // observed_time_unix_nano
    writeNanos(view, writer.position, observedTime)
    writer.position += 8
    writer.byte(0x10)
    writer.byte(severityNumber)
    if (severityText !== '') writer.string(TAG_SEVERITY_TEXT, severityText)
  }

  #writeEvent ({ list, eventName }) {
    this.#traceIdAt = NOWHERE
    this.#writer.string(TAG_EVENT_NAME, eventName)
    writeAttributes(this.#writer, TAG_ATTRIBUTE, list)
  }

  /** The line as it is, where it is no JSON: of `hooks.streamWrite`, or of a logger's own stringifier. */
  #writeText (line) {
    const writer = this.#writer
    this.#traceIdAt = NOWHERE
    writer.byte(TAG_BODY)
    const at = writer.reserve4()
    writer.string(TAG_STRING, line.trimEnd())
    writer.length4(at)
  }

  /** Of a key that comes twice the last one holds, as for all who read JSON. */
  #writeLastMembers (line) {
    this.#read(JSON.stringify(JSON.parse(line)))
    this.#writeMembers()
  }

  #writeMembers () {
    const json = this.#json
    this.#attributes = this.#dropped = this.#seen = this.#keyCount = 0
    this.#traceIdAt = this.#spanIdAt = this.#traceFlagsAt = NOWHERE
    let at = this.#skipBlanks(0)
    if (json[at] !== OPEN_BRACE) throw MALFORMED
    at = this.#skipBlanks(at + 1)
    while (json[at] !== CLOSE_BRACE) {
      const keyEnd = this.#endOfKey(at)
      at = this.#afterComma(this.#writeMember(at + 1, keyEnd, this.#afterColon(keyEnd)), CLOSE_BRACE)
    }
    if (this.#skipBlanks(at + 1) !== this.#end) throw MALFORMED
    if (this.#dropped > 0) {
      this.#writer.byte(0x38)
      this.#writer.varint(this.#dropped)
    }
  }

  /** Writes what the member says whose key stands between `from` and `to`; returns where its value ends. */
  #writeMember (from, to, valueAt) {
    switch (to - from) {
      case 3: if (this.#isKey(PID, from)) return this.#endOfValue(valueAt); break
      case 4: if (this.#isKey(TIME, from)) return this.#endOfValue(valueAt); break
      case 5: if (this.#isKey(LEVEL, from)) return this.#endOfValue(valueAt); break
      case 7: if (this.#isKey(SPAN_ID, from)) return this.#endOfValue(this.#spanIdAt = valueAt); break
      case 8:
        if (this.#isKey(HOSTNAME, from)) return this.#endOfValue(valueAt)
        if (this.#isKey(TRACE_ID, from)) return this.#endOfValue(this.#traceIdAt = valueAt)
        break
      case 11: if (this.#isKey(TRACE_FLAGS, from)) return this.#endOfValue(this.#traceFlagsAt = valueAt)
    }
    this.#noteKey(from, to)
    if (to - from === this.#messageKey.length && this.#isKey(this.#messageKey, from)) return this.#writeValueField(TAG_BODY, valueAt, Infinity)
    if (to - from === this.#errorKey.length && this.#isKey(this.#errorKey, from) && this.#json[valueAt] === OPEN_BRACE) return this.#writeError(from, to, valueAt)
    return this.#writeAttribute('', from, to, valueAt)
  }

  #isKey (name, from) {
    const json = this.#json
    for (let i = 0; i < name.length; i++) if (json[from + i] !== name[i]) return false
    return true
  }

  /** Throws if the line has had the key before: the bindings of a child logger and what is logged with it may be of one name. */
  #noteKey (from, to) {
    const json = this.#json
    const keys = this.#keys
    const bit = 1 << ((to - from) * 5 + json[from] * 3 + json[to - 1])
    if ((this.#seen & bit) !== 0) {
      for (let i = 0; i < this.#keyCount; i += 2) {
        if (keys[i + 1] - keys[i] === to - from && json.compare(json, from, to, keys[i], keys[i + 1]) === 0) throw REPEATED
      }
    }
    this.#seen |= bit
    keys[this.#keyCount++] = from
    keys[this.#keyCount++] = to
  }

  /** Writes an attribute whose key is `name`, or, where that is '', stands between `from` and `to`. */
  #writeAttribute (name, from, to, valueAt) {
    // An attribute has a name.
    if (this.#attributes >= this.#limits.attributes || (name === '' && from === to)) {
      this.#dropped++
      return this.#endOfValue(valueAt)
    }
    this.#attributes++
    const writer = this.#writer
    writer.byte(TAG_ATTRIBUTE)
    const at = writer.reserve4()
    if (name === '') this.#writeString(from, to, Infinity)
    else writer.string(TAG_STRING, name)
    const end = this.#writeValueField(TAG_VALUE, valueAt, this.#limits.attributeValueLength)
    writer.length4(at)
    return end
  }

  /** Writes a field of type AnyValue; returns where the value ends. */
  #writeValueField (tag, at, lengthMax, depth = 0) {
    const writer = this.#writer
    writer.byte(tag)
    const lengthAt = writer.reserve4()
    const end = this.#writeValue(at, lengthMax, depth)
    writer.length4(lengthAt)
    return end
  }

  #writeValue (at, lengthMax, depth) {
    const code = this.#json[at]
    switch (code) {
      case QUOTE: {
        const end = this.#endOfString(at)
        this.#writeString(at + 1, end, lengthMax)
        return end + 1
      }
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (depth < DEPTH_MAX) return code === OPEN_BRACE ? this.#writeMap(at, lengthMax, depth) : this.#writeArray(at, lengthMax, depth)
        return this.#writeAsText(at, lengthMax)
      case 0x74: return this.#writeWord('true', at, 1)
      case 0x66: return this.#writeWord('false', at, 0)
      case 0x6e: return this.#writeWord('null', at, -1) // an AnyValue without a field
      default: return this.#writeNumber(at)
    }
  }

  /** Writes the text of the string between two quotes. */
  #writeString (from, to, lengthMax) {
    const writer = this.#writer
    const json = this.#json
    // A character takes a byte or more: what is short in bytes is short.
    if (to - from <= lengthMax && !this.#hasEscape(from, to)) {
      writer.byte(TAG_STRING)
      const { bytes } = writer
      let { position } = writer
      writeLength4(writer.view, position, to - from)
      position += 4
      writer.position = position + to - from
      if (to - from > LOOP_LENGTH_MAX) json.copy(bytes, position, from, to)
      else for (let i = from; i < to; i++) bytes[position++] = json[i]
    } else writer.string(TAG_STRING, cut(this.#text(from, to), lengthMax))
  }

  #hasEscape (from, to) {
    const json = this.#json
    if (to - from > LOOP_LENGTH_MAX) {
      const at = json.indexOf(BACKSLASH, from)
      return at !== -1 && at < to
    }
    for (let i = from; i < to; i++) if (json[i] === BACKSLASH) return true
    return false
  }

  #text (from, to) {
    const text = this.#json.toString('utf8', from, to)
    if (!text.includes('\\')) return text
    try {
      return JSON.parse(`"${text}"`)
    } catch {
      throw MALFORMED
    }
  }

  #writeAsText (at, lengthMax) {
    const end = this.#endOfValue(at)
    this.#writer.string(TAG_STRING, cut(this.#json.toString('utf8', at, end), lengthMax))
    return end
  }

  #writeWord (word, at, value) {
    if (this.#json.latin1Slice(at, at + word.length) !== word) throw MALFORMED
    if (value >= 0) {
      this.#writer.byte(0x10)
      this.#writer.byte(value)
    }
    return at + word.length
  }

  #writeNumber (at) {
    const json = this.#json
    const writer = this.#writer
    const start = json[at] === MINUS ? at + 1 : at
    let value = 0
    let end = start
    while (json[end] >= ZERO && json[end] <= NINE) value = value * 10 + json[end++] - ZERO
    if (end > start && end - start <= INT64_DIGITS && !isOfNumber(json[end])) {
      writer.byte(0x18)
      writer.int64(start === at ? value : -value)
      return end
    }
    while (isOfNumber(json[end])) end++
    const text = json.latin1Slice(at, end)
    const number = Number(text)
    if (text === '' || Number.isNaN(number)) throw MALFORMED
    if (/^-?\d+$/.test(text)) writer.string(TAG_STRING, text) // a BigInt, with all its digits
    else {
      writer.byte(0x21)
      writer.double(number)
    }
    return end
  }

  #writeMap (at, lengthMax, depth) {
    const json = this.#json
    const writer = this.#writer
    writer.byte(TAG_MAP)
    const lengthAt = writer.reserve4()
    at = this.#skipBlanks(at + 1)
    while (json[at] !== CLOSE_BRACE) {
      const keyEnd = this.#endOfKey(at)
      writer.byte(TAG_STRING)
      const memberAt = writer.reserve4()
      this.#writeString(at + 1, keyEnd, Infinity)
      const end = this.#writeValueField(TAG_VALUE, this.#afterColon(keyEnd), lengthMax, depth + 1)
      writer.length4(memberAt)
      at = this.#afterComma(end, CLOSE_BRACE)
    }
    writer.length4(lengthAt)
    return at + 1
  }

  #writeArray (at, lengthMax, depth) {
    const json = this.#json
    const writer = this.#writer
    writer.byte(TAG_ARRAY)
    const lengthAt = writer.reserve4()
    at = this.#skipBlanks(at + 1)
    while (json[at] !== CLOSE_BRACKET) at = this.#afterComma(this.#writeValueField(TAG_STRING, at, lengthMax, depth + 1), CLOSE_BRACKET)
    writer.length4(lengthAt)
    return at + 1
  }

  /**
   * Writes what pino's serializer makes of an error by the conventions of exceptions, and what else it has as `<key>.<member>`.
   * https://opentelemetry.io/docs/specs/semconv/exceptions/exceptions-logs/
   */
  #writeError (from, to, at) {
    const json = this.#json
    const key = this.#text(from, to)
    at = this.#skipBlanks(at + 1)
    while (json[at] !== CLOSE_BRACE) {
      const memberEnd = this.#endOfKey(at)
      const member = this.#text(at + 1, memberEnd)
      const valueAt = this.#afterColon(memberEnd)
      const known = json[valueAt] === QUOTE ? EXCEPTION_KEYS.get(member) : undefined
      at = this.#afterComma(this.#writeAttribute(known ?? `${key}.${member}`, 0, 0, valueAt), CLOSE_BRACE)
    }
    return at + 1
  }

  /** The context at the call, else the ids that the line has of its request. */
  #writeTrace (context) {
    const writer = this.#writer
    const { view } = writer
    if (context !== undefined) {
      const at = this.#writeIdHeads(context.flags)
      view.setInt32(at - 26, context.t0)
      view.setInt32(at - 22, context.t1)
      view.setInt32(at - 18, context.t2)
      view.setInt32(at - 14, context.t3)
      view.setInt32(at - 8, context.s0)
      view.setInt32(at - 4, context.s1)
      return
    }
    if (this.#traceIdAt === NOWHERE || this.#spanIdAt === NOWHERE) return
    const traceId = this.#json.latin1Slice(this.#traceIdAt + 1, this.#traceIdAt + 33)
    const spanId = this.#json.latin1Slice(this.#spanIdAt + 1, this.#spanIdAt + 17)
    if (!/^[0-9a-f]{32}$/.test(traceId) || !/^[0-9a-f]{16}$/.test(spanId)) return
    const flags = this.#traceFlagsAt === NOWHERE ? 0 : parseInt(this.#json.latin1Slice(this.#traceFlagsAt + 1, this.#traceFlagsAt + 3), 16)
    const at = this.#writeIdHeads(flags & 0xff)
    writer.bytes.hexWrite(traceId, at - 26)
    writer.bytes.hexWrite(spanId, at - 8)
  }

  /** Writes flags, and the tags of both ids, whose memory follows them; returns where the record ends. */
  #writeIdHeads (flags) {
    const writer = this.#writer
    writer.byte(0x45)
    writer.fixed32(flags)
    writer.byte(0x4a)
    writer.byte(16)
    writer.position += 16
    writer.byte(0x52)
    writer.byte(8)
    writer.position += 8
    return writer.position
  }

  // ---- reading JSON: `at` is where something begins; what reads to its end returns the place behind it. Beyond the line's end lies
  // what the scratch had before, so that ends are compared with `#end`.

  #skipBlanks (at) {
    const json = this.#json
    while (json[at] <= 0x20 && at < this.#end) at++
    return at
  }

  /** Where the closing quote of a key stands. */
  #endOfKey (at) {
    if (this.#json[at] !== QUOTE) throw MALFORMED
    return this.#endOfString(at)
  }

  #afterColon (keyEnd) {
    const at = this.#skipBlanks(keyEnd + 1)
    if (this.#json[at] !== COLON) throw MALFORMED
    return this.#skipBlanks(at + 1)
  }

  /** Where the next member or element begins, or where `close` stands. */
  #afterComma (at, close) {
    const json = this.#json
    at = this.#skipBlanks(at)
    if (json[at] === COMMA) at = this.#skipBlanks(at + 1)
    else if (json[at] !== close) throw MALFORMED
    if (at >= this.#end) throw MALFORMED
    return at
  }

  /** Where the closing quote of the string stands whose first one is at `at`. */
  #endOfString (at) {
    const json = this.#json
    const end = this.#end
    for (let i = at + 1; i < end; i++) {
      const code = json[i]
      if (code === QUOTE) return i
      if (code === BACKSLASH) i++
    }
    throw MALFORMED
  }

  #endOfValue (at) {
    const json = this.#json
    const end = this.#end
    let depth = 0
    for (; at < end; at++) {
      const code = json[at]
      if (code === QUOTE) at = this.#endOfString(at)
      else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++
      else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        if (depth-- === 0) return at
      } else if (code === COMMA && depth === 0) return at
    }
    throw MALFORMED
  }
}

/** Digits, sign, point and exponent. */
function isOfNumber (code) {
  return (code >= ZERO && code <= NINE) || code === MINUS || code === 0x2b || code === 0x2e || code === 0x65 || code === 0x45
}

module.exports = { RecordEncoder }
