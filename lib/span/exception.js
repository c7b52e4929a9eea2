'use strict'

// What is read off an error, or whatever else was thrown. Every read is guarded: it may be any object.

const { cut, isArray, read, toObject } = require('./attributes')

const TYPE_LENGTH_MAX = 128
const MESSAGE_LENGTH_MAX = 4096
const STACK_LENGTH_MAX = 16384 // on an SDK's span, whose limits are unknown

// The error of a library's call -> the `error.type` of its span. A request that fails with the same error has the same type: a
// database's code is in fields that only the library's own table knows.
const typesByLibrary = new WeakMap()

function rememberErrorType (error, type) {
  if (error !== null && typeof error === 'object') typesByLibrary.set(error, type)
}

/** A low-cardinality identifier for `error.type`: that of a library's call, the error's code, else its class. */
function errorType (error) {
  const known = typesByLibrary.get(error)
  if (known !== undefined) return known
  const code = text(error, 'code')
  if (/^[A-Z][A-Z0-9_]{2,63}$/.test(code)) return code
  return sqlStateOf(error) || errorName(error)
}

/** A SQLSTATE of PostgreSQL, or ''. Only the server's errors have a severity; a socket's code may look like one (EPIPE). */
function sqlStateOf (error) {
  const code = text(error, 'code')
  return text(error, 'severity') !== '' && /^[0-9A-Z]{5}$/.test(code) ? code : ''
}

function errorName (error) {
  const name = text(error, 'name')
  if (name !== '') return cut(name, TYPE_LENGTH_MAX)
  return error === null ? 'null' : typeof error
}

/** The attributes of an `exception` event, as a flat list. */
function exceptionAttributes (error, lengthMax = STACK_LENGTH_MAX) {
  if (error === null || (typeof error !== 'object' && typeof error !== 'function')) {
    return ['exception.type', errorName(error), 'exception.message', cut(String(error), Math.min(lengthMax, MESSAGE_LENGTH_MAX))]
  }
  const list = ['exception.type', cut(text(error, 'code'), TYPE_LENGTH_MAX) || errorName(error)]
  const problems = read(error, 'validation')
  if (isArray(problems)) return [...list, 'exception.message', cut(validationText(error, problems), Math.min(lengthMax, MESSAGE_LENGTH_MAX))]
  const message = text(error, 'message')
  if (message !== '') list.push('exception.message', cut(message, Math.min(lengthMax, MESSAGE_LENGTH_MAX)))
  const stack = text(error, 'stack')
  if (stack !== '') list.push('exception.stacktrace', cut(stack, lengthMax))
  return list
}

const PROBLEMS_MAX = 4

/** Part, path and rule of what Fastify's validation found, `body/age type`: what a validator writes itself may hold the value. */
function validationText (error, problems) {
  const part = text(error, 'validationContext') || 'request'
  try {
    return problems.slice(0, PROBLEMS_MAX).map((problem) => problemText(part, problem)).join(', ')
  } catch { // a path with a symbol, a list that is a proxy
    return part
  }
}

function problemText (part, problem) {
  const path = read(problem, 'path') // of other validators than ajv, which has `instancePath`
  const place = Array.isArray(path) ? `/${path.join('/')}` : text(problem, 'instancePath')
  const missing = text(read(problem, 'params'), 'missingProperty')
  const rule = text(problem, 'keyword') || text(problem, 'code') || text(problem, 'type')
  return `${part}${place}${missing === '' ? '' : `/${missing}`} ${rule}`.trim()
}

function text (object, key) {
  const value = read(object, key)
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : ''
}

/** Such a list as the API's Exception, for an SDK's span: the error was read once, and its code need not run again. */
function exceptionOf (list) {
  const values = toObject(list)
  return { name: values['exception.type'], message: values['exception.message'] ?? '', stack: values['exception.stacktrace'] }
}

module.exports = { errorType, sqlStateOf, rememberErrorType, exceptionAttributes, exceptionOf }
