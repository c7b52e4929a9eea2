'use strict'

// What is done where a platform freezes or ends the process.
//
//   Vercel      freezes it when the response is out, unless the request has asked it to wait. It is asked from the request's own
//               context, which Vercel keeps under a symbol; `@vercel/functions` reads the same
//   Cloud Run   takes its CPU away between requests, and ends it by SIGTERM with ten seconds of grace: the spans that wait are
//               sent then
//   AWS Lambda  has a trace of its own, whose span is the parent of the invocation's

const { IncomingContext, SAMPLED } = require('../context/trace-context')
const { parseTraceparent } = require('../context/traceparent')
const { processState } = require('../runtime/process-state')
const { RemoteSpan } = require('../span/non-recording-span')

const CONTEXTS = [Symbol.for('@vercel/request-context'), Symbol.for('@next/request-context')]

const SIGNAL = 'SIGTERM'
// One listener for all copies of this package in the process.
const kListener = Symbol.for('light-trace.sigterm')

// _X_AMZN_TRACE_ID, for each invocation:
//
//   Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=…
//          trace id: 8 + 24 digits                  span id
//
// https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
const ROOT = /(?:^|;)\s*Root=1-([0-9a-f]{8})-([0-9a-f]{24})(?:;|$)/
const PARENT = /(?:^|;)\s*Parent=([0-9a-f]{16})(?:;|$)/
const IS_SAMPLED = /(?:^|;)\s*Sampled=1(?:;|$)/
const LENGTH_MAX = 1024

/** The platform's `waitUntil(promise)` for the running request, or null. */
function platformWaitUntil () {
  for (const key of CONTEXTS) {
    try {
      const holder = globalThis[key]
      const context = typeof holder?.get === 'function' ? holder.get() : undefined
      if (typeof context?.waitUntil === 'function') return (promise) => context.waitUntil(promise)
    } catch {
      // The platform's own code failed: there is nothing to wait by.
    }
  }
  return null
}

/**
 * Holds the process until the spans of each request are delivered. The hook is added after light-trace's own, so that a
 * response's span has ended when its 'close' comes here.
 * @param {FastifyInstance} app
 * @param {Tracer} tracer
 */
function holdUntilDelivered (app, tracer) {
  app.addHook('onRequest', (request, reply, done) => {
    const waitUntil = platformWaitUntil()
    if (waitUntil !== null) waitUntil(closed(reply.raw).then(() => tracer.drained()).then(() => tracer.flush()).catch(() => {}))
    done()
  })
}

function closed (response) {
  return new Promise((resolve) => { response.once('close', resolve) })
}

/**
 * Sends what waits at SIGTERM, while at least one application is open. Where nobody else listens, the process ends afterwards as
 * it would have without us.
 * @returns {() => void} ends it
 */
function flushAtSigterm () {
  if (process[kListener] === undefined) {
    Object.defineProperty(process, kListener, { value: { count: 0, listener: onSigterm }, configurable: true })
    // Before all others, to count them: one that was added by `once` is gone when it has run.
    process.prependListener(SIGNAL, onSigterm)
  }
  const state = process[kListener]
  state.count++
  let isOver = false
  return () => {
    if (isOver || --state.count > 0) return
    isOver = true
    process.off(SIGNAL, state.listener)
    delete process[kListener]
  }
}

function onSigterm () {
  const isAlone = process.listenerCount(SIGNAL) === 1
  // Another listener will close the application, and with it the tracer; until then requests may come.
  const ends = processState.openApps.all().map((tracer) => isAlone ? tracer.close() : tracer.flush())
  Promise.allSettled(ends).then(() => {
    if (!isAlone) return
    process.off(SIGNAL, onSigterm)
    process.kill(process.pid, SIGNAL)
  })
}

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

module.exports = { platformWaitUntil, holdUntilDelivered, flushAtSigterm, xrayParent }
