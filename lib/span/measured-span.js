'use strict'

// The records of requests that have no span of ours to end, and whose duration counts all the same. Made only where
// metrics are on.

const { copyTrace, SAMPLED } = require('../context/trace-context')
const { newSpanId } = require('../context/ids')
const { NonRecordingSpan } = require('./non-recording-span')
const { errorType } = require('./exception')
const { now } = require('./clock')
const { OPEN } = require('./recording-span')

/** Of a request that is not sampled: the span that the application sees, and its record, in one object. */
class UnsampledRecord extends NonRecordingSpan {
  /**
   * @param {number} start milliseconds on the monotonic clock
   * @param {RouteInfo} route
   * @param {PeerInfo} peer
   */
  // HOT, once per unsampled request where metrics are on. Budget: 1 object.
  constructor (start, route, peer) {
    super()
    this.start = start
    this.endedAt = OPEN
    this.route = route
    this.peer = peer
    this.httpStatus = 0
    this.errorType = ''
    this.error = undefined // what was thrown, until the end decides whether it counts
    this.failed = false
    this.reply = null // Fastify's, until the end
  }

  /** Whether there is a span, too. */
  get isTraced () { return false }

  fail (error) {
    this.error = error
    this.failed = true
  }

  /** By the rules of ServerSpan.close. HOT, once per unsampled request where metrics are on. */
  close (httpStatus, unfinished) {
    this.httpStatus = httpStatus
    if (unfinished !== '' || httpStatus >= 500) {
      this.errorType = unfinished !== '' ? unfinished : this.failed ? errorType(this.error) : String(httpStatus)
    }
    this.error = undefined
    this.endedAt = now()
  }
}

/** Under a new id in the trace of `incoming`. HOT, once per unsampled request where metrics are on. */
function unsampledRecord (incoming, route, peer) {
  const record = new UnsampledRecord(incoming.start, route, peer)
  // Not copyTrace: V8 knows the classes of one place better than those of all.
  record.t0 = incoming.t0
  record.t1 = incoming.t1
  record.t2 = incoming.t2
  record.t3 = incoming.t3
  record.flags = incoming.flags & ~SAMPLED
  record.tracestate = incoming.tracestate
  newSpanId(record)
  return record
}

/** Of a request whose span is somebody else's, or which was switched off. */
class MeasuredSpan extends UnsampledRecord {
  /** @param {Span} inner the request's span, which the application sees */
  constructor (inner, start, route, peer) {
    super(start, route, peer)
    this.inner = inner
    copyTrace(inner, this)
    this.s0 = inner.s0
    this.s1 = inner.s1
  }

  get apiSpan () { return this.inner.apiSpan }
  /** It has something to end. */
  isRecording () { return true }
  get isTraced () { return this.inner.isRecording() }

  fail (error) {
    super.fail(error)
    this.inner.fail(error)
  }
}

module.exports = { MeasuredSpan, unsampledRecord }
