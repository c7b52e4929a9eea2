'use strict'

// What an app's requests call, as CLIENT spans: which channels are listened to, from the app's start to its end.

const { subscribe } = require('../runtime/subscriptions')
const { knownMethods } = require('../span/http-conventions')
const { httpSubscribers, http2Subscribers, undiciSubscribers } = require('./node-clients')
const { callDescriptorsFor, librarySubscribers } = require('./libraries')

/** What the subscribers ask of the app whose request makes a call. */
class Outbound {
  #callDescriptors // channel -> callDescriptor, or until it first speaks in a request a function that gets it
  #lastChannel = null // most apps have one database
  #lastDescriptor = undefined

  constructor ({ outbound, disabled, knownMethods: override }, report) {
    this.http = outbound.http
    this.undici = outbound.undici
    this.libraries = outbound.libraries && !disabled
    this.propagateTo = outbound.propagateTo
    this.knownMethods = knownMethods(override)
    this.#callDescriptors = disabled ? new Map() : callDescriptorsFor(outbound, report)
  }

  /** What is known of a TracingChannel, or undefined. HOT */
  callDescriptorOf (channel) {
    if (channel === this.#lastChannel) return this.#lastDescriptor
    const callDescriptor = this.#callDescriptors.get(channel)
    this.#lastDescriptor = typeof callDescriptor === 'function' ? this.#load(channel, callDescriptor) : callDescriptor
    this.#lastChannel = channel
    return this.#lastDescriptor
  }

  #load (channel, get) {
    const callDescriptor = get()
    this.#callDescriptors.set(channel, callDescriptor)
    return callDescriptor
  }

  /** All that is listened to for this app. */
  subscribers () {
    const subscribers = librarySubscribers(this.#callDescriptors, this.libraries)
    if (this.http) subscribers.push(...httpSubscribers, ...http2Subscribers)
    if (this.undici) subscribers.push(...undiciSubscribers)
    return subscribers
  }
}

// An application that is gone without a close.
const forgotten = new FinalizationRegistry((unsubscribe) => unsubscribe())

/**
 * @param {Tracer} tracer
 * @returns {() => void} release, for the end of the app
 */
function openOutbound (tracer) {
  tracer.outbound = new Outbound(tracer.settings, tracer.report)
  const unsubscribe = subscribe(tracer.outbound.subscribers())
  forgotten.register(tracer, unsubscribe)
  return unsubscribe
}

module.exports = { openOutbound }
