'use strict'

// The twin of a span that is not recorded, for a request whose duration counts all the same: what metrics say
// of a request is the same for sampled and unsampled ones. Made only where metrics are on.

const { NonRecordingSpan } = require('./non-recording-span')
const { errorType } = require('./exception')
const { now } = require('./clock')
const { OPEN } = require('./recording-span')

class MeasuredSpan extends NonRecordingSpan {
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
    this.error = undefined
    this.failed = false
    this.reply = null
  }

  fail (error) {
    this.error = error
    this.failed = true
  }

  /** See ServerSpan.close. HOT, once per unsampled request where metrics are on. */
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
