'use strict'

// The type of an error on a line. The line is already written when we see it, and what a serializer or redaction has removed must not be
// read from the error itself. So the error's own type is used only if the line contains the member that the type comes from.

const { attempt } = require('../../runtime/report.js')
const { read, className, exceptionType } = require('../../span/attributes.js')

const SOURCES = ['code', 'name']

/**
 * @typedef {object} LoggedError
 * @property {string} type its `exception.type`, the same as on spans
 * @property {string} written the type that pino's serializer writes
 * @property {string | undefined} source the member of the line that contains the type; undefined if pino writes none
 */

/** @returns {LoggedError | null} null if no error was logged */
function loggedError (error) {
  if (error === null || typeof error !== 'object') return null
  const type = exceptionType(error)
  return { type, written: className(error), source: SOURCES.find((key) => isWritten(error, key) && isOf(type, read(error, key))) }
}

/** The type of an error on a line, from the members on the line. @param {LoggedError | null} [logged] */
function typeOnLine (line, logged = null) {
  if (logged !== null && line.type === logged.written && (logged.source === undefined || isOf(logged.type, line[logged.source]))) return logged.type
  return Object.hasOwn(line, 'code') && typeof line.code === 'string' && line.code !== '' ? line.code : line.type
}

/** Whether pino writes the member: it writes everything that `for in` finds. */
function isWritten (error, key) {
  return attempt(() => {
    for (const member in error) if (member === key) return true
    return false
  })
}

/** Whether a text is the type. The text may be longer, since types are cut. */
function isOf (type, value) { return typeof value === 'string' && value.startsWith(type) }

module.exports = { loggedError, typeOnLine }
