'use strict'

// The process under measurement: one per case, alive across all rounds. What is measured is loaded
// before Fastify, as its users load it; then the routes; then it waits to be asked.
//
// Nothing here may load node:http before the setup does: some of them patch it.
//
// LIGHT_TRACE_BENCH holds { setup, options, upstream, down } as JSON.

const { setTimeout: sleep } = require('node:timers/promises')
const { answer } = require('../run/ipc')

const FLUSH_DOWN_MS = 50 // there is nobody to wait for
const config = JSON.parse(process.env.LIGHT_TRACE_BENCH)

main().catch((error) => {
  console.error(error)
  process.exit(1)
})

async function main () {
  const setup = await require(`../${config.setup}`)(config.options ?? {})
  const server = await require('./start-fastify')(setup, config)

  answer({
    begin: figures,
    // The spans of a round are its work: what is left in queues is sent, and its CPU time counted. V8 puts
    // work off until there is time, which a case that waits for its collector has: so all wait alike.
    async end ({ flushMs, settleMs = 0 }) {
      const loadEnd = figures()
      const settled = sleep(settleMs)
      if (setup.flush) await setup.flush(server.app, config.down ? FLUSH_DOWN_MS : flushMs)
      await settled
      return { loadEnd, flushed: figures() }
    }
  })

  process.send({
    ready: true,
    port: server.port,
    runtime: process.version,
    versions: { ...server.versions, ...setup.versions?.() }
  })

  function figures () {
    const { user, system } = process.cpuUsage()
    return { cpuMicros: user + system, rssBytes: process.memoryUsage.rss(), counts: setup.counts ? setup.counts(server.app) : null }
  }
}
