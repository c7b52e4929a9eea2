'use strict'

// What may be read off whatever was thrown. Every read is guarded: it is somebody else's object.

const { cut } = require('./attributes')

const TYPE_LENGTH_MAX = 128
const MESSAGE_LENGTH_MAX = 4096

// Errors that a library's call ended with -> what its span says of them. Where the request fails with the same error its
// span is as specific: a database's code is in fields that only the library's own table knows.
const typesByLibrary = new WeakMap()

function rememberErrorType (error, type) {
  if (error !== null && typeof error === 'object') typesByLibrary.set(error, type)
}

/** A low-cardinality identifier for `error.type`: what a library's call said of it, the error's code, else its class. */
function errorType (error) {
  const known = typesByLibrary.get(error)
  if (known !== undefined) return known
  const code = text(error, 'code')
  if (/^[A-Z][A-Z0-9_]{2,63}$/.test(code)) return code
  return errorName(error)
}

function errorName (error) {
  const name = text(error, 'name')
  if (name !== '') return cut(name, TYPE_LENGTH_MAX)
  return error === null ? 'null' : typeof error
}

/** The attributes of an `exception` event, as a flat list. */
function exceptionAttributes (error, lengthMax) {
  if (error === null || (typeof error !== 'object' && typeof error !== 'function')) {
    return ['exception.type', errorName(error), 'exception.message', cut(String(error), Math.min(lengthMax, MESSAGE_LENGTH_MAX))]
  }
  const list = ['exception.type', cut(text(error, 'code'), TYPE_LENGTH_MAX) || errorName(error)]
  const message = text(error, 'message')
  if (message !== '') list.push('exception.message', cut(message, Math.min(lengthMax, MESSAGE_LENGTH_MAX)))
  const stack = text(error, 'stack')
  if (stack !== '') list.push('exception.stacktrace', cut(stack, lengthMax))
  return list
}

function text (object, key) {
  try {
    const value = object[key]
    if (typeof value === 'string') return value
    return typeof value === 'number' ? String(value) : ''
  } catch {
    return ''
  }
}

/** Such a list as the API's Exception, for spans that are not ours: what was thrown has been read once, and need not run its code again. */
function exceptionOf (list) {
  const read = (key) => list[list.indexOf(key) + 1]
  return {
    name: read('exception.type'),
    message: list.includes('exception.message') ? read('exception.message') : '',
    stack: list.includes('exception.stacktrace') ? read('exception.stacktrace') : undefined
  }
}

module.exports = { errorType, rememberErrorType, errorName, exceptionAttributes, exceptionOf }
