'use strict'

// The record of a request whose span is not ours to end (it is not sampled, switched off, or somebody else's) and
// whose duration counts all the same. Made only where metrics are on.

const { copyTrace } = require('../context/trace-context')
const { NonRecordingSpan } = require('./non-recording-span')
const { errorType } = require('./exception')
const { now } = require('./clock')
const { OPEN } = require('./recording-span')

class MeasuredSpan extends NonRecordingSpan {
  /**
   * @param {Span} inner the request's span, which the application sees
   * @param {number} start milliseconds on the monotonic clock
   * @param {RouteInfo} route
   * @param {PeerInfo} peer
   */
  // HOT, once per unsampled request where metrics are on. Budget: 1 object.
  constructor (inner, start, route, peer) {
    super()
    this.inner = inner
    this.start = start
    this.endedAt = OPEN
    this.route = route
    this.peer = peer
    this.httpStatus = 0
    this.errorType = ''
    this.error = undefined
    this.failed = false
    this.reply = null
    copyTrace(inner, this)
    this.s0 = inner.s0
    this.s1 = inner.s1
  }

  get apiSpan () { return this.inner.apiSpan }
  /** It has something to end. */
  isRecording () { return true }
  /** Whether there is a span, too. */
  get isTraced () { return this.inner.isRecording() }

  fail (error) {
    this.error = error
    this.failed = true
    this.inner.fail(error)
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

module.exports = { MeasuredSpan }
