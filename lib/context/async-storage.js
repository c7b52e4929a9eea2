'use strict'

// The one AsyncLocalStorage of the process, and the only place that asks which kind it is.
//
// A request is entered as a step is, by `call`: what dispatched it (Node's parser, `inject`, `app.routing()`) is in its own context
// again as soon as that returns. `enterWith` would not do: on async_hooks (Node 20 and 22) it would stay on the connection's
// resource, and whatever runs before our hook on the next request of the connection would read this client's live store.

const { AsyncLocalStorage, AsyncResource } = require('node:async_hooks')
const { processState } = require('../runtime/process-state.js')

const { storage } = processState

// On AsyncContextFrame Node keeps what all stores hold for the running code in one Map, a frame. This is its class, with `current()`
// and `set(frame)`; null where they are not there, or do something else. It is found on a resource that was made in a frame.
const frames = inResource((outside) => outside.runInAsyncScope(findFrames)) // `run` would leave its key behind

function findFrames () {
  const probe = new AsyncLocalStorage()
  probe.enterWith(true)
  try {
    const isFrame = (value) => value !== null && typeof value === 'object' && value.size > 0 && value.get(probe) === true
    const frame = inResource((inside) => Object.getOwnPropertySymbols(inside).map((symbol) => inside[symbol]).find(isFrame))
    const Frame = frame.constructor
    if (Frame.current() !== frame) return null
    Frame.set(undefined)
    const isLeft = Frame.current() === undefined && probe.getStore() === undefined
    Frame.set(frame)
    storage.enterWith(true)
    return isLeft && probe.getStore() === true && Frame.current().get(storage) === true ? Frame : null
  } catch { // Node 20 and 22 have none, another Node keeps it elsewhere
    return null
  } finally {
    probe.disable()
  }
}

function inResource (fn) {
  const resource = new AsyncResource('light-trace.probe', { requireManualDestroy: true })
  try {
    return fn(resource)
  } finally {
    resource.emitDestroy() // else Jest takes it for a handle that is open
  }
}

/** What all stores hold for the running code, on AsyncContextFrame. */
function currentFrame () {
  return frames === null ? undefined : frames.current()
}

/** Makes `context` active for the rest of what Node has called, on AsyncContextFrame beside what other stores hold in `frame`. */
function enterFrom (frame, context) {
  if (frames !== null) frames.set(frame)
  storage.enterWith(context)
}

/** The active context, or undefined. HOT, some times per request. Node's own getter looks a store up twice. */
function active () {
  return frames === null ? storage.getStore() : storeIn(frames.current())
}

function storeIn (frame) {
  return frame === undefined ? undefined : frame.get(storage)
}

/** Runs `fn` with `context` active and returns what it returns. */
function run (context, fn, thisArg, ...args) {
  return storage.run(context, () => Reflect.apply(fn, thisArg, args))
}

/** Runs `fn(argument)` with `context` active: `run` for the usual call, without a closure and an array for the arguments. HOT, once per request and step. */
function call (context, fn, argument) {
  return frames === null ? storage.run(context, callPlainly, fn, argument) : callInFrame(context, fn, argument)
}

// Node calls what it runs with null as `this`.
function callPlainly (fn, argument) {
  return fn(argument)
}

// `run` copies the frame twice, as it enters and as it leaves: two thirds of what a step cost. Here one that holds no other store is
// not copied but made, and at the end the one that was there comes back as it was.
function callInFrame (context, fn, argument) {
  const before = frames.current()
  const outer = storeIn(before)
  if (outer === context) return fn(argument)
  if (outer !== undefined && before.size === 1) frames.set(undefined) // it is ours alone
  storage.enterWith(context)
  const inner = frames.current()
  try {
    return fn(argument)
  } finally {
    if (frames.current() === inner) frames.set(before)
    else storage.enterWith(outer) // `fn` has entered another store (a user, a tenant), which stays, as it does with `run`
  }
}

const hasFrames = frames !== null

module.exports = { storage, currentFrame, enterFrom, active, run, call, hasFrames }
