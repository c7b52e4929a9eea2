'use strict'

// What became of a request. Its span and its metrics ask when the response is over; `keep`, accounts and held lines read the outcome.
// Decision D13 (docs/decisions.md) says what counts as an error.

const { errorType } = require('./attributes.js')
const { STATUS_OK, STATUS_ERROR } = require('./recording-span.js')

// Outcomes, named as the settings of `keep` that ask for them.
const GOOD = ''
const FAILED = 'errors'
const LEFT = 'aborted' // by its client before the response was there, which any stranger can do. Also its `error.type`

// What a request's record knows of an error.
const NOT_FAILED = 0
const CAUGHT = 1 // by Fastify
const RECORDED = 2 // as an event of the span
const NOT_OURS = 3 // at its end: the client left

/** Whether the response alone is an error: 5xx, or not sent to its end. HOT, once per measured request, and per recorded one that was answered 4xx or 5xx. */
function isBroken (httpStatus, unfinished) { return unfinished !== '' || httpStatus >= 500 }

/**
 * @param {number} httpStatus that went out, 0 where none did
 * @param {string} unfinished '' for a whole response, else the `error.type` of a broken one
 * @param {number | undefined} spanStatus what the application has set on its span comes first
 */
function outcomeOf (httpStatus, unfinished, spanStatus) {
  const isBad = spanStatus === STATUS_ERROR || (spanStatus !== STATUS_OK && isBroken(httpStatus, unfinished))
  if (!isBad) return GOOD
  return unfinished === LEFT ? LEFT : FAILED
}

/** The `error.type` of a request that was answered 5xx, or not to the end. */
function errorTypeOf (httpStatus, unfinished, { failed, error }) {
  if (unfinished !== '') return unfinished
  return failed === NOT_FAILED ? String(httpStatus) : errorType(error)
}

module.exports = { GOOD, FAILED, LEFT, NOT_FAILED, CAUGHT, RECORDED, NOT_OURS, isBroken, outcomeOf, errorTypeOf }
