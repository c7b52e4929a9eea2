'use strict'

// The start and the end of a request where metrics are on. Every request is watched to its end, sampled or not,
// traced or not: it is one listener and one clock reading more for those that have no span. Where metrics are off
// this file is not loaded.

const { INVALID_SPAN } = require('../span/non-recording-span')
const { MeasuredSpan } = require('../span/measured-span')
const { OPEN } = require('../span/recording-span')
const clock = require('../span/clock')
const { kSpan } = require('./keys')
const { isOver, sentStatus, unfinished, forgetPipelined } = require('./response-end')
const { RequestStart } = require('./request-start')

// On the raw response: the series of active requests in which it is counted down.
const kActive = Symbol('light-trace.active')

class MeasuredRequestStart extends RequestStart {
  constructor (tracer, parts) {
    const { callbacks, handler } = parts
    super(tracer, parts, onClose)
    const { metrics } = tracer
    const { activeRequests } = metrics.settings
    this.metrics = metrics
    this.handler = handler
    this.isDetailed = metrics.isDetailed

    // HOT, once per request; `this` is the raw response.
    function onClose () {
      const span = this[kSpan].takeRecord()
      if (span === null) return
      if (forgetPipelined !== null) forgetPipelined(this)
      const { reply } = span
      span.reply = null
      try {
        const status = sentStatus(this)
        const broken = unfinished(this, reply)
        if (callbacks.anyAtEnd && span.isTraced) callbacks.ending(span.apiSpan, reply, status, broken)
        if (span.endedAt === OPEN) {
          span.close(status, broken)
          metrics.server.ended(span, reply.request, reply, this)
        } else {
          endAgain(span, status, broken, reply, this)
        }
      } catch (error) { // thrown from a listener it would end the process
        tracer.report.thrown(error, 'a request was not traced to its end')
      }
      if (activeRequests && this[kActive] !== undefined) this[kActive].add(-1)
    }

    /** The application has ended the span before its request: the request counts as a whole. */
    function endAgain (span, status, broken, reply, response) {
      const record = new MeasuredSpan(span, span.start, span.route, span.peer)
      if (span.failed !== 0) record.fail(span.error)
      span.close(status, broken)
      record.close(status, broken)
      metrics.server.ended(record, reply.request, reply, response)
    }
  }

  get recordsUnsampled () { return true }

  /** Also of a request that is not sampled. HOT */
  recordOf (span) {
    return span
  }

  /** Nothing can be learned of a request without a span once its response has gone out. HOT */
  watchEnd (span, raw, reply, response) {
    if (!this.isDetailed && !span.isTraced && this.metrics.finished.watch(raw, response, this.handler, this.onClose)) span.reply = reply
    else super.watchEnd(span, raw, reply, response)
  }

  /** Without a span it counts all the same, unless its route says otherwise. */
  beginSuppressed (raw, headers, request, reply, base) {
    const context = super.beginSuppressed(raw, headers, request, reply, base)
    const route = this.routes.infoOf(request)
    if (!route.isMeasured) return context
    const record = new MeasuredSpan(INVALID_SPAN, clock.now(), route, this.peerOf(raw, headers, request))
    context.keepRecord(record)
    this.watchEnd(record, raw, reply, reply.raw)
    if (isOver(reply.raw)) this.onClose.call(reply.raw)
    return context
  }

  /** There is no Fastify request: nothing of the user's is asked. */
  endUnrouted (span, response) {
    if (span === null) return
    span.close(sentStatus(response), '')
    this.metrics.server.ended(span, null, null, response)
  }
}

/** With http.server.active_requests. */
class ActiveRequestStart extends MeasuredRequestStart {
  watchEnd (span, raw, reply, response) {
    super.watchEnd(span, raw, reply, response)
    if (span.route.isMeasured) response[kActive] = this.metrics.server.started(span.route.method, span.peer.scheme)
  }
}

/** A class of its own, because V8 makes a call through `super` dear. */
function measuredRequestStart (tracer, parts) {
  return tracer.metrics.settings.activeRequests ? new ActiveRequestStart(tracer, parts) : new MeasuredRequestStart(tracer, parts)
}

module.exports = { measuredRequestStart }
