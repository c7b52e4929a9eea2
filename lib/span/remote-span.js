'use strict'

// A caller's span, as the API wants it in a context: known by its ids alone.

const { IncomingContext, copyTrace } = require('../context/trace-context')
const { parseTraceparent } = require('../context/traceparent')
const { cleanTracestate } = require('../context/tracestate')
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

/** The span that the texts of W3C headers stand for; null where they are not valid. */
function remoteSpanOf ({ traceparent, tracestate }) {
  const incoming = new IncomingContext()
  if (typeof traceparent !== 'string' || !parseTraceparent(traceparent, incoming)) return null
  incoming.tracestate = cleanTracestate(tracestate)
  return new RemoteSpan(incoming)
}

module.exports = { RemoteSpan, remoteSpanOf }
