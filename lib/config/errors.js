'use strict'

// Errors that `register` and route registration throw. The code is API and never changes its meaning;
// the message is for people and may. docs/errors.md lists every code, and a test compares.

const { printable } = require('../runtime/printable')

class LightTraceError extends Error {
  constructor (code, message) {
    super(message)
    this.code = code
  }

  // On the prototype as Node's own errors have it, so that `name` is no own property of each error.
  get name () {
    return 'LightTraceError'
  }
}

module.exports = { LightTraceError, optionUnknown, resembles, optionInvalid, describeValue }

function optionUnknown (path, known) {
  const { nearestName } = require('./nearest-name') // who has made no mistake starts faster without
  const name = path.slice(path.lastIndexOf('.') + 1)
  const nearest = nearestName(name, known)
  const hint = nearest === undefined ? `known are ${known.join(', ')}` : `did you mean \`${path.slice(0, path.lastIndexOf('.') + 1)}${nearest}\`?`
  return new LightTraceError('LT_ERR_OPTION_UNKNOWN', `unknown option \`${printable(path)}\`: ${hint}`)
}

/** Whether an unknown name may be a typing error of one that is known. */
function resembles (name, known) {
  return require('./nearest-name').nearestName(name, known) !== undefined
}

// `received` is a text: the caller says `describeValue(value)`, or only the type where the value may be a secret.
function optionInvalid (path, expected, received) {
  return new LightTraceError('LT_ERR_OPTION_INVALID',
    `\`${printable(path)}\` must be ${expected}, received ${received}`)
}

// What came, in a few words and without running any of its code.
function describeValue (value) {
  if (typeof value === 'string') return `'${printable(value, 64)}'`
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'symbol') return 'a symbol'
  if (typeof value !== 'object' || value === null) return `${value}`
  return Array.isArray(value) ? 'an array' : 'an object'
}
