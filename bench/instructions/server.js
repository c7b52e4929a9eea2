'use strict'

// The process that is counted: the same server as in the other benches, with no timers of its own around it.
//
// LIGHT_TRACE_BENCH holds { setup, options, upstream, down } as JSON.

const path = require('node:path')
const { answer } = require('../run/ipc')
const accountsIn = require('../server/accounts')

const FLUSH_MS = 60_000 // under valgrind everything takes about thirty times as long
// At that speed a collector that is down would be retried that many times more often per request, and the count would depend on the
// machine's load. Timers are slowed down by this factor, which is more than enough.
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
    // Called before and after a count, so that the count includes sending exactly its own spans. With a collector that is down there is
    // nothing to wait for.
    async flush () {
      if (setup.flush && !config.down) await setup.flush(server.app, FLUSH_MS)
      return setup.counts?.(server.app) ?? null
    },
    // Sets which listeners the channels of a request's calls have, see ../server/call-channels.js.
    listen: (state) => setup.listen(state),
    // Needs --expose-gc.
    collect () {
      globalThis.gc()
      return process.memoryUsage()
    },
    memory: () => process.memoryUsage(),
    figures: () => ({ ...process.cpuUsage(), rss: process.memoryUsage.rss() })
  })
  process.send({ ready: true, port: server.port, runtime: process.version, versions: { ...server.versions, ...setup.versions?.() } })
}

// Slows down the timers of light-trace's export, which takes them from this module when it loads.
function slowDownTimers () {
  const timers = require(path.join(process.env.LIGHT_TRACE_ROOT, 'lib/runtime/timers'))
  const { setTimeout } = timers
  timers.setTimeout = (fn, ms, ...args) => setTimeout(fn, ms * TIMES_SLOWER, ...args)
}

// Takes samples as often per request as without valgrind, see lib/features/accounts.js, which an older tree may not have.
function sampleAsOften () {
  const { spaceBy, SPACING_MS } = accountsIn(process.env.LIGHT_TRACE_ROOT)
  spaceBy?.(SPACING_MS * TIMES_SLOWER)
}
