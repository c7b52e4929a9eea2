'use strict'

// The process that is counted: a server as the other benches start it, with nothing around it that has a timer of its own.
//
// LIGHT_TRACE_BENCH holds { setup, options, upstream, down } as JSON.

const path = require('node:path')
const { answer } = require('../run/ipc')
const accountsIn = require('../server/accounts')

const FLUSH_MS = 60_000 // under valgrind everything takes some thirty times as long
// So a collector that is not there would be asked as many times more often for each request, and what is counted would be the
// machine's load: these timers run as much slower, or more.
const TIMES_SLOWER = 60
const config = JSON.parse(process.env.LIGHT_TRACE_BENCH)

main().catch((error) => {
  console.error(error)
  process.exit(1)
})

async function main () {
  if (process.env.LIGHT_TRACE_COUNTED === 'valgrind') {
    if (config.down) slowDownTimers()
    sampleAsOften()
  }
  const setup = await require(`../${config.setup}`)(config.options ?? {})
  const server = await require('../server/start-fastify')(setup, config)
  answer({
    // Before a count begins and before it ends, so that it has the sending of exactly its own spans. Where nobody takes
    // them there is nothing to wait for.
    async flush () {
      if (setup.flush && !config.down) await setup.flush(server.app, FLUSH_MS)
      return setup.counts?.(server.app) ?? null
    },
    // Who listens to the channels of a request's calls, see ../server/call-channels.js.
    listen: (state) => setup.listen(state),
    // With --expose-gc.
    collect () {
      globalThis.gc()
      return process.memoryUsage()
    },
    memory: () => process.memoryUsage(),
    figures: () => ({ ...process.cpuUsage(), rss: process.memoryUsage.rss() })
  })
  process.send({ ready: true, port: server.port, runtime: process.version, versions: { ...server.versions, ...setup.versions?.() } })
}

// Of light-trace's export, which takes them from here when it is loaded.
function slowDownTimers () {
  const timers = require(path.join(process.env.LIGHT_TRACE_ROOT, 'lib/runtime/timers'))
  const { setTimeout } = timers
  timers.setTimeout = (fn, ms, ...args) => setTimeout(fn, ms * TIMES_SLOWER, ...args)
}

// As often per request as without valgrind, see lib/features/accounts.js. A tree that is compared with may have none.
function sampleAsOften () {
  const { spaceBy, SPACING_MS } = accountsIn(process.env.LIGHT_TRACE_ROOT)
  spaceBy?.(SPACING_MS * TIMES_SLOWER)
}
