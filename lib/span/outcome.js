'use strict'

// What became of a request, decided once, when its response is over: its span, metrics, `keep`, accounts and held lines read it
// here. Decision D13 (docs/decisions.md) says what counts as an error.

const { errorType } = require('./attributes.js')
const { STATUS_OK, STATUS_ERROR } = require('./recording-span.js')

// Outcomes, named as the settings of `keep` that ask for them.
const GOOD = ''
const FAILED = 'errors'
const LEFT = 'aborted' // by its client before the response was there, which any stranger can do. Also its `error.type`

// What a record knows of an error: nothing, that Fastify caught one, that it is recorded already; and at the end, that the client left.
const NOT_FAILED = 0
const CAUGHT = 1
const RECORDED = 2
const NOT_OURS = 3

/**
 * @param {number} httpStatus that went out, 0 where none did
 * @param {string} unfinished '' for a whole response, else the `error.type` of a broken one
 * @param {number | undefined} said the status of its span. What the application says comes first
 */
function outcomeOf (httpStatus, unfinished, said) {
  const isBad = said === STATUS_ERROR || (said !== STATUS_OK && (httpStatus >= 500 || unfinished !== ''))
  if (!isBad) return GOOD
  return unfinished === LEFT ? LEFT : FAILED
}

/** The `error.type` of a request that was answered 5xx, or not to the end. */
function errorTypeOf (httpStatus, unfinished, { failed, error }) {
  if (unfinished !== '') return unfinished
  return failed === NOT_FAILED ? String(httpStatus) : errorType(error)
}

module.exports = { GOOD, FAILED, LEFT, NOT_FAILED, CAUGHT, RECORDED, NOT_OURS, outcomeOf, errorTypeOf }
