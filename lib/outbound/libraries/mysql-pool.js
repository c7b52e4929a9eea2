'use strict'

// A request that waits for a connection of mysql2's pool goes on inside another request's release. Its own
// context is remembered when it begins to wait and entered again when it has the connection.

const asyncStorage = require('../../context/async-storage')
const { guarded, bug } = require('../../runtime/subscriptions')

const kWaiting = Symbol('light-trace.waiting')

function onWait (call) {
  const context = asyncStorage.active()
  if (context !== undefined) call[kWaiting] = context
}

/** The store that Node enters around the waiting callback. */
function contextOf (call) {
  return call?.[kWaiting] ?? asyncStorage.active()
}

module.exports = {
  poolSubscribers: [
    ['tracing:mysql2:pool:connect:start', guarded(onWait, bug)],
    ['tracing:mysql2:pool:connect:asyncStart', contextOf, asyncStorage.storage]
  ]
}
