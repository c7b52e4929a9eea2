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
 * Makes `context` active for a response that is queued behind another on a pipelined connection: its 'finish' (so Fastify's
 * onResponse) would run in the other request's context. By then the running resource is the write's own, on async_hooks too.
 */
function enterQueued (context, response) {
  response.prependListener('finish', () => { storage.enterWith(context) })
}

function active () {
  return storage.getStore()
}

/** Runs `fn` with `context` active and returns what it returns. */
function run (context, fn, thisArg, ...args) {
  return storage.run(context, () => Reflect.apply(fn, thisArg, args))
}

/** Runs `fn(argument)` with `context` active: `run` for the usual call, without a closure and an array for the arguments. */
function call (context, fn, argument) {
  return storage.run(context, callPlainly, fn, argument)
}

// Node calls what it runs with null as `this`.
function callPlainly (fn, argument) {
  return fn(argument)
}

module.exports = { storage, enter, enterIsolated, enterQueued, active, run, call, usesAsyncHooks }
