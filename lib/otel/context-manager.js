'use strict'

// The API's ContextManager over the one AsyncLocalStorage, and the question who holds its slot.

const { EventEmitter } = require('node:events')
const asyncStorage = require('../context/async-storage')
const { EMPTY_CONTEXT } = require('../context/suppressed')
const { slots } = require('./slots')
const { rootContext } = require('./root-context')

const kBound = Symbol.for('light-trace.bound')

class ContextManager {
  /** Asked by users of the API, who may compare with its ROOT_CONTEXT. */
  active () {
    return asyncStorage.active() ?? rootContext()
  }

  with (context, fn, thisArg, ...args) {
    return asyncStorage.run(isContext(context) ? context : rootContext(), fn, thisArg, ...args)
  }

  bind (context, target) {
    if (target instanceof EventEmitter) return bindEmitter(this, context, target)
    return typeof target === 'function' ? bindFunction(this, context, target) : target
  }

  /** Of api 1.10: until `dispose`, or the end of what runs now and what that starts. */
  attach (context) {
    const before = asyncStorage.active()
    asyncStorage.storage.enterWith(isContext(context) ? context : rootContext())
    let isAttached = true
    return {
      dispose () {
        if (isAttached) asyncStorage.storage.enterWith(before)
        isAttached = false
      }
    }
  }

  enable () { return this }
  // Whoever takes us out of the slot takes nothing from the requests that are under way.
  disable () { return this }
}

function bindFunction (manager, context, fn) {
  function bound (...args) {
    return manager.with(context, fn, this, ...args)
  }
  return Object.defineProperty(bound, 'length', { value: fn.length, configurable: true })
}

// One own `emit` on the emitter that was handed to us: listeners stay who they are, so that removing,
// counting and `once` need no bookkeeping. The first binding holds, as in the SDK.
function bindEmitter (manager, context, emitter) {
  if (Object.hasOwn(emitter, kBound) || typeof emitter.emit !== 'function') return emitter
  const { emit } = emitter
  Object.defineProperty(emitter, kBound, { value: true })
  Object.defineProperty(emitter, 'emit', {
    value: function (...args) { return manager.with(context, emit, this, ...args) },
    writable: true,
    configurable: true
  })
  return emitter
}

function isContext (value) {
  return value !== null && typeof value === 'object' && typeof value.getValue === 'function' && typeof value.setValue === 'function'
}

/** Of another package's copy, or ours: whatever is in the API's slot; undefined where the slot is free or ours. */
function foreignManager (own) {
  const held = slots()?.context
  return held === undefined || held === null || held === own ? undefined : held
}

/**
 * Passes each call on to the context manager that is registered with the API then, because an SDK may be
 * stopped and another one started.
 */
class SlotContextManager {
  #own

  constructor (own) {
    this.#own = own
  }

  active () {
    const foreign = foreignManager(this.#own)
    return (foreign === undefined ? asyncStorage.active() : foreign.active()) ?? EMPTY_CONTEXT
  }

  with (context, fn, thisArg, ...args) {
    return (foreignManager(this.#own) ?? this.#own).with(context, fn, thisArg, ...args)
  }

  call (context, fn, argument) {
    return this.with(context, fn, undefined, argument)
  }
}

module.exports = { ContextManager, SlotContextManager, foreignManager, isContext }
