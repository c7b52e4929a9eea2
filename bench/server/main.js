'use strict'

// The process under measurement: one per case, alive across all rounds. What is measured is loaded
// before Fastify, as its users load it; then the routes; then it waits to be asked.
//
// Nothing here may load node:http before the setup does: some of them patch it.
//
// LIGHT_TRACE_BENCH holds { setup, options, upstream, down } as JSON.

const { monitorEventLoopDelay } = require('node:perf_hooks')
const { answer } = require('../run/ipc')

const LOOK_EVERY_MS = 10
const FLUSH_DOWN_MS = 50 // there is nobody to wait for
const config = JSON.parse(process.env.LIGHT_TRACE_BENCH)

main().catch((error) => {
  console.error(error)
  process.exit(1)
})

async function main () {
  const setup = await require(`../${config.setup}`)(config.options ?? {})
  const app = require('fastify')(setup.fastify)
  if (setup.register) await setup.register(app)
  require('./app')(app, { upstream: config.upstream, manyAttributes: setup.manyAttributes })
  await app.listen({ host: '127.0.0.1', port: 0 })
  if (setup.prove) await setup.prove(app)

  // The histogram holds the time between two looks at the loop, so the interval is taken off again.
  const delay = monitorEventLoopDelay({ resolution: LOOK_EVERY_MS })

  answer({
    async begin () {
      delay.reset()
      delay.enable()
      return figures()
    },
    // The spans of a round are its work: what is left in queues is sent, and its CPU time counted.
    async end ({ flushMs }) {
      const loadEnd = { ...figures(), eventLoopDelayP99Ms: Math.max(0, delay.percentile(99) / 1e6 - LOOK_EVERY_MS) }
      delay.disable()
      if (setup.flush) await setup.flush(app, config.down ? FLUSH_DOWN_MS : flushMs)
      return { loadEnd, flushed: figures() }
    },
    async close () {
      setTimeout(() => process.exit(0), 1000).unref()
      await app.close()
      process.disconnect()
      process.exit(0)
    }
  })

  process.send({ ready: true, port: app.server.address().port, node: process.version, versions: setup.versions })

  function figures () {
    const { user, system } = process.cpuUsage()
    return { cpuMicros: user + system, rssBytes: process.memoryUsage.rss(), counts: setup.counts ? setup.counts(app) : null }
  }
}
