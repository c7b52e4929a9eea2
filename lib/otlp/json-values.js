'use strict'

// What the JSON of all signals has in common. The mapping is protobuf's with OTLP's own rules: ids in hex, 64-bit numbers
// as decimal strings, enums as numbers.
// https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding

const { toHrTime } = require('../span/clock')

/** The Resource message. JSON.stringify leaves out what is undefined. */
function resourceOf ({ attributes, entityRefs = [] }) {
  return {
    attributes: attributesOf(Object.keys(attributes).flatMap((key) => [key, attributes[key]])),
    entityRefs: entityRefs.length === 0 ? undefined : entityRefs.map(entityRefOf)
  }
}

function entityRefOf ({ schemaUrl, type, idKeys, descriptionKeys }) {
  return { schemaUrl: schemaUrl === '' ? undefined : clean(schemaUrl), type, idKeys: idKeys.map(clean), descriptionKeys: descriptionKeys.map(clean) }
}

/** The InstrumentationScope message. */
function scopeOf ({ name, version }) {
  return { name: clean(name), version: clean(version) }
}

/** A flat list as KeyValue messages. */
function attributesOf (list) {
  const attributes = []
  for (let i = 0; i < list.length; i += 2) attributes.push({ key: clean(list[i]), value: valueOf(list[i + 1]) })
  return attributes
}

function valueOf (value) {
  switch (typeof value) {
    case 'string': return { stringValue: clean(value) }
    case 'boolean': return { boolValue: value }
    case 'number': return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: double(value) }
    default: return objectOf(value)
  }
}

function objectOf (value) {
  if (Array.isArray(value)) return { arrayValue: { values: Array.from(value, valueOf) } }
  if (value === null || typeof value !== 'object') return {} // an AnyValue without a value is how OTLP says "empty"
  if (ArrayBuffer.isView(value)) return { bytesValue: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64') }
  return { kvlistValue: { values: Object.keys(value).map((key) => ({ key: clean(key), value: valueOf(value[key]) })) } }
}

/** JSON has no NaN and no infinities: protobuf writes their names. */
function double (value) {
  return Number.isFinite(value) ? value : String(value)
}

// A lone surrogate is no text in UTF-8, and an escape that many readers refuse.
function clean (text) {
  return text === undefined ? undefined : text.toWellFormed()
}

/** Monotonic milliseconds as nanoseconds since the epoch. */
function nanos (ms) {
  const [seconds, rest] = toHrTime(ms)
  return `${seconds}${String(rest).padStart(9, '0')}`
}

module.exports = { resourceOf, scopeOf, attributesOf, double, clean, nanos }
