'use strict'

// KeyValue { string key = 1; AnyValue value = 2 }
// AnyValue { string_value = 1; bool = 2; int = 3; double = 4; ArrayValue { values = 1 } = 5; KeyValueList { values = 1 } = 6; bytes = 7 }

const { ProtoReader, BYTES } = require('./proto-reader')

// Deeper than real values. A value with 10,000 levels must not end the process.
const DEPTH_MAX = 64
const TOO_DEEP = '[nested too deep]'

const TYPES = ['empty', 'string', 'bool', 'int', 'double', 'array', 'kvlist', 'bytes']

/**
 * @returns {{ key: string, type: string, value: any }} an int is a number or, beyond 2⁵³, text; bytes are base64; an array is a
 *   list of { type, value }, a kvlist is a list of { key, type, value }
 */
function readKeyValue (reader, depth = 0) {
  const attribute = { key: '', type: 'empty', value: null }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) attribute.key = reader.text()
    else if (field === 2) Object.assign(attribute, readAnyValue(reader.message(), depth))
  }
  return attribute
}

function readAnyValue (reader, depth) {
  let type = 0
  let value = null
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field >= TYPES.length) continue
    type = field
    value = valueOf(field, reader, depth)
  }
  return typeof value === 'string' && type > 4 && type < 7 ? { type: 'string', value } : { type: TYPES[type], value }
}

function valueOf (field, reader, depth) {
  switch (field) {
    case 1: return reader.text()
    case 2: return reader.number() !== 0
    case 3: return plainInt(reader.int64())
    case 4: return reader.double()
    case 5: return depth >= DEPTH_MAX ? TOO_DEEP : readList(reader.message(), (item) => readAnyValue(item, depth + 1))
    case 6: return depth >= DEPTH_MAX ? TOO_DEEP : readList(reader.message(), (item) => readKeyValue(item, depth + 1))
    default:
      reader.expect(BYTES)
      return reader.bytes.base64Slice(reader.from, reader.to)
  }
}

function plainInt (int) {
  const number = Number(int)
  return Number.isSafeInteger(number) ? number : String(int)
}

function readList (reader, read) {
  const list = []
  for (let field = reader.next(); field !== 0; field = reader.next()) if (field === 1) list.push(read(reader.message()))
  return list
}

/** Converts a value to plain JavaScript. A kvlist becomes an object without a prototype, because a key may be __proto__. */
function plain ({ type, value }) {
  if (type === 'array') return value.map(plain)
  if (type === 'double' && !Number.isFinite(value)) return String(value)
  if (type !== 'kvlist') return value
  const map = Object.create(null)
  for (const entry of value) map[entry.key] = plain(entry)
  return map
}

/** Throws Malformed if a KeyValue cannot be read. It builds no values. */
function checkKeyValue (reader, depth = 0) {
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) reader.expect(BYTES)
    else if (field === 2) checkAnyValue(reader.message(), depth)
  }
}

// The wire type of each field of AnyValue.
const WIRES = [-1, 2, 0, 0, 1, 2, 2, 2]

function checkAnyValue (reader, depth) {
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field >= WIRES.length) continue
    reader.expect(WIRES[field])
    if ((field !== 5 && field !== 6) || depth >= DEPTH_MAX) continue
    const list = reader.message()
    for (let inner = list.next(); inner !== 0; inner = list.next()) {
      if (inner !== 1) continue
      if (field === 5) checkAnyValue(list.message(), depth + 1)
      else checkKeyValue(list.message(), depth + 1)
    }
  }
}

/** Reads the attributes of a Resource (field 1) or an InstrumentationScope (field 3). */
function readAttributes (bytes, number) {
  const reader = new ProtoReader(bytes)
  const attributes = []
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === number) attributes.push(readKeyValue(reader.message()))
  }
  return attributes
}

/** Reads only the attributes of a span whose key is in `keys`. @returns {Map<string, any>} */
function readSomeAttributes ({ bytes, from, to }, keys) {
  const reader = new ProtoReader(bytes, from, to)
  const found = new Map()
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field !== 9) continue // Span { KeyValue attributes = 9 }
    const attribute = reader.message()
    const { at, end } = attribute
    if (attribute.next() === 1 && !keys.has(bytes.latin1Slice(attribute.from, attribute.to))) continue // the value is not read, because it may be long
    const { key, value } = readKeyValue(attribute.over(at, end))
    found.set(key, value)
  }
  return found
}

module.exports = { readSomeAttributes, readKeyValue, readAnyValue, checkKeyValue, checkAnyValue, readAttributes, plain }
