'use strict'

// Whether what was thrown in a stage or a handler is an error of the server's.

const { errorType } = require('../span/exception')
const { STATUS_ERROR } = require('../span/recording-span')

/** An error is the server's from 500 on, as it is for the request's span. */
function failWith (span, reply, error) {
  if (statusOf(reply, error) < 500) return
  span.setAttribute('error.type', errorType(error))
  span.setStatus({ code: STATUS_ERROR })
}

/** As Fastify will set it, which it does after onError. */
function statusOf (reply, error) {
  if (reply.statusCode >= 400) return reply.statusCode
  try {
    const status = error.statusCode || error.status
    return status >= 400 ? status : 500
  } catch {
    return 500
  }
}

module.exports = { failWith }
