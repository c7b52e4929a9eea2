'use strict'

// What all calls that leave the process have in common: whose request makes them, and the mark that ties the
// span to the library's own object for the call.
//
// Several apps share a process, and channels are the process's: the tracer of a call is that of the request
// that is active; for work without a request, that of the active span.

const { SPAN_KEY, REQUEST_KEY, SUPPRESS_KEY } = require('../context/keys')
const { processState } = require('../runtime/process-state')

// On the object that a library uses for one call. Symbol.for: with two copies of this package in the
// process, the first to see a call marks it, and it gets one span.
const kCall = Symbol.for('light-trace.call')

const { openApps } = processState

const KIND_INTERNAL = 0
const KIND_SERVER = 1
const KIND_CLIENT = 2
const KIND_PRODUCER = 3

/** The context that is active for the code that makes the call, or undefined. HOT */
function activeContext () {
  const { managers } = openApps
  for (let i = 0; i < managers.length; i++) { // nearly always one
    const context = managers[i].active()
    if (context !== undefined && context.getValue(SPAN_KEY) !== undefined) return context
  }
  return undefined
}

/** The tracer that a call in `context` belongs to; null where there is no trace to belong to. HOT */
function tracerIn (context) {
  if (context === undefined) return null
  const request = context.getValue(REQUEST_KEY)
  if (request !== undefined) return request.tracer
  const span = context.getValue(SPAN_KEY)
  if (span === undefined || span === null) return null
  return openApps.all().find(({ pipeline }) => pipeline !== null && pipeline === span.pipeline) ?? firstTracer()
}

/** For work that came from outside and belongs to no app in particular. */
function firstTracer () {
  return openApps.first() ?? null
}

/** Whether spans are switched off in `context`: an ignored request, or traffic of our own. */
function isSuppressed (context) {
  return context.getValue(SUPPRESS_KEY) === true
}

module.exports = { kCall, KIND_INTERNAL, KIND_SERVER, KIND_CLIENT, KIND_PRODUCER, activeContext, tracerIn, firstTracer, isSuppressed }
