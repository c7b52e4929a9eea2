'use strict'

// A process whose work is done and which still has spans queued: nothing of ours keeps it alive, so it is
// about to exit. One `beforeExit` listener for all exporters gives each of them one flush.

// One for all copies of this package in the process, as a test runner that reloads modules makes them.
const kWaiting = Symbol.for('light-trace.exitFlush')

module.exports = { flushAtExit, forgetAtExit }

const waiting = process[kWaiting] ?? new Set()
if (process[kWaiting] === undefined) Object.defineProperty(process, kWaiting, { value: waiting })

// `exporter.flushBeforeExit()` is called at most once for each time this is.
function flushAtExit (exporter) {
  if (waiting.size === 0) process.on('beforeExit', waiting.listener = onBeforeExit)
  waiting.add(exporter)
}

function forgetAtExit (exporter) {
  if (waiting.delete(exporter) && waiting.size === 0) process.off('beforeExit', waiting.listener)
}

// The flush holds the process, and when it is over Node emits `beforeExit` again: by then nobody waits, or
// only who got new spans since.
function onBeforeExit () {
  for (const exporter of [...waiting]) {
    forgetAtExit(exporter)
    exporter.flushBeforeExit()
  }
}
