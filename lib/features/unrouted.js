'use strict'

// `spans: { unrouted: true }`: traces requests that are answered before any of our hooks runs (a bad URL, no Host, an app that is
// closing). Their spans are created when the response is sent. Node publishes that for all HTTP/1 servers of the process, but not for
// HTTP/2 and inject(). These requests have no Fastify request and no route.

const { IncomingMessage, ServerResponse } = require('node:http')
const { Server } = require('node:net')
const { now } = require('../runtime/timers.js')
const { subscribe, onMessage } = require('../runtime/process-state.js')
const { peerInfo } = require('../http/conventions.js')
const { attributesPerRequest } = require('../span/http-info.js')
const { kContext } = require('../fastify/keys.js')
const { sentStatus } = require('../fastify/response-end.js')

const kStart = Symbol('light-trace.start')

// Marks a response that has no Fastify request and is already handled.
const NO_REQUEST = Object.freeze({ caught () {}, takeRecord () { return null } })

class Unrouted {
  #tracer
  #requests = null // of the application, see lib/fastify/request-start.js
  #server = null
  #release = null // of the channels
  #attributes = null // the option `attributes` if it is an object, which applies to each request
  #kOurs = Symbol('light-trace.ours') // on each server of the process: whether it belongs to this app

  constructor (tracer) {
    this.#tracer = tracer
    const { attributes } = tracer.settings
    if (typeof attributes !== 'function') this.#attributes = attributesPerRequest(attributes)?.() ?? null
  }

  /** Requests without a route belong to no child scope. */
  follow (requests, app) {
    if (!Object.hasOwn(app, 'server')) return
    this.#requests = requests
    this.#server = app.server
    if (this.#tracer.pipeline !== null) this.open() // the application has already created a span, so `open` has run
  }

  open () {
    if (this.#requests === null) return
    this.#release ??= subscribe([
      ['http.server.request.start', onMessage(({ request, server }) => {
        if (request instanceof IncomingMessage && this.#isOurs(server)) request[kStart] = now()
      })],
      ['http.server.response.finish', onMessage(({ request, response, server }) => {
        if (response instanceof ServerResponse && response[kContext] === undefined && this.#isOurs(server)) this.#trace(request, response)
      })]
    ])
  }

  stop () { this.#release?.() }

  // listen({ host: 'localhost' }) creates a second server, which shares only the request listener. undici-thread-interceptor also
  // publishes on these channels, for calls that bypass the network, with its own request and response and any object as the server.
  #isOurs (other) {
    return other === this.#server || (other instanceof Server && (other[this.#kOurs] ??= sharesListener(this.#server, other)))
  }

  #trace (raw, response) {
    response[kContext] = NO_REQUEST
    const requests = this.#requests
    const { headers, method, url } = raw
    const request = { raw, headers, method, url }
    if (requests.ignores(requests.ignore, request)) return
    const { starter, observer } = this.#tracer
    let base = requests.baseOf(this.#tracer)
    const incoming = requests.readCaller(raw, headers, request, raw[kStart] ?? now(), base) // it may have started before `open`
    incoming.attributes = this.#attributes // the user's functions need a Fastify request
    if (base !== null) base = requests.contextUnder(base)
    const { start } = incoming
    const route = requests.routes.unmatched(method)
    const peer = peerInfo(raw, response, headers, requests.valueLengthMax, requests.omit)
    const span = starter.startServer(incoming, route, peer, requests.targetOf(raw, route), base)
    if (this.#attributes !== null && span.isRecording()) span.setAttributes(this.#attributes)
    if (observer !== null) observer.server.close(observer.recordOf(span, start, route, peer), sentStatus(response), '', null)
    else if (span.isRecording()) span.close(sentStatus(response), '')
  }
}

function sharesListener (server, other) {
  const listeners = server.listeners('request')
  return other.listeners('request').some((listener) => listeners.includes(listener))
}

module.exports = { attach: (tracer) => new Unrouted(tracer) }
