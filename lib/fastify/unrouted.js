'use strict'

// `unrouted: true`: requests that are answered before any of our hooks runs (a bad URL, no Host, an app that is closing). Their
// spans are made when their response has gone out, which Node publishes for all HTTP/1 servers of the process, but not for
// HTTP/2 and inject().

const { subscribe, guarded } = require('../runtime/subscriptions')
const clock = require('../span/clock')

const kStart = Symbol('light-trace.start')

/**
 * Calls `trace(request, response, start)` with each response of the app's servers, until what it returns is called.
 * `start` is NaN where the request came before we watched.
 */
function watchUnrouted (server, trace) {
  const kOurs = Symbol('light-trace.ours') // of this app, on each server of the process
  return subscribe([
    ['http.server.request.start', guarded(onStart)],
    ['http.server.response.finish', guarded(onFinish)]
  ])

  function onStart ({ request, server: other }) {
    if (isOurs(other)) request[kStart] = clock.now()
  }

  function onFinish ({ request, response, server: other }) {
    if (isOurs(other)) trace(request, response, request[kStart] ?? NaN)
  }

  // listen({ host: 'localhost' }) makes a second server, which shares only the request listener.
  function isOurs (other) {
    if (other === server) return true
    if (other[kOurs] === undefined) other[kOurs] = sharesListener(server, other)
    return other[kOurs]
  }
}

function sharesListener (server, other) {
  const listeners = server.listeners('request')
  return other.listeners('request').some((listener) => listeners.includes(listener))
}

module.exports = { watchUnrouted }
