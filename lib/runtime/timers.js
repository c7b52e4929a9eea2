'use strict'

// Clocks and timers, taken at load: fake ones of a test suite must neither stop our export nor see our timers among their own.

const { performance } = require('node:perf_hooks')
const { executionAsyncResource } = require('node:async_hooks')

const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate } = globalThis

// Keeps the record of one process.nextTick, so that the others stay cheap.
//
// Node makes these records by an object literal with computed keys. V8 holds their hidden classes weakly: a major garbage
// collection that finds no record alive forgets them, and from then on each request of a Fastify app, traced or not, costs some
// microseconds more for as long as the process lives (bench/upstream/README.md). One record that lives keeps them.

let isAsked = false
/** @type {{ callback?: Function } | null} */
let record = null

/** Keeps one record. Later calls do nothing. */
function retainTickRecord () {
  if (isAsked) return
  isAsked = true
  process.nextTick(onTick)
}

function onTick () {
  /** @type {{ callback?: Function }} */
  const resource = executionAsyncResource()
  if (resource.callback !== onTick) return // another nextTick, such as the fake timers of a test
  record = resource
  // Its async context, which may be a request's, must not live as long.
  for (const symbol of Object.getOwnPropertySymbols(record)) {
    if (typeof record[symbol] === 'object') record[symbol] = undefined
  }
}

module.exports = {
  setTimeout,
  clearTimeout,
  setInterval,
  clearInterval,
  setImmediate,
  // For every deadline: the wall clock may be stepped by an hour while we wait.
  monotonicNow: performance.now.bind(performance),
  // Only where the wall clock is what is asked for: the date in a Retry-After.
  wallNow: Date.now,
  retainTickRecord
}
