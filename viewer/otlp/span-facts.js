'use strict'

// Reads what the viewer must know of every span when it arrives: enough to list it, count it and lay it out. The rest stays in the span's
// bytes and is read when a user opens the span (span-detail.js). All of the bytes are checked here, so that a stored span can always be
// read.
//
// Span { trace_id = 1; span_id = 2; trace_state = 3; parent_span_id = 4; name = 5; kind = 6; start = 7; end = 8; KeyValue attributes = 9;
//        Event events = 11; Link links = 13; Status status = 15; flags = 16 }

const { ProtoReader, Malformed, BYTES } = require('./proto-reader')
const { checkKeyValue } = require('./attributes')

const TRACE_ID_BYTES = 16
const SPAN_ID_BYTES = 8
const NO_TRACE = '0'.repeat(32)
const NO_SPAN = '0'.repeat(16)

// 2³² nanoseconds are 4294 milliseconds and 967,296 nanoseconds.
const MS_PER_HI = 4294
const NS_PER_HI = 967_296
const NS_PER_MS = 1_000_000

const EXCEPTION = 'exception'
const EXCEPTIONS_MAX = 16

// Keys of the old and the new conventions. The length of a key is compared first (KEY_LENGTHS), because most keys are not among these.
const FACT_BY_KEY = new Map([
  ['http.route', 'route'],
  ['http.request.method', 'method'], ['http.method', 'method'],
  ['http.response.status_code', 'code'], ['http.status_code', 'code'],
  ['url.path', 'path'], ['http.target', 'path'],
  ['error.type', 'errorType']
])

// The attributes of an exception event that are kept, each with its limit in bytes.
const EXCEPTION_FACTS = new Map([
  ['exception.type', { name: 'type', max: 200 }],
  ['exception.message', { name: 'message', max: 1000 }],
  ['exception.stacktrace', { name: 'stack', max: 8000 }]
])

const KEY_LENGTHS = new Set([...FACT_BY_KEY.keys(), ...EXCEPTION_FACTS.keys()].map((key) => key.length))

// In bytes, because the bytes are cut before they become a string. A slice() of a string of megabytes would keep the whole string in memory.
const TEXT_MAX = 1024

/** One instance is reused for all spans. */
class SpanFacts {
  constructor () {
    this.reset()
  }

  reset () {
    this.traceId = ''
    this.id = ''
    this.parent = ''
    this.name = ''
    this.kind = 0
    this.startMs = 0
    this.durationMs = 0
    this.status = 0
    this.message = ''
    this.code = 0
    this.method = ''
    this.route = ''
    this.path = ''
    this.errorType = ''
    this.events = 0
    this.links = 0
    this.exceptions = null // [{ type, message, stack, atMs }]
  }

  /** @returns {boolean} false if the span has no valid ids and cannot be shown. Throws Malformed. HOT, once per span. */
  read (bytes, from, to) {
    this.reset()
    const reader = new ProtoReader(bytes, from, to)
    let startLo = 0
    let startHi = 0
    let endLo = 0
    let endHi = 0
    for (let field = reader.next(); field !== 0; field = reader.next()) {
      switch (field) {
        case 1: this.traceId = idOf(reader, TRACE_ID_BYTES); break
        case 2: this.id = idOf(reader, SPAN_ID_BYTES); break
        case 3: reader.expect(BYTES); break
        case 4: this.parent = idOf(reader, SPAN_ID_BYTES); break
        case 5: this.name = nameOf(reader); break
        case 6: this.kind = reader.number(); break
        case 7: startLo = reader.lo; startHi = reader.hi; break
        case 8: endLo = reader.lo; endHi = reader.hi; break
        case 9: this.#attribute(reader.message()); break
        case 11: this.#event(reader.message()); break
        case 13: checkLink(reader.message()); this.links++; break
        case 15: this.#status(reader.message()); break
      }
    }
    if (this.parent === NO_SPAN) this.parent = ''
    if (this.kind > 5) this.kind = 0
    this.startMs = millisecondsOf(startHi, startLo)
    // A span without an end, or with an end before its start, gets duration 0.
    this.durationMs = Math.max(0, (endHi - startHi) * (2 ** 32 / NS_PER_MS) + (endLo - startLo) / NS_PER_MS)
    return this.traceId !== '' && this.traceId !== NO_TRACE && this.id !== '' && this.id !== NO_SPAN
  }

