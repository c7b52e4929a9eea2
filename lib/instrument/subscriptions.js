'use strict'

// Who listens to which channel. A channel is subscribed to once per process, from when the first app wants
// it until the last one closes: one that nobody wants costs its publisher a property read.

const diagnosticsChannel = require('node:diagnostics_channel')

// Channel objects are kept here for good: on Node 20, and on 22 and 24 until late releases, the collection
// of a channel that nobody holds can take a new one of the same name with it.
const channels = new Map() // name → channel
const wanted = new Map() // subscriber → { count }

/**
 * Subscribes for one app. Each subscriber belongs to one channel and must not throw (see `guarded`).
 * @param {Array<[string, Function]>} subscribers channel name and subscriber
 * @returns {() => void} takes back what this app wanted; a second call does nothing
 */
function subscribe (subscribers) {
  for (const [name, subscriber] of subscribers) want(name, subscriber)
  let isOpen = true
  return function release () {
    if (!isOpen) return
    isOpen = false
    for (const [name, subscriber] of subscribers) unwant(name, subscriber)
  }
}

function want (name, subscriber) {
  const entry = wanted.get(subscriber)
  if (entry !== undefined) {
    entry.count++
    return
  }
  wanted.set(subscriber, { count: 1 })
  channelOf(name).subscribe(subscriber)
}

function unwant (name, subscriber) {
  const entry = wanted.get(subscriber)
  if (--entry.count > 0) return
  wanted.delete(subscriber)
  channelOf(name).unsubscribe(subscriber)
}

function channelOf (name) {
  let channel = channels.get(name)
  if (channel === undefined) {
    channel = diagnosticsChannel.channel(name)
    channels.set(name, channel)
  }
  return channel
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

module.exports = { subscribe, guarded }
