'use strict'

// What stands in the slots of @opentelemetry/api: its TracerProvider, Tracer and ContextManager over ours. Which of our tracers
// makes a span is asked at each `startSpan`: an API tracer that is fetched when a module loads works for later applications.

const { EventEmitter } = require('node:events')
const asyncStorage = require('../context/async-storage')
const { SPAN_KEY, parentIn } = require('../context/trace-context')
const { EMPTY_CONTEXT } = require('../context/request-context')
const { wrapSpanContext } = require('../span/child-span')
const { Scope } = require('../span/recording-span')
const { read } = require('../span/attributes')
const { slots, rootContext } = require('./api-slots')

const NAME_CHARS_MAX = 1024
const TRACERS_MAX = 256 // tracers are named after packages; names made of user data must not pile up
const kBound = Symbol.for('light-trace.bound')

class ApiTracerProvider {
  #resolve
  #manager
  #tracers = new Map()

  /**
   * @param {(context: Context) => Tracer | undefined} resolve
   * @param {{ active, with }} manager
   */
  constructor (resolve, manager) {
    this.#resolve = resolve
    this.#manager = manager
  }

  getTracer (name, version, options) {
    const scope = new Scope(shortened(name) ?? '', shortened(version), shortened(read(options, 'schemaUrl')))
    const known = this.#tracers.get(scope.key)
    if (known !== undefined) return known
    const tracer = new ApiTracer(this.#resolve, this.#manager, scope)
    if (this.#tracers.size < TRACERS_MAX) this.#tracers.set(scope.key, tracer)
    return tracer
  }

  /** For code that expects the API's own proxy in its slot. */
  getDelegate () { return this }
}

class ApiTracer {
  #resolve
  #manager
  #scope

  constructor (resolve, manager, scope) {
    this.#resolve = resolve
    this.#manager = manager
    this.#scope = scope
  }

  startSpan (name, options, context) {
    const parent = isContext(context) ? context : this.#manager.active()
    const tracer = this.#resolve(parent)
    if (tracer === undefined) return wrapSpanContext(parentIn(parent))
    try {
      return tracer.startSpan(name, options, parent, this.#scope)
    } catch (error) {
      tracer.report.failed('LT_WARN_SPAN', 'a span could not be started', error)
      return wrapSpanContext(undefined)
    }
  }

  /** Runs `fn(span)`, which ends the span. Called as (name, fn), (name, options, fn) or (name, options, context, fn). */
  startActiveSpan (name, options, context, fn) {
    if (typeof options === 'function') return this.startActiveSpan(name, undefined, undefined, options)
    if (typeof context === 'function') return this.startActiveSpan(name, options, undefined, context)
    if (typeof fn !== 'function') return undefined
    const parent = isContext(context) ? context : this.#manager.active()
    const span = this.startSpan(name, options, parent)
    return this.#manager.with(parent.setValue(SPAN_KEY, span), fn, undefined, span)
  }
}

function shortened (value) {
  return typeof value === 'string' ? value.slice(0, NAME_CHARS_MAX) : undefined
}

/** The API's ContextManager over the one AsyncLocalStorage. */
class ContextManager {
  /** The active context, else the API's own ROOT_CONTEXT: users may compare with it. */
  active () {
    return asyncStorage.active() ?? rootContext()
  }

  with (context, fn, thisArg, ...args) {
    return asyncStorage.run(isContext(context) ? context : rootContext(), fn, thisArg, ...args)
  }

  bind (context, target) {
    try {
      if (target instanceof EventEmitter) return bindEmitter(this, context, target)
      return typeof target === 'function' ? bindFunction(this, context, target) : target
    } catch { // a frozen emitter, a proxy that throws
      return target
    }
  }

  /** Makes `context` active until `dispose`, or the end of what runs now and what that starts. Called by API 1.10 and later. */
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
  disable () { return this } // requests that are under way keep their contexts
}

function bindFunction (manager, context, fn) {
  function bound (...args) {
    return manager.with(context, fn, this, ...args)
  }
  return Object.defineProperty(bound, 'length', { value: fn.length, configurable: true })
}

// One own `emit` on the emitter: listeners stay as they are. The first binding holds, as in the SDK.
function bindEmitter (manager, context, emitter) {
  if (Object.hasOwn(emitter, kBound) || typeof emitter.emit !== 'function') return emitter
  Object.defineProperty(emitter, kBound, { value: true })
  const emit = bindFunction(manager, context, emitter.emit)
  return Object.defineProperty(emitter, 'emit', { value: emit, writable: true, configurable: true })
}

function isContext (value) {
  return value !== null && typeof value === 'object' && typeof read(value, 'getValue') === 'function' && typeof read(value, 'setValue') === 'function'
}

/** The context manager in the API's slot; undefined if the slot is free or holds `own`. */
function foreignManager (own) {
  const held = slots()?.context ?? undefined
  return held === own ? undefined : held
}

/** Passes each call on to the context manager in the API's slot, asked each time: an SDK may be stopped and another one started. */
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

module.exports = { ApiTracerProvider, ContextManager, SlotContextManager, foreignManager }