  #attribute (reader) {
    const { at, end } = reader
    checkKeyValue(reader)
    const fact = FACT_BY_KEY.get(keyOf(reader.over(at, end)))
    if (fact === undefined) return
    const value = shortValue(reader.over(at, end))
    if (fact === 'code') {
      if (Number(value) > 0 && Number(value) < 1000) this.code = Number(value)
    } else if (typeof value === 'string') this[fact] = value
  }

  #event (reader) {
    const exception = { type: '', message: '', stack: '', atMs: 0 }
    let name = ''
    for (let field = reader.next(); field !== 0; field = reader.next()) {
      if (field === 1) exception.atMs = millisecondsOf(reader.hi, reader.lo)
      else if (field === 2) name = nameOf(reader)
      else if (field === 3) {
        const attribute = reader.message()
        const { at, end } = attribute
        checkKeyValue(attribute)
        const fact = EXCEPTION_FACTS.get(keyOf(attribute.over(at, end)))
        if (fact !== undefined) exception[fact.name] = String(shortValue(attribute.over(at, end), fact.max) ?? '')
      }
    }
    this.events++
    if (name === EXCEPTION && (this.exceptions ??= []).length < EXCEPTIONS_MAX) this.exceptions.push(exception)
  }

  #status (reader) {
    for (let field = reader.next(); field !== 0; field = reader.next()) {
      if (field === 2) this.message = cutText(reader)
      else if (field === 3) this.status = reader.number()
    }
    if (this.status > 2) this.status = 0
  }
}

// The whole milliseconds are exact. Nanoseconds since 1970 do not fit in a double.
function millisecondsOf (hi, lo) {
  const nanos = hi * NS_PER_HI + lo
  const rest = nanos % NS_PER_MS
  return hi * MS_PER_HI + (nanos - rest) / NS_PER_MS + rest / NS_PER_MS
}

function idOf (reader, length) {
  reader.expect(BYTES)
  return reader.to - reader.from === length ? reader.hex() : ''
}

// The spans of a service have only a few dozen names. Equal names share one string.
const names = new Map()
const NAMES_MAX = 4096
const SHARED_NAME_MAX = 100

/** The memory that a text takes in addition to the bytes that it was read from: at most two bytes per character. */
function ownBytes (text) {
  return text.length > SHARED_NAME_MAX ? 2 * text.length : 0
}

function nameOf (reader, max) {
  const name = cutText(reader, max)
  if (name.length > SHARED_NAME_MAX) return name
  const shared = names.get(name)
  if (shared !== undefined) return shared
  if (names.size >= NAMES_MAX) names.clear()
  names.set(name, name)
  return name
}

function cutText (reader, max = TEXT_MAX) {
  reader.expect(BYTES)
  return reader.bytes.utf8Slice(reader.from, Math.min(reader.to, reader.from + max))
}

function keyOf (reader) {
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) return KEY_LENGTHS.has(reader.to - reader.from) ? reader.bytes.latin1Slice(reader.from, reader.to) : ''
  }
}

// The value of a KeyValue if it is text or an int.
function shortValue (reader, max) {
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field !== 2) continue
    const value = reader.message()
    for (let type = value.next(); type !== 0; type = value.next()) {
      if (type === 1) return nameOf(value, max)
      if (type === 3) return value.number()
    }
  }
}

function checkLink (reader) {
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field <= 3) reader.expect(BYTES)
    else if (field === 4) checkKeyValue(reader.message())
  }
}

module.exports = { SpanFacts, Malformed, EXCEPTION, idOf, millisecondsOf, ownBytes }
