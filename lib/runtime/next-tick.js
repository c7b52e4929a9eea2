'use strict'

// Keeps the record of one process.nextTick, so that the others stay cheap.
//
// Read from outside, by perf and forced collections (docs/overhead.md): Node makes these records by an object literal with
// computed keys. V8 remembers for each of its keys the one hidden class that it was added to, weakly: a major garbage
// collection that finds no record alive forgets it, and from then on each key of each record is a call into V8's runtime, for
// as long as the process lives. An HTTP request makes several records: once it has happened every request of a Fastify app
// costs some microseconds more, traced or not, and a tracer, which allocates, only makes it happen sooner. One record that
// lives keeps the class alive.

const { executionAsyncResource } = require('node:async_hooks')

let record = null
let isAsked = false

/** Once per process; later calls do nothing. */
function retainTickRecord () {
  if (isAsked) return
  isAsked = true
  process.nextTick(onTick)
}

function onTick () {
  const resource = executionAsyncResource()
  if (resource.callback !== onTick) return // somebody's own nextTick: fake timers of a test
  record = resource
  // Its async context, which may be a request's, must not live as long.
  for (const symbol of Object.getOwnPropertySymbols(record)) {
    if (typeof record[symbol] === 'object') record[symbol] = undefined
  }
}

module.exports = { retainTickRecord }
