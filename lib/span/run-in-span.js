'use strict'

// The end of a span that stands for a piece of work: with the function, or with the promise that it returns.

const { STATUS_ERROR } = require('./recording-span')
const { errorType, exceptionAttributes, exceptionOf } = require('./exception')

const VALUE_LENGTH_MAX = 16384 // for spans that do not say

/**
 * @param {Span} span
 * @param {{ call (context, fn, argument) }} contextManager
 * @param {Context} context active while `fn` runs
 * @param {(argument) => T} fn what it throws is recorded and passed on
 * @returns {T}
 */
function runInSpan (span, contextManager, context, fn, argument) {
  let result
  try {
    result = contextManager.call(context, fn, argument)
  } catch (error) {
    fail(span, error)
    throw error
  }
  if (result === null || typeof result !== 'object' || typeof result.then !== 'function') {
    span.end()
    return result
  }
  return result.then((value) => {
    span.end()
    return value
  }, (error) => {
    fail(span, error)
    throw error
  })
}

// The span may be an SDK's, which reads the error in its own way: it must not throw in place of the user's.
function fail (span, error) {
  try {
    const exception = exceptionOf(exceptionAttributes(error, span.pipeline?.limits.attributeValueLength ?? VALUE_LENGTH_MAX))
    span.recordException(exception)
    span.setAttribute('error.type', errorType(error))
    span.setStatus({ code: STATUS_ERROR, message: exception.message })
    span.end()
  } catch {}
}

module.exports = { runInSpan }
