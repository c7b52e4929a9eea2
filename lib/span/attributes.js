'use strict'

// Attributes as a flat list, [key, value, key, value, …]: no object per span, no hidden-class churn, and
// written in order. Values are checked and cut when they are set, so that nothing of the caller's is
// kept, and nothing of the caller's code runs when the span is written.

const KEY_LENGTH_MAX = 1024
// The specification has no limit for arrays; an array is one attribute and must not be a way round ours.
const ARRAY_LENGTH_MAX = 1024

/**
 * Sets one attribute, replacing an earlier value of the same key.
 * @returns {boolean} false when it was refused: a bad key or value, or `countMax` attributes are there already
 */
function setAttribute (list, key, value, countMax, lengthMax) {
  if (typeof key !== 'string' || key === '') return false
  const clean = cleanValue(value, lengthMax)
  if (clean === undefined) return false
  const name = key.length > KEY_LENGTH_MAX || !key.isWellFormed() ? cut(key, KEY_LENGTH_MAX) : key
  for (let i = 0; i < list.length; i += 2) {
    if (list[i] === name) {
      list[i + 1] = clean
      return true
    }
  }
  if (list.length >= countMax * 2) return false
  list.push(name, clean)
  return true
}

/** Sets each own property of `attributes`; returns how many were refused. Never throws. */
function setAttributes (list, attributes, countMax, lengthMax) {
  let refused = 0
  for (const key of ownKeys(attributes)) {
    if (!setAttribute(list, key, read(attributes, key), countMax, lengthMax)) refused++
  }
  return refused
}

/**
 * A value as it may be kept: a string, number or boolean, or an array of one of these (null and
 * undefined are allowed as elements). Long strings are cut. Undefined: not an attribute value.
 */
function cleanValue (value, lengthMax) {
  switch (typeof value) {
    case 'string': return value.length > lengthMax || !value.isWellFormed() ? cut(value, lengthMax) : value
    case 'number':
    case 'boolean': return value
    case 'object': return value === null ? undefined : cleanArray(value, lengthMax)
    default: return undefined
  }
}

function cleanArray (value, lengthMax) {
  try {
    if (!Array.isArray(value)) return undefined
    const length = Math.min(value.length, ARRAY_LENGTH_MAX)
    const clean = new Array(length)
    let type = ''
    for (let i = 0; i < length; i++) {
      const element = value[i]
      if (element === null || element === undefined) {
        clean[i] = null
        continue
      }
      const kind = typeof element
      if (kind === 'object' || (type !== '' && kind !== type)) return undefined
      type = kind
      const kept = cleanValue(element, lengthMax)
      if (kept === undefined) return undefined
      clean[i] = kept
    }
    return clean
  } catch {
    return undefined // a Proxy, or a getter that throws
  }
}

/** Cuts at `lengthMax` UTF-16 units, never through a pair, and mends lone surrogates. */
function cut (text, lengthMax) {
  if (text.length <= lengthMax) return text.toWellFormed()
  const last = text.charCodeAt(lengthMax - 1)
  const end = last >= 0xd800 && last <= 0xdbff ? lengthMax - 1 : lengthMax
  // The copy through a Buffer lets go of the long original; a slice would keep all of it alive.
  return Buffer.from(text.slice(0, end).toWellFormed()).toString()
}

function ownKeys (object) {
  if (object === null || typeof object !== 'object') return []
  try {
    return Object.keys(object)
  } catch {
    return []
  }
}

function read (object, key) {
  try {
    return object[key]
  } catch {
    return undefined
  }
}

/** The list as an object for the SDK's processors and exporters: a plain one, on which they may call `hasOwnProperty`. */
function toObject (list) {
  const object = {}
  for (let i = 0; i < list.length; i += 2) {
    if (list[i] === '__proto__') Object.defineProperty(object, list[i], { value: list[i + 1], writable: true, enumerable: true, configurable: true })
    else object[list[i]] = list[i + 1]
  }
  return object
}

module.exports = { setAttribute, setAttributes, cleanValue, cut, toObject }
