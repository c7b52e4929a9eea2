'use strict'

// State that all copies of this package in a process share. If each copy had its own AsyncLocalStorage, it would lose the requests of the
// others.

const { AsyncLocalStorage } = require('node:async_hooks')
const diagnosticsChannel = require('node:diagnostics_channel')

const KEY = Symbol.for('light-trace.globals')

// Incremented when the meaning of a member changes. Copies with different shapes share nothing.
const SHAPE = 4

/** The tracers of the open applications, oldest first. Held weakly, so that an application that is never closed can be collected. */
class OpenApps {
  #refs = []

  // Their context managers without duplicates: first one that is registered with the API, then our own. A request is entered in both. Only
  // the first knows a context that an instrumentation has created inside the request.
  managers = []

  add (tracer) {
    this.#refs.push(new WeakRef(tracer))
    const { contextManager } = tracer
    if (!this.managers.includes(contextManager)) this.managers.push(contextManager)
  }

  /** Adds a manager that is registered with the API and is not ours. */
  addForeignManager (manager) {
    if (!this.managers.includes(manager)) this.managers.unshift(manager)
  }

  delete (tracer) {
    this.#refs = this.#refs.filter((ref) => ![undefined, tracer].includes(ref.deref()))
    if (this.#refs.length === 0) this.managers.length = 0
  }

  /** @returns {Tracer | undefined} */
  first () { return this.all()[0] }

  /** @returns {Tracer[]} */
  all () { return this.#refs.map((ref) => ref.deref()).filter((tracer) => tracer !== undefined) }
}

// Sealed because after each test file Jest turns configurable properties of a global's value into accessors that call themselves.
const own = Object.seal({
  shape: SHAPE,
  storage: new AsyncLocalStorage(),
  registrations: new WeakMap(), // an application's server -> its registration
  openApps: new OpenApps(), // their tracers
  exporterTraceparents: new Set(), // the traceparents that our exporters send
  collectorLogs: new Map(), // a collector's URL -> what was logged of it, see lib/export/log.js
  facade: null, // the object in the API's slots, see lib/otel/api-globals.js
  hasSealed: false // whether we created the API's global object
})
if (globalThis[KEY] === undefined) Object.defineProperty(globalThis, KEY, { value: own, configurable: true })
const processState = globalThis[KEY].shape === SHAPE ? globalThis[KEY] : own

// Subscriptions to diagnostics channels: one per process, from the first app that wants it until the last one closes.

// Never removed: before late releases of Node 24, collecting a channel can also remove a new channel of the same name.
const channels = new Map() // name -> channel
const wanted = new Map() // subscriber -> number of apps that want it

/**
 * Subscribes for one app. Each subscriber belongs to one channel and must not throw (see `guarded`).
 * @param {Array<[string, Function, AsyncLocalStorage<Context>?]>} subscribers channel name and subscriber. With a storage, the function
 *   returns the store that is entered while the channel runs its stores
 * @returns {() => void} unsubscribes for this app; a second call does nothing
 */
function subscribe (subscribers) {
  const open = [...subscribers]
  for (const subscription of open) want(subscription, 1)
  return () => { for (const subscription of open.splice(0)) want(subscription, -1) }
}

/**
 * @param {[string, Function, AsyncLocalStorage<Context>?]} subscription
 * @param {number} change 1 for one app more, -1 for one app less
 */
function want ([name, subscriber, storage], change) {
  const before = wanted.get(subscriber) ?? 0
  const isWanted = before + change > 0
  if (isWanted) wanted.set(subscriber, before + change)
  else wanted.delete(subscriber)
  if (isWanted === (before > 0)) return // another app wants it too
  if (!channels.has(name)) channels.set(name, diagnosticsChannel.channel(name))
  const channel = channels.get(name)
  if (storage === undefined) channel[isWanted ? 'subscribe' : 'unsubscribe'](subscriber)
  else if (isWanted) channel.bindStore(storage, subscriber)
  else channel.unbindStore(storage)
}

/** Logs a bug of ours once. The library and the app continue. */
function bug (error) {
  processState.openApps.first()?.report.failed('LT_WARN_BUG', 'a call was not traced', error)
}

// Wraps a subscriber or listener so that it cannot throw. Otherwise Node would raise an uncaught exception, or the library would fail.
// The returned function is HOT.
function guarded (fn) {
  return function subscriber (message, more) {
    try {
      fn(message, more)
    } catch (error) {
      bug(error)
    }
  }
}

/** Like `guarded`, for a channel. Any code may publish to it, so messages that are not objects are ignored. The returned function is HOT. */
function onMessage (fn) {
  return function subscriber (message) {
    if (message === null || typeof message !== 'object') return
    try {
      fn(message)
    } catch (error) {
      bug(error)
    }
  }
}

module.exports = { processState, subscribe, guarded, onMessage, bug }
