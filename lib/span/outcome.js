'use strict'

// The outcome of a request. Spans and metrics determine it when the response has ended. `keep`, accounts and held log lines read it.
// Decision D13 (docs/decisions.md) defines what counts as an error.

const { errorType } = require('./attributes.js')
const { STATUS_OK, STATUS_ERROR } = require('./recording-span.js')

// Outcomes, named like the `keep` settings that select them.
const GOOD = ''
const FAILED = 'errors'
const LEFT = 'aborted' // the client closed the connection before the response ended. Any client can cause it. Also the `error.type`

// The error state of a request's record.
const NOT_FAILED = 0
const CAUGHT = 1 // Fastify caught an error
const RECORDED = 2 // the error is recorded as an event of the span
const NOT_OURS = 3 // set at the end: the client closed the connection

/** Whether the response alone is an error: 5xx, or incomplete. HOT, once per measured request, and per recorded one that was answered 4xx or 5xx. */
function isBroken (httpStatus, unfinished) { return unfinished !== '' || httpStatus >= 500 }

/**
 * @param {number} httpStatus the status that was sent, 0 if none was
 * @param {string} unfinished '' for a complete response, else the `error.type` of an incomplete one
 * @param {number | undefined} spanStatus the status that the application set on the span; it takes precedence
 */
function outcomeOf (httpStatus, unfinished, spanStatus) {
  const isBad = spanStatus === STATUS_ERROR || (spanStatus !== STATUS_OK && isBroken(httpStatus, unfinished))
  if (!isBad) return GOOD
  return unfinished === LEFT ? LEFT : FAILED
}

/** The `error.type` of a request with a 5xx or incomplete response. */
function errorTypeOf (httpStatus, unfinished, { failed, error }) {
  if (unfinished !== '') return unfinished
  return failed === NOT_FAILED ? String(httpStatus) : errorType(error)
}

module.exports = { GOOD, FAILED, LEFT, NOT_FAILED, CAUGHT, RECORDED, NOT_OURS, isBroken, outcomeOf, errorTypeOf }
