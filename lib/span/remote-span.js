'use strict'

// A caller's span, as the API wants it in a context: known by its ids alone.

const { copyTrace } = require('../context/trace-context')
const { NonRecordingSpan } = require('./non-recording-span')

class RemoteSpan extends NonRecordingSpan {
  /**
   * @param {{ t0, t1, t2, t3, p0, p1, flags, tracestate }} incoming
   * @param {boolean} [remote] false for a parent in this process, as inject() may have one
   */
  constructor (incoming, remote = true) {
    super()
    copyTrace(incoming, this)
    this.s0 = incoming.p0
    this.s1 = incoming.p1
    this.remote = remote
  }

  spanContext () {
    const context = super.spanContext()
    if (this.remote) context.isRemote = true
    return context
  }
}

module.exports = { RemoteSpan }
