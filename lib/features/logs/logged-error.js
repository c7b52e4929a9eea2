'use strict'

// What an error on a line is called. The line is written by the time that we see it, and what a serializer or redaction has left out of it
// must not be read off the error. So the error says its type only where the line shows what that is made of.

const { attempt } = require('../../runtime/report.js')
const { read, className, exceptionType } = require('../../span/attributes.js')

const SOURCES = ['code', 'name']

/**
 * @typedef {object} LoggedError
 * @property {string} type its `exception.type`, as spans have it
 * @property {string} written what pino's serializer calls it
 * @property {string | undefined} source the member of the line that says the type; undefined where pino writes none
 */

/** @returns {LoggedError | null} null where no error was logged */
function loggedError (error) {
  if (error === null || typeof error !== 'object') return null
  const type = exceptionType(error)
  return { type, written: className(error), source: SOURCES.find((key) => isWritten(error, key) && isOf(type, read(error, key))) }
}

/** The type of an error as the line has it, by its own members. @param {LoggedError | null} [logged] */
function typeOnLine (line, logged = null) {
  if (logged !== null && line.type === logged.written && (logged.source === undefined || isOf(logged.type, line[logged.source]))) return logged.type
  return Object.hasOwn(line, 'code') && typeof line.code === 'string' && line.code !== '' ? line.code : line.type
}

/** Whether pino writes the member: it does so with all that `for in` finds. */
function isWritten (error, key) {
  return attempt(() => {
    for (const member in error) if (member === key) return true
    return false
  })
}

/** Whether that text, which may be longer, is the type. */
function isOf (type, value) { return typeof value === 'string' && value.startsWith(type) }

module.exports = { loggedError, typeOnLine }
