'use strict'

// `unrouted: true`: requests that Fastify or Node answers before any of our hooks runs (a bad URL, a
// parameter that is too long, no Host, an app that is closing, a hook that was registered before ours).
// Their spans are made when their response has gone out, from the one channel that sees them.
//
// It is Node's, for all HTTP/1 servers of the process; HTTP/2 and inject() have none. Subscribed only
// while an app asks for it: a subscriber costs every request of the process some nanoseconds.

const { channel } = require('node:diagnostics_channel')
const clock = require('../span/clock')

// Held here for good: Node 20, and 22 and 24 up to a point, may collect a channel that has subscribers.
const started = channel('http.server.request.start')
const finished = channel('http.server.response.finish')

const kStart = Symbol('light-trace.start')

/**
 * @param {http.Server} server the app's
 * @param {(request, response, start: number) => void} trace is called with each response of the app's servers;
 *   `start` is NaN where the request came before we watched
 * @param {(error) => void} failed
 * @returns {() => void} ends it
 */
function watchUnrouted (server, trace, failed) {
  const kOurs = Symbol('light-trace.ours') // of this app, on each server of the process
  started.subscribe(onStart)
  finished.subscribe(onFinish)
  return () => {
    started.unsubscribe(onStart)
    finished.unsubscribe(onFinish)
  }

  function onStart ({ request, server: other }) {
    if (isOurs(other)) request[kStart] = clock.now()
  }

  function onFinish ({ request, response, server: other }) {
    if (!isOurs(other)) return
    try {
      trace(request, response, request[kStart] ?? NaN)
    } catch (error) {
      failed(error)
    }
  }

  // listen({ host: 'localhost' }) makes a second server; nothing but its request listener says whose.
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
