'use strict'

// Who listens to which channel. A channel is subscribed to once per process, from when the first app wants
// it until the last one closes: one that nobody wants costs its publisher a property read.

const diagnosticsChannel = require('node:diagnostics_channel')
const { processState } = require('./process-state')

// Channel objects are kept here for good: on Node 20, and on 22 and 24 until late releases, the collection
// of a channel that nobody holds can take a new one of the same name with it.
const channels = new Map() // name -> channel
const wanted = new Map() // subscriber -> { count }

/**
 * Subscribes for one app. Each subscriber belongs to one channel and must not throw (see `guarded`).
 * @param {Array<[string, Function, AsyncLocalStorage?]>} subscribers channel name and subscriber; with a
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
  const entry = wanted.get(subscriber)
  if (entry !== undefined) {
    entry.count++
    return
  }
  wanted.set(subscriber, { count: 1 })
  if (storage === undefined) channelOf(name).subscribe(subscriber)
  else channelOf(name).bindStore(storage, subscriber)
}

function unwant (name, subscriber, storage) {
  const entry = wanted.get(subscriber)
  if (--entry.count > 0) return
  wanted.delete(subscriber)
  if (storage === undefined) channelOf(name).unsubscribe(subscriber)
  else channelOf(name).unbindStore(storage)
}

function channelOf (name) {
  let channel = channels.get(name)
  if (channel === undefined) {
    channel = diagnosticsChannel.channel(name)
    channels.set(name, channel)
  }
  return channel
}

/** Our own mistake, logged once: the library and the app go on. */
function bug (error) {
  processState.openApps.first()?.report.thrown(error, 'a call was not traced')
}

/**
 * A subscriber that cannot throw: what a subscriber throws, Node makes an uncaught exception.
 * @param {(message: object) => void} fn
 * @param {(error: unknown) => void} failed
 */
function guarded (fn, failed) {
  return function subscriber (message) {
    try {
      fn(message)
    } catch (error) {
      failed(error)
    }
  }
}

module.exports = { subscribe, guarded, bug }
