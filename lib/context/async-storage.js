'use strict'

// The one AsyncLocalStorage of the process. Only this file distinguishes AsyncContextFrame from async_hooks.
//
// Requests and steps are both run by `call`. When it returns, the code that dispatched the request (Node's parser, `inject`,
// `app.routing()`) has its own context again. `enterWith` does not work: on async_hooks (Node 20 and 22) the context would stay on the
// connection's resource. Code that runs before our hook on the connection's next request would then read this client's live store.

const { AsyncLocalStorage, AsyncResource } = require('node:async_hooks')
const { processState } = require('../runtime/process-state.js')

const { storage } = processState

// With AsyncContextFrame, Node keeps the values of all stores for the running code in one Map, the frame. `frames` is the frame's class,
// with `current()` and `set(frame)`; null if these are missing or behave differently. It is found on a resource created in a frame.
const frames = inResource((outside) => outside.runInAsyncScope(findFrames)) // `storage.run` would leave its key in the frame

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
  } catch { // Node 20 and 22 have no frames, and other versions may keep them elsewhere
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
    resource.emitDestroy() // otherwise Jest reports it as an open handle
  }
}

/** The values of all stores for the running code, with AsyncContextFrame; else undefined. */
function currentFrame () {
  return frames === null ? undefined : frames.current()
}

/** Makes `context` active for the rest of the current callback. With AsyncContextFrame, other stores get their values from `frame`. */
function enterFrom (frame, context) {
  if (frames !== null) frames.set(frame)
  storage.enterWith(context)
}

/** The active context, or undefined. HOT, several times per request. Avoids Node's getter, which looks up the store twice. */
function active () {
  return frames === null ? storage.getStore() : storeIn(frames.current())
}

function storeIn (frame) {
  return frame === undefined ? undefined : frame.get(storage)
}

/** Runs `fn` with `context` active and returns its result. */
function run (context, fn, thisArg, ...args) {
  return storage.run(context, () => Reflect.apply(fn, thisArg, args))
}

/** Runs `fn(argument)` with `context` active. Like `run`, but without a closure and an array of arguments. HOT, once per request and step. */
function call (context, fn, argument) {
  return frames === null ? storage.run(context, callPlainly, fn, argument) : callInFrame(context, fn, argument)
}

// Node's `run` would call `fn` itself with null as `this`.
function callPlainly (fn, argument) {
  return fn(argument)
}

// Node's `run` copies the frame on entry and on exit, which was two thirds of the cost of a step. Here, a frame that holds no other store
// is created instead of copied, and on exit the previous frame is restored.
function callInFrame (context, fn, argument) {
  const before = frames.current()
  const outer = storeIn(before)
  if (outer === context) return fn(argument)
  if (outer !== undefined && before.size === 1) frames.set(undefined) // the frame holds only our store
  storage.enterWith(context)
  const inner = frames.current()
  try {
    return fn(argument)
  } finally {
    if (frames.current() === inner) frames.set(before)
    else storage.enterWith(outer) // `fn` entered another store (a user, a tenant). It stays entered, as with `run`
  }
}

const hasFrames = frames !== null

module.exports = { storage, currentFrame, enterFrom, active, run, call, hasFrames }
