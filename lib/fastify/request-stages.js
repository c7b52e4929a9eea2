'use strict'

// The spans of one request's stages, of which one may be open.

const { KIND_INTERNAL } = require('../outbound/calls')
const { SPAN_KEY } = require('../context/keys')
const { kStage } = require('./keys')
const { failWith } = require('./stage-failure')

const callDescriptor = { kind: KIND_INTERNAL, name: (stage) => stage, attributes: () => [] }

/** Opaque: it hangs on the request, see keys.js. */
class RequestStages {
  #tracer
  #overdue
  #span = null
  #isAfterResponse = false

  constructor (tracer, overdue) {
    this.#tracer = tracer
    this.#overdue = overdue
  }

  /** Runs `done` in a new span. */
  enter (stage, request, reply, error, done) {
    const { trace } = request
    this.#end(reply, error)
    const span = trace.suppressed ? null : this.#tracer.startCall(callDescriptor, stage, trace)
    if (span === null || !span.isRecording()) {
      done()
      return
    }
    this.#span = span
    // These hooks may well outlive the response, and nobody hears of one that fails.
    this.#isAfterResponse = stage === 'onResponse'
    if (this.#isAfterResponse) this.#overdue.add(span)
    this.#tracer.contextManager.with(trace.setValue(SPAN_KEY, span), done)
  }

  /** Ends the stage that runs, if one does, and goes on in the request's own context. */
  leave (request, reply, error, done) {
    if (this.#span === null) {
      done()
      return
    }
    this.#end(reply, error)
    this.#tracer.contextManager.with(request.trace, done)
  }

  onClose () {
    if (!this.#isAfterResponse) this.#end()
  }

  #end (reply, error) {
    const span = this.#span
    if (span === null) return
    this.#span = null
    if (this.#isAfterResponse) this.#overdue.delete(span)
    if (error !== undefined) failWith(span, reply, error)
    if (span.isRecording()) span.end()
  }
}

/**
 * Ends the stage that runs, and begins another.
 * @param {Overdue | null} overdue for stages that outlive the response
 * @param {unknown} error with which the one that runs ends
 */
function enterStage (tracer, overdue, stage, request, reply, error, done) {
  if (request.trace === undefined) { // a bare request of Fastify's own, see bare-request.js
    done()
    return
  }
  let stages = request[kStage]
  if (stages === undefined) {
    stages = request[kStage] = new RequestStages(tracer, overdue)
    reply.raw.once('close', () => stages.onClose())
  }
  stages.enter(stage, request, reply, error, done)
}

module.exports = { enterStage }
