'use strict'

// What all copies of this package in a process share: with an AsyncLocalStorage of its own each would lose the other's requests.

const { AsyncLocalStorage } = require('node:async_hooks')
const diagnosticsChannel = require('node:diagnostics_channel')

const KEY = Symbol.for('light-trace.globals')

// Raised when the members change their meaning: copies that cannot read each other then share nothing.
const SHAPE = 4

/** The tracers of the applications that are open, oldest first. Held weakly: one that is never closed can be collected. */
class OpenApps {
  #refs = []

  // Their context managers, each once: the one that is registered with the API, then our own. A request is entered in both,
  // and only the first knows the context that an instrumentation has made inside of it.
  managers = []

  add (tracer) {
    this.#refs.push(new WeakRef(tracer))
    const { contextManager } = tracer
    if (!this.managers.includes(contextManager)) this.managers.push(contextManager)
  }

  /** One that is registered with the API and is not ours. */
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

// Sealed: when a test file is done, Jest turns what can be configured on a global's value into accessors that call themselves.
const own = Object.seal({
  shape: SHAPE,
  storage: new AsyncLocalStorage(),
  registrations: new WeakMap(), // an application's server -> how it is traced
  openApps: new OpenApps(), // their tracers
  exporterTraceparents: new Set(), // the traceparents that our exporters send
  collectorLogs: new Map(), // a collector's URL -> what was logged of it, see lib/export/log.js
  facade: null, // what stands in the API's slots, see lib/otel/api-globals.js
  hasSealed: false // whether the API's global object was made by us
})
if (globalThis[KEY] === undefined) Object.defineProperty(globalThis, KEY, { value: own, configurable: true })
const processState = globalThis[KEY].shape === SHAPE ? globalThis[KEY] : own

// Subscriptions to diagnostics channels: once per process, from when the first app wants one until the last one closes.

// Kept for good: until late releases of Node 24, the collection of a channel can take a new one of the same name with it.
const channels = new Map() // name -> channel
const wanted = new Map() // subscriber -> number of apps that want it

/**
 * Subscribes for one app. Each subscriber belongs to one channel and must not throw (see `guarded`).
 * @param {Array<[string, Function, AsyncLocalStorage<Context>?]>} subscribers channel name and subscriber; with a
 *   storage the function gives the store that is entered around what the channel is published for
 * @returns {() => void} takes back what this app wanted; a second call does nothing
 */
function subscribe (subscribers) {
  const open = [...subscribers]
  for (const subscription of open) want(subscription, 1)
  return () => { for (const subscription of open.splice(0)) want(subscription, -1) }
}

/**
 * @param {[string, Function, AsyncLocalStorage<Context>?]} subscription
 * @param {number} change one app more or less
 */
function want ([name, subscriber, storage], change) {
  const before = wanted.get(subscriber) ?? 0
  const isWanted = before + change > 0
  if (isWanted) wanted.set(subscriber, before + change)
  else wanted.delete(subscriber)
  if (isWanted === (before > 0)) return // by another app too
  if (!channels.has(name)) channels.set(name, diagnosticsChannel.channel(name))
  const channel = channels.get(name)
  if (storage === undefined) channel[isWanted ? 'subscribe' : 'unsubscribe'](subscriber)
  else if (isWanted) channel.bindStore(storage, subscriber)
  else channel.unbindStore(storage)
}

/** Logs our own mistake once: the library and the app go on. */
function bug (error) {
  processState.openApps.first()?.report.failed('LT_WARN_BUG', 'a call was not traced', error)
}

// Makes a subscriber or listener that cannot throw: Node would make an uncaught exception of it, a library a failure of its own.
// What it returns is HOT.
function guarded (fn) {
  return function subscriber (message, more) {
    try {
      fn(message, more)
    } catch (error) {
      bug(error)
    }
  }
}

/** A `guarded` subscriber of a channel, which anybody may publish: what is no object is left alone. What it returns is HOT. */
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
