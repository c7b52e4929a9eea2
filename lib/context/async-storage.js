'use strict'

// The one AsyncLocalStorage of the process, and the only place that asks which kind it is.
//
// On AsyncContextFrame (Node 24 and later, or behind a flag before) `enterWith` shows the same code the same value as
// `run`, at half the price, and is gone when the request's own call stack is. On async_hooks (Node 20 and 22) it would
// stay on the connection's resource, and whatever runs before our hook on the next request of the connection would read
// this client's live store: there `run` is used.

const { AsyncLocalStorage, AsyncResource } = require('node:async_hooks')
const { processState } = require('../runtime/process-state')

const { storage } = processState

const usesAsyncHooks = staysOnResource()

/** Whether what `enterWith` has set in a resource, such as a connection, is still there when the resource is entered again. */
function staysOnResource () {
  const probe = new AsyncLocalStorage()
  const connection = new AsyncResource('light-trace.probe', { requireManualDestroy: true })
  connection.runInAsyncScope(() => probe.enterWith(true))
  const stays = connection.runInAsyncScope(() => probe.getStore()) !== undefined
  probe.disable()
  connection.emitDestroy() // else Jest takes it for a handle that is open
  return stays
}

/** Makes `context` the active one for what `done` starts. HOT, once per request. */
const enter = usesAsyncHooks
  ? enterIsolated
  : function enter (context, done) { storage.enterWith(context); done() }

/**
 * The same for code that goes on when `done` has returned: inject() and `app.routing()` dispatch in their caller's own
 * turn, and there `enterWith` would leave the caller in the request's context.
 */
function enterIsolated (context, done) {
  storage.run(context, done)
}

/**
 * Makes `context` active for what listens to the 'finish' of a response (so Fastify's onResponse hooks), where that would run in
 * another request's context, or in none: behind another response on a pipelined connection, and in HTTP/2.
 */
function enterAtFinish (context, response) {
  let before
  response.prependListener('finish', () => {
    before = storage.getStore()
    storage.enterWith(context)
  })
  response.on('finish', () => { storage.enterWith(before) }) // or it would stay on the connection's resource
}

function active () {
  return storage.getStore()
}

/** Runs `fn` with `context` active and returns what it returns. */
function run (context, fn, thisArg, ...args) {
  return storage.run(context, () => Reflect.apply(fn, thisArg, args))
}

/**
 * Runs `fn(argument)` with `context` active: `run` for the usual call, without a closure and an array for the arguments.
 * An AsyncResource around one `enterWith` would take half of it on AsyncContextFrame, one frame in place of two. But it brings back
 * all stores as they were, and what `fn` has entered in another one (a user, a tenant) has to stay, as it does with `run`.
 */
function call (context, fn, argument) {
  return storage.run(context, callPlainly, fn, argument)
}

// Node calls what it runs with null as `this`.
function callPlainly (fn, argument) {
  return fn(argument)
}

module.exports = { storage, enter, enterIsolated, enterAtFinish, active, run, call, usesAsyncHooks }
