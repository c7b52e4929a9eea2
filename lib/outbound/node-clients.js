'use strict'

// The subscribers to what Node's own HTTP clients publish. The code behind them is loaded when one of their channels first
// speaks: an application that calls nobody starts without it.

const { guarded, bug } = require('../runtime/subscriptions')

// From here on a request is announced while headers can still be added to it.
const [major, minor] = process.versions.node.split('.').map(Number)
const canInject = major > 23 || (major === 23 && minor >= 2) || (major === 22 && minor >= 12)

const httpSubscribers = onDemand(() => require('./http').subscribers, [
  canInject ? 'http.client.request.created' : 'http.client.request.start',
  'http.client.response.finish',
  'http.client.request.error'
])

const http2Subscribers = onDemand(() => require('./http2').subscribers, [
  'http2.client.stream.created',
  'http2.client.stream.finish',
  'http2.client.stream.error',
  'http2.client.stream.close'
])

const undiciSubscribers = onDemand(() => require('./undici').subscribers, [
  'undici:request:create',
  'undici:client:sendHeaders',
  'undici:request:headers',
  'undici:request:error'
])

/**
 * @param {() => Array<(message: object) => void>} load gives a function for each of `names`, in their order
 * @param {string[]} names of channels
 */
function onDemand (load, names) {
  return names.map((name, i) => {
    let subscriber = null
    return [name, guarded((message) => {
      if (subscriber === null) subscriber = load()[i]
      subscriber(message)
    }, bug)]
  })
}

module.exports = { httpSubscribers, http2Subscribers, undiciSubscribers, canInject }
