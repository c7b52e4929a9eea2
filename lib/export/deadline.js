'use strict'

// The ends of waiting: a deadline for a promise of the user's, and the last flush of a process that is about to exit.

const { writeSync } = require('node:fs')
const { counted } = require('../runtime/report')
const { setTimeout, clearTimeout } = require('../runtime/timers')

/**
 * Waits for a foreign promise, for so long and no longer. Never rejects.
 * @param {() => unknown} start may throw, return nothing, or a promise that never settles
 * @returns {Promise<undefined | Error>} what went wrong; undefined if it was done in time
 */
async function settleWithin (start, timeoutMs) {
  let timer
  const deadline = new Promise((resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    await Promise.race([start(), deadline])
  } catch (error) {
    return error ?? new Error('rejected')
  } finally {
    clearTimeout(timer)
  }
}

// Exporters whose spans wait. Shared by all copies of this package in the process, as a test runner that reloads modules makes them.
const kWaiting = Symbol.for('light-trace.exitFlush')
const waiting = process[kWaiting] ?? new Set()
if (process[kWaiting] === undefined) Object.defineProperty(process, kWaiting, { value: waiting })

// Flushes an exporter before the process exits: nothing of ours keeps alive a process whose work is done. One `beforeExit`
// listener serves all exporters, and calls `exporter.flushBeforeExit()` at most once for each call of this.
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

// The flush holds the process, and when it is over Node emits `beforeExit` again: by then only exporters with new spans wait.
function onBeforeExit () {
  for (const exporter of [...waiting]) {
    forgetAtExit(exporter)
    exporter.flushBeforeExit()
  }
}

// Says what a crash loses. Synchronous, to the standard error: a logger or a process warning would come too late.
function onCrash () {
  if (process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()) return // the process goes on
  const lost = new Map()
  for (const { noun = 'span', lostInCrash = 0 } of waiting) if (lostInCrash > 0) lost.set(noun, (lost.get(noun) ?? 0) + lostInCrash)
  if (lost.size === 0) return
  try {
    const what = [...lost].map(([noun, count]) => counted(count, noun)).join(' and ')
    writeSync(2, `(light-trace) [LT_WARN_LOSS] the process crashes, with ${what} not delivered\n`)
  } catch {} // the standard error is closed
}

module.exports = { settleWithin, flushAtExit, forgetAtExit }
