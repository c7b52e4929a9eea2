'use strict'

// Attributes as a flat list, [key, value, key, value, ...]: no object per span, no hidden-class churn, and
// written in order. Values are checked and cut when they are set, see any-value.js; only texts may still have lone surrogates.

const { cleanValue, cut, setOwn, KEY_LENGTH_MAX } = require('./any-value')

/**
 * Sets one attribute, replacing an earlier value of the same key.
 * @param {{ attributeCut () }} [owner] is called if a key or a value loses a part for another reason than a limit of the options
 * @returns {boolean} false when it was refused: a bad key or value, or `countMax` attributes are there already
 */
function setAttribute (list, key, value, countMax, lengthMax, owner) {
  if (typeof key !== 'string' || key === '') return false
  const clean = cleanValue(value, lengthMax, owner)
  return clean !== undefined && setClean(list, key, clean, countMax, owner)
}

/** The same with a value that was cleaned. */
function setClean (list, key, clean, countMax, owner) {
  const name = key.length > KEY_LENGTH_MAX || !key.isWellFormed() ? cutKey(key, owner) : key
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
function setAttributes (list, attributes, countMax, lengthMax, owner) {
  let refused = 0
  for (const key of ownKeys(attributes)) {
    if (!setAttribute(list, key, read(attributes, key), countMax, lengthMax, owner)) refused++
  }
  return refused
}

function cutKey (key, owner) {
  if (key.length > KEY_LENGTH_MAX) owner?.attributeCut()
  return cut(key, KEY_LENGTH_MAX)
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
    const value = list[i + 1]
    setOwn(object, list[i], typeof value === 'string' ? value.toWellFormed() : value)
  }
  return object
}

module.exports = { setAttribute, setAttributes, setClean, ownKeys, read, cleanValue, cut, toObject }
