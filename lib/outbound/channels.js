'use strict'

// Spans from a TracingChannel, whoever publishes it. A publisher may leave events out, publish them twice, or
// end after the user's callback has run, so:
//
//   start        the span begins; its attributes are read
//   error        ends it, with the error
//   end          ends it when the work was synchronous: there is a result or an error
//   asyncStart   ends it; asyncEnd too, for publishers without the former
//
// The span hangs on the channel's context object and ends once. Spans are leaves: no context is entered.

const { kCall, activeContext, tracerIn, isSuppressed, bug } = require('./calls')
const { guarded } = require('../runtime/subscriptions')
const { errorType } = require('../span/exception')

const STATUS_ERROR = 2

const adapters = new Map() // channel name → its subscribers; one set for all apps

/**
 * @param {string} name of the TracingChannel
 * @param {(() => object) | null} prepare called when the channel first speaks, in a request or not
 * @returns {Array<[string, Function]>} for `subscribe`. What a span says is the row that the app of the
 *   active request has for the channel, see Outbound.rowOf.
 */
function adapterOf (name, prepare) {
  let subscribers = adapters.get(name)
  if (subscribers === undefined) {
    let isReady = prepare === null
    const onStart = (call) => {
      if (!isReady) isReady = prepare() !== undefined
      start(name, call)
    }
    subscribers = [
      [`tracing:${name}:start`, guarded(onStart, bug)],
      [`tracing:${name}:end`, guarded(onEnd, bug)],
      [`tracing:${name}:asyncStart`, guarded(finish, bug)],
      [`tracing:${name}:asyncEnd`, guarded(finish, bug)],
      [`tracing:${name}:error`, guarded(finish, bug)]
    ]
    adapters.set(name, subscribers)
  }
  return subscribers
}

/** What hangs on a call while it runs. */
class Running {
  constructor (span, row) {
    this.span = span
    this.row = row
  }
}

// HOT, once per call of a library.
function start (name, call) {
  if (call === null || typeof call !== 'object' || call[kCall] !== undefined) return
  const context = activeContext()
  const tracer = tracerIn(context)
  if (tracer === null || tracer.outbound === null || isSuppressed(context)) return
  const row = tracer.outbound.rowOf(name)
  if (row === undefined || !row.wants(call)) return
  if (!mark(call)) return
  const span = tracer.startCall(row, call, context)
  if (span === null) return
  if (row.started !== undefined) row.started(span, call, tracer, context)
  if (span.isRecording() || row.ended !== undefined) call[kCall] = new Running(span, row)
}

/** False where the object is frozen or refuses: there is nowhere to keep the span. */
function mark (call) {
  try {
    call[kCall] = null // by assignment: Reflect.set is several times as slow
    return true
  } catch {
    return false
  }
}

function onEnd (call) {
  if (call !== null && typeof call === 'object' && ('result' in call || 'error' in call)) finish(call)
}

function finish (call) {
  const running = call?.[kCall]
  if (!(running instanceof Running)) return
  call[kCall] = null
  const { span, row } = running
  if (row.ended !== undefined) row.ended(span, call)
  if (span.isRecording()) {
    if ('error' in call) fail(span, row, call.error)
    else if (row.result !== undefined) row.result(span, call)
  }
  span.end()
}

/** Without the error's message: a database's repeats the values that were removed from the statement. */
function fail (span, row, error) {
  const code = row.errorCode === undefined ? '' : row.errorCode(error)
  if (code !== '') span.setAttribute('db.response.status_code', code)
  span.setAttribute('error.type', code === '' ? errorType(error) : code)
  span.setStatus({ code: STATUS_ERROR })
}

module.exports = { adapterOf, fail }
