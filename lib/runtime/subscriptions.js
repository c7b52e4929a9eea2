'use strict'

// Subscriptions to diagnostics channels: once per process, from when the first app wants one until the last one closes.

const diagnosticsChannel = require('node:diagnostics_channel')
const { processState } = require('./process-state')

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
  for (const [name, subscriber, storage] of subscribers) want(name, subscriber, storage)
  let isOpen = true
  return function release () {
    if (!isOpen) return
    isOpen = false
    for (const [name, subscriber, storage] of subscribers) unwant(name, subscriber, storage)
  }
}

function want (name, subscriber, storage) {
  const count = wanted.get(subscriber) ?? 0
  wanted.set(subscriber, count + 1)
  if (count > 0) return
  if (!channels.has(name)) channels.set(name, diagnosticsChannel.channel(name))
  if (storage === undefined) channels.get(name).subscribe(subscriber)
  else channels.get(name).bindStore(storage, subscriber)
}

function unwant (name, subscriber, storage) {
  const count = wanted.get(subscriber) - 1
  wanted.set(subscriber, count)
  if (count > 0) return
  wanted.delete(subscriber)
  if (storage === undefined) channels.get(name).unsubscribe(subscriber)
  else channels.get(name).unbindStore(storage)
}

/** Logs our own mistake once: the library and the app go on. */
function bug (error) {
  processState.openApps.first()?.report.thrown(error, 'a call was not traced')
}

// Makes a subscriber or listener that cannot throw: Node would make an uncaught exception of it, a library a failure of its own.
function guarded (fn) {
  return function subscriber (message, more) {
    try {
      fn(message, more)
    } catch (error) {
      bug(error)
    }
  }
}

module.exports = { subscribe, guarded, bug }
