'use strict'

// node:sqlite publishes a query when it is over (Node 26.8 and later), with its values written into the text.

const { kCall, activeContext, tracerIn, isSuppressed } = require('../calls')
const clock = require('../../span/clock')
const { SqlDescriptor } = require('./databases')
const { DIALECTS } = require('./statement')
const { read } = require('./read')

const callDescriptor = new SqlDescriptor('sqlite', DIALECTS.sqlite, 'sql', () => '', false)

let endedAt = 0 // of the query that is being published

callDescriptor.startedAt = (call) => {
  const nanos = Number(read(call, 'duration'))
  return nanos > 0 && nanos < 86400e9 ? endedAt - nanos / 1e6 : endedAt
}

function onQuery (call) {
  if (call === null || typeof call !== 'object' || call[kCall] !== undefined) return
  const context = activeContext()
  const tracer = tracerIn(context)
  if (!tracer?.outbound?.libraries || isSuppressed(context)) return
  Reflect.set(call, kCall, null)
  endedAt = clock.now()
  const span = tracer.startCall(callDescriptor, call, context)
  if (span !== null) span.end(endedAt)
}

module.exports = { onQuery }
