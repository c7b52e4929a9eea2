'use strict'

// What an app's requests call, as CLIENT spans: which channels are listened to, from the app's start to its end.

const { addTracer, removeTracer } = require('./calls')
const { subscribe } = require('./subscriptions')
const { knownMethods } = require('./semconv')
const { httpSubscribers } = require('./http-client')
const { http2Subscribers } = require('./http2-client')
const { undiciSubscribers } = require('./undici')

/** What the subscribers ask of the app whose request makes a call. */
class Outbound {
  constructor ({ outbound, propagators, knownMethods: override }) {
    this.http = outbound.http
    this.undici = outbound.undici
    this.libraries = outbound.libraries
    this.channels = outbound.channels
    this.propagateTo = outbound.propagateTo
    this.tracecontext = propagators.includes('tracecontext')
    this.baggage = propagators.includes('baggage')
    this.knownMethods = knownMethods(override)
  }
}

/**
 * @param {Tracer} tracer
 * @returns {() => void} release, for the end of the app
 */
function openOutbound (tracer) {
  tracer.outbound = new Outbound(tracer.settings)
  const subscribers = []
  if (tracer.outbound.http) subscribers.push(...httpSubscribers, ...http2Subscribers)
  if (tracer.outbound.undici) subscribers.push(...undiciSubscribers)
  addTracer(tracer)
  const unsubscribe = subscribe(subscribers)
  return function release () {
    unsubscribe()
    removeTracer(tracer)
  }
}

module.exports = { openOutbound }
