'use strict'

// A process whose work is done and which still has spans queued: nothing of ours keeps it alive, so it is
// about to exit. One `beforeExit` listener for all exporters gives each of them one flush.
//
// A process that crashes cannot wait: one line says how many spans are lost.

const { writeSync } = require('node:fs')

// One for all copies of this package in the process, as a test runner that reloads modules makes them.
const kWaiting = Symbol.for('light-trace.exitFlush')

module.exports = { flushAtExit, forgetAtExit }

const waiting = process[kWaiting] ?? new Set()
if (process[kWaiting] === undefined) Object.defineProperty(process, kWaiting, { value: waiting })

// `exporter.flushBeforeExit()` is called at most once for each time this is.
function flushAtExit (exporter) {
  if (waiting.size === 0) {
    process.on('beforeExit', waiting.listener = onBeforeExit)
    process.on('uncaughtExceptionMonitor', waiting.crashListener = onCrash)
  }
  waiting.add(exporter)
}

function forgetAtExit (exporter) {
  if (!waiting.delete(exporter) || waiting.size > 0) return
  process.off('beforeExit', waiting.listener)
  process.off('uncaughtExceptionMonitor', waiting.crashListener)
}

// The flush holds the process, and when it is over Node emits `beforeExit` again: by then nobody waits, or
// only who got new spans since.
function onBeforeExit () {
  for (const exporter of [...waiting]) {
    forgetAtExit(exporter)
    exporter.flushBeforeExit()
  }
}

// Synchronous, to the standard error: a logger or a process warning would come too late.
function onCrash () {
  if (process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()) return // it goes on
  let spans = 0
  for (const exporter of waiting) spans += exporter.lostInCrash
  if (spans === 0) return
  try {
    writeSync(2, `(light-trace) [LT_WARN_LOSS] the process crashes with ${spans} spans that were not delivered\n`)
  } catch {
    // Nobody reads it.
  }
}
