'use strict'

// The trace that AWS Lambda itself is in, as it stands in _X_AMZN_TRACE_ID for each invocation:
//
//   Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=…
//          trace id: 8 + 24 digits                    span id
//
// https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader

const { IncomingContext, SAMPLED } = require('../context/trace-context')
const { parseTraceparent } = require('../context/traceparent')
const { RemoteSpan } = require('../span/non-recording-span')

const ROOT = /(?:^|;)\s*Root=1-([0-9a-f]{8})-([0-9a-f]{24})(?:;|$)/
const PARENT = /(?:^|;)\s*Parent=([0-9a-f]{16})(?:;|$)/
const IS_SAMPLED = /(?:^|;)\s*Sampled=1(?:;|$)/
const LENGTH_MAX = 1024

/**
 * The invocation's own span as a parent, or null. Where X-Ray does not sample, which is so on every function for which
 * it is not switched on, there is none: its "no" is no decision about our traces.
 * @param {string | undefined} text
 * @returns {RemoteSpan | null}
 */
function xrayParent (text) {
  if (typeof text !== 'string' || text.length > LENGTH_MAX || !IS_SAMPLED.test(text)) return null
  const root = ROOT.exec(text)
  const parent = PARENT.exec(text)
  if (root === null || parent === null) return null
  const incoming = new IncomingContext()
  if (!parseTraceparent(`00-${root[1]}${root[2]}-${parent[1]}-00`, incoming)) return null
  incoming.flags = SAMPLED
  return new RemoteSpan(incoming)
}

module.exports = { xrayParent }
