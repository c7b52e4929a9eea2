'use strict'

// The W3C's cases for the parsers alone. test/fastify/w3c.test.js runs them with a service.

const { test } = require('tap')
const { IncomingContext, TraceContext, copyTrace } = require('../../lib/context/trace-context')
const { newTraceId, newSpanId } = require('../../lib/context/ids')
const { parseTraceparent } = require('../../lib/context/traceparent')
const { cleanTracestate } = require('../../lib/context/tracestate')
const { cases } = require('../support/w3c-cases')
const { checkStep } = require('../support/w3c-check')

for (const { name, steps } of cases) {
  test(`W3C parsers: ${name}`, async (t) => {
    for (const step of steps) checkStep(t, step, handOn(joined(step.headers), step.calls ?? 1))
  })
}

/** Joins headers as Node does, but leaves white space for our parsers to trim. */
function joined (headers) {
  const object = {}
  for (const [name, value] of headers) {
    const key = name.toLowerCase()
    object[key] = object[key] === undefined ? value : `${object[key]}, ${value}`
  }
  return object
}

function handOn ({ traceparent, tracestate }, calls) {
  const incoming = new IncomingContext()
  if (parseTraceparent(traceparent, incoming)) incoming.tracestate = cleanTracestate(tracestate)
  else newTraceId(incoming)
  const server = childContext(Object.assign(new TraceContext(), incoming))
  return Array.from({ length: calls }, () => {
    const outgoing = childContext(server)
    const headers = [['traceparent', outgoing.traceparent]]
    return outgoing.tracestate === '' ? headers : [...headers, ['tracestate', outgoing.tracestate]]
  })
}

/** The ids of a child span: the same trace id and a new span id. */
function childContext (parent) {
  const child = new TraceContext()
  copyTrace(parent, child)
  newSpanId(child)
  return child
}
