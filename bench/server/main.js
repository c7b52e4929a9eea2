'use strict'

// The process under measurement: one per case, alive across all rounds. It loads the tracer before Fastify, as users do, then the
// routes, and then waits for requests over IPC.
//
// Nothing here may load node:http before the setup does, because some setups patch it.
//
// LIGHT_TRACE_BENCH holds { setup, options, upstream, down } as JSON.

const { setTimeout: sleep } = require('node:timers/promises')
const { answer } = require('../run/ipc')

const FLUSH_DOWN_MS = 50 // there is no collector to wait for
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
    // A round's work includes its spans: queued spans are sent, and that CPU time is counted. V8 defers work until the process is idle,
    // which happens in cases that wait for their collector. So all cases wait equally long.
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
