'use strict'

// A caller's span out of the texts of W3C headers.

const { IncomingContext } = require('../context/trace-context')
const { parseTraceparent } = require('../context/traceparent')
const { cleanTracestate } = require('../context/tracestate')
const { RemoteSpan } = require('./non-recording-span')

module.exports = { remoteSpanOf }

/** The span that the texts stand for; null where they are not valid. */
function remoteSpanOf ({ traceparent, tracestate }) {
  const incoming = new IncomingContext()
  if (typeof traceparent !== 'string' || !parseTraceparent(traceparent, incoming)) return null
  incoming.tracestate = cleanTracestate(tracestate)
  return new RemoteSpan(incoming)
}
