'use strict'

// Clocks and timers, taken at load: fake ones of a test suite must neither stop our export nor see our timers among their own.

const { performance } = require('node:perf_hooks')

const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate } = globalThis

module.exports = {
  setTimeout,
  clearTimeout,
  setInterval,
  clearInterval,
  setImmediate,
  // For every deadline: the wall clock may be stepped by an hour while we wait.
  monotonicNow: performance.now.bind(performance),
  // Only where the wall clock is what is asked for: the date in a Retry-After.
  wallNow: Date.now
}
