'use strict'

// Cloud Run takes a process's CPU away between requests, and ends it by SIGTERM with ten seconds of grace: the spans that
// wait are sent then. Where nobody else listens, the process ends afterwards as it would have without us.

const { processState } = require('../runtime/process-state')

const SIGNAL = 'SIGTERM'

// One listener for all copies of this package in the process.
const kListener = Symbol.for('light-trace.sigterm')

/** Listens while at least one application is open. @returns {() => void} ends it */
function flushAtSigterm () {
  if (process[kListener] === undefined) {
    Object.defineProperty(process, kListener, { value: { count: 0, listener: onSigterm }, configurable: true })
    // First, to see who else listens: one that was added by `once` is gone when it has run.
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
  // Somebody who shuts down in order closes the application, and with it the tracer; until then requests may come.
  const ends = processState.openApps.all().map((tracer) => isAlone ? tracer.close() : tracer.flush())
  Promise.allSettled(ends).then(() => {
    if (!isAlone) return
    process.off(SIGNAL, onSigterm)
    process.kill(process.pid, SIGNAL)
  })
}

module.exports = { flushAtSigterm }
