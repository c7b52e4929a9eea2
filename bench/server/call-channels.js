'use strict'

// Sets the listeners of the channels that a request's calls are published on: light-trace's, none, or one that does nothing. The last
// shows the cost that the library and Node add as soon as a channel has a listener.

const diagnosticsChannel = require('node:diagnostics_channel')
const path = require('node:path')

module.exports = callChannels

/**
 * @param {string} root the checkout whose light-trace has subscribed
 * @returns {(state: 'spans' | 'nobody' | 'listened') => void}
 */
function callChannels (root) {
  const ours = outboundSubscribers(root)
  // One listener per TracingChannel is enough to make its library do everything.
  const idle = ours.filter(([name]) => !name.startsWith('tracing:') || name.endsWith(':start')).map(([name]) => [name, () => {}])
  let subscribed = ours
  return (state) => {
    for (const [name, subscriber] of subscribed) {
      if (!diagnosticsChannel.unsubscribe(name, subscriber)) throw new Error(`${name} had no subscriber of light-trace`)
    }
    subscribed = { spans: ours, nobody: [], listened: idle }[state]
    for (const [name, subscriber] of subscribed) diagnosticsChannel.subscribe(name, subscriber)
  }
}

function outboundSubscribers (root) {
  const { undiciSubscribers } = require(path.join(root, 'lib/outbound/undici'))
  const { adapterOf } = require(path.join(root, 'lib/outbound/calls'))
  return [...undiciSubscribers, ...adapterOf('node-redis:command'), ...adapterOf('node-redis:batch')]
}
