'use strict'

// Attribute values, checked, copied and cut when they are set: nothing of the caller's is kept, and nothing of the
// caller's code runs when the span is written. They are what OTLP's AnyValue holds: strings, numbers, booleans, bytes,
// null, and arrays and maps of these.
// https://opentelemetry.io/docs/specs/otel/common/#anyvalue

const { isProxy } = require('node:util/types')

// The specification has no limit for these; one attribute must not be a way round ours.
const MEMBERS_MAX = 1024 // of an array or a map
const TOTAL_MAX = 4096 // of all arrays and maps in one value
const DEPTH_MAX = 64
const KEY_LENGTH_MAX = 1024

/**
 * A value as it may be kept. Long strings and bytes are cut. Undefined: not an attribute value.
 * @param {unknown} value
 * @param {number} lengthMax of strings and bytes
 * @param {{ attributeCut () }} [owner] is called if members are left out
 */
function cleanValue (value, lengthMax, owner) {
  switch (typeof value) {
    case 'string': return value.length > lengthMax || !value.isWellFormed() ? cut(value, lengthMax) : value
    case 'number':
    case 'boolean': return value
    case 'object': return value === null ? null : cleanObject(value, lengthMax, owner)
    default: return undefined
  }
}

function cleanObject (value, lengthMax, owner) {
  const cleaner = new Cleaner(lengthMax)
  const clean = cleaner.object(value, 1)
  if (cleaner.isCut && clean !== undefined) owner?.attributeCut()
  return clean
}

class Cleaner {
  constructor (lengthMax) {
    this.lengthMax = lengthMax
    this.left = TOTAL_MAX
    this.isCut = false
  }

  /** Undefined: none, or one that throws when it is read. */
  object (value, depth) {
    if (isProxy(value)) return undefined // its traps are somebody's code
    try {
      if (Array.isArray(value)) return this.array(value, depth)
      if (value instanceof Uint8Array) return this.bytes(value)
      return isMap(value) ? this.map(value, depth) : undefined
    } catch {
      return undefined
    }
  }

  bytes ({ buffer, byteOffset, length }) {
    return new Uint8Array(buffer, byteOffset, Math.min(length, this.lengthMax)).slice()
  }

  array (value, depth) {
    const clean = []
    for (let i = 0; i < value.length; i++) {
      if (this.isFull(clean.length)) break
      const element = value[i]
      const kept = element === undefined ? null : this.member(element, depth)
      if (kept === undefined) return undefined
      clean.push(kept)
    }
    return clean
  }

  map (value, depth) {
    const clean = {}
    let count = 0
    for (const key of Object.keys(value)) {
      if (this.isFull(count)) break
      const member = value[key]
      const kept = this.member(member, depth)
      if (kept !== undefined) {
        setOwn(clean, this.key(key), kept)
        count++
      } else if (member !== undefined) { // a function, a Date: one of many, not worth the whole map
        this.isCut = true
      }
    }
    return clean
  }

  member (value, depth) {
    if (typeof value !== 'object' || value === null) return cleanValue(value, this.lengthMax)
    if (depth < DEPTH_MAX) return this.object(value, depth + 1)
    this.isCut = true
    return null
  }

  key (key) {
    if (key.length <= KEY_LENGTH_MAX) return key.toWellFormed()
    this.isCut = true
    return cut(key, KEY_LENGTH_MAX)
  }

  isFull (count) {
    if (count < MEMBERS_MAX && this.left-- > 0) return false
    this.isCut = true
    return true
  }
}

/** A plain object. A Date, a Map, a class of somebody's: its own members do not say what it is. */
function isMap (value) {
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}

/** By definition where assignment would run the setter of a prototype. */
function setOwn (object, key, value) {
  // Assigned, `__proto__` would be another object's prototype, and where prototypes are frozen `toString` would throw.
  if (key in object) Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
  else object[key] = value
}

/** Cuts at `lengthMax` UTF-16 units, never through a pair, and mends lone surrogates. */
function cut (text, lengthMax) {
  if (text.length <= lengthMax) return text.toWellFormed()
  const last = text.charCodeAt(lengthMax - 1)
  const end = last >= 0xd800 && last <= 0xdbff ? lengthMax - 1 : lengthMax
  // The copy through a Buffer lets go of the long original; a slice would keep all of it alive.
  return Buffer.from(text.slice(0, end).toWellFormed()).toString()
}

module.exports = { cleanValue, cut, setOwn, KEY_LENGTH_MAX }
