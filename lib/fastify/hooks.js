'use strict'

// Traces a request through Fastify, with one hook at the start, one listener at the end, and one hook for errors.
//
//   onRequest  read the caller's headers, sample, start the span, enter the context: request-start.js
//   onError    remember what was thrown
//   'close'    of the raw response, emitted once whether the response was complete, broken off or never sent: end the span

const { Routes } = require('./routes.js')
const { RequestStart } = require('./request-start.js')
const { Callbacks, appendServerTiming } = require('./callbacks.js')
const { isUsual, sentStatus, unfinished, prepareEnd, endOthers, endLast } = require('./response-end.js')
const { startedOf } = require('../features.js')
const { kContext, kStage, ownHook, giveTrace, giveTraceToFrameworkErrors } = require('./keys.js')

/** The hooks that trace the requests of `app`. `noTrace` is the `request.trace` of requests that are not traced. */
function fastifyHooks (app, tracer, noTrace) {
  const { settings, report, observer, parts } = tracer
  const atFirstRequest = [readyRoute]
  if (settings.replyHeader === 'server-timing') atFirstRequest.push(appendServerTiming)
  const routes = new Routes(tracer, atFirstRequest)
  const callbacks = new Callbacks(tracer)
  const follower = startedOf(app, tracer)
  let onClose = endRequest
  for (const part of parts.values()) onClose = part.wrapEnd?.(onClose) ?? onClose
  const requests = new RequestStart(tracer, { routes, callbacks, follower, onClose })
  for (const part of parts.values()) part.follow?.(requests, app)
  giveTraceToFrameworkErrors(app, noTrace)

  return { onRequest: ownHook(lightTraceOnRequest, 'request'), onError: ownHook(lightTraceOnError, 'request') }

  function readyRoute (hooks, request, options) {
    for (const part of parts.values()) part.atFirstRequest?.(hooks, request, options)
  }

  // HOT, once per request.
  function lightTraceOnRequest (request, reply, done) {
    const response = reply.raw
    if (response[kContext] !== undefined) { // light-trace is also registered in an outer scope
      done()
      return
    }
    enter(request, response, begin(request, reply, response), done)
  }

  function begin (request, reply, response) {
    try {
      return requests.begin(request, reply)
    } catch (error) {
      report.failed('LT_WARN_BUG', 'a request was not traced', error)
      return requests.beginFailed(request, response)
    }
  }

  function enter (request, response, context, done) {
    const { raw } = request
    if (!isUsual(raw, response)) prepareEnd(context, raw, response, onClose)
    else if (context.record !== null) response.on('close', onClose)
    tracer.enter(context, done)
  }

  // HOT, once per recorded or measured request; `this` is the raw response.
  function endRequest () {
    const context = this[kContext]
    const { ending } = context
    if (ending !== null) endOthers.call(this)
    const record = context.takeRecord()
    if (record === null) return
    const { reply } = record
    record.reply = null
    let status = 0
    let broken = ''
    try {
      status = sentStatus(this)
      broken = unfinished(this, reply)
      if (callbacks.anyAtEnd && record.isTraced) callbacks.ending(record.apiSpan, reply)
      if (observer === null) record.close(status, broken)
      else observer.server.close(record, status, broken, reply)
    } catch (error) { // an error thrown from a listener would end the process
      report.failed('LT_WARN_BUG', 'a request was not traced to its end', error)
    }
    if (ending !== null) endLast(context, ending, status, broken)
    if (observer !== null) observer.server.left(this)
  }

  function lightTraceOnError (request, reply, error, done) {
    giveTrace(request, noTrace)
    reply.raw[kContext]?.caught(error)
    const stages = request[kStage]
    if (stages === undefined) done()
    else stages.leave(request, reply, error, done)
  }
}

module.exports = { fastifyHooks }
