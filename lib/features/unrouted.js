'use strict'

// `spans: { unrouted: true }`: requests that are answered before any of our hooks runs (a bad URL, no Host, an app that is closing). Their
// spans are made when their response has gone out, which Node publishes for all HTTP/1 servers of the process, but not for
// HTTP/2 and inject(). There is no Fastify request, and no route.

const { IncomingMessage, ServerResponse } = require('node:http')
const { Server } = require('node:net')
const { now } = require('../runtime/timers.js')
const { subscribe, onMessage } = require('../runtime/process-state.js')
const { peerInfo } = require('../http/conventions.js')
const { attributesPerRequest } = require('../span/http-info.js')
const { kContext } = require('../fastify/keys.js')
const { sentStatus } = require('../fastify/response-end.js')

const kStart = Symbol('light-trace.start')

// Stands on a response whose request never was one of Fastify's: it has been seen to.
const NO_REQUEST = Object.freeze({ caught () {}, takeRecord () { return null } })

class Unrouted {
  #tracer
  #requests = null // of the application, see lib/fastify/request-start.js
  #server = null
  #release = null // of the channels
  #attributes = null // of all requests, where they are an object that is set on each
  #kOurs = Symbol('light-trace.ours') // on each server of the process: whether it is of this app

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
    if (this.#tracer.pipeline !== null) this.open() // by a span that the application has made meanwhile
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

  // listen({ host: 'localhost' }) makes a second server, which shares only the request listener. Of calls that go past the network
  // undici-thread-interceptor publishes on these channels too, with whatever serves them, and with its own request and response.
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
    const incoming = requests.readCaller(raw, headers, request, raw[kStart] ?? now(), base) // it may have come before we were open
    incoming.attributes = this.#attributes // there is no request for the user's functions
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
