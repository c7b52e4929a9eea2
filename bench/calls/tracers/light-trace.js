'use strict'

// light-trace with its defaults. A slice is one request of an app, whose handler makes the calls.

const diagnosticsChannel = require('node:diagnostics_channel')
const path = require('node:path')
const Fastify = require('fastify')

// LIGHT_TRACE_ROOT: another checkout's light-trace, with this checkout's bench.
const root = process.env.LIGHT_TRACE_ROOT ?? path.join(__dirname, '../../..')

module.exports = async function open (url) {
  const app = Fastify()
  await app.register(require(root), { serviceName: 'bench', exporter: { url } })
  let work
  app.get('/slice', async () => {
    await work()
    return 'ok'
  })
  await app.ready()
  const subscribers = outboundSubscribers()
  let isSubscribed = true
  return {
    // By hand, as the app does it when it starts and closes.
    subscribe () {
      if (!isSubscribed) for (const [name, subscriber] of subscribers) diagnosticsChannel.subscribe(name, subscriber)
      isSubscribed = true
    },
    unsubscribe () {
      if (!isSubscribed) return
      for (const [name, subscriber] of subscribers) {
        if (!diagnosticsChannel.unsubscribe(name, subscriber)) throw new Error(`${name} had no subscriber of light-trace`)
      }
      isSubscribed = false
    },
    async inSpan (fn) {
      work = fn
      const { statusCode, payload } = await app.inject('/slice')
      if (statusCode !== 200) throw new Error(payload)
    },
    flush: () => app.lightTrace.flush(),
    counts () {
      const { accepted, delivered } = app.lightTrace.stats().spans
      return { created: accepted, delivered }
    }
  }
}

function outboundSubscribers () {
  const { undiciSubscribers } = require(path.join(root, 'lib/outbound/undici'))
  const { adapterOf } = require(path.join(root, 'lib/outbound/calls'))
  return [...undiciSubscribers, ...adapterOf('node-redis:command'), ...adapterOf('node-redis:batch')]
}
