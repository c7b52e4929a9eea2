'use strict'

// node bench/blocked-loop.js: the cost of the worker of `slow: { blockedLoop: true }`, compared with the same application without it.
//
// Measures memory after 300 requests, and CPU time and context switches twice: while nothing is open, and while a stream is open,
// which makes both threads wake up. For instructions per request:
// npm run bench:instructions -- --case delivered --case blocked-loop

const { fork } = require('node:child_process')
const { once } = require('node:events')
const http = require('node:http')
const { setTimeout: sleep } = require('node:timers/promises')
const Fastify = require('fastify')
const lightTrace = require('..')

const ROUNDS = 2
const REQUESTS = 300
const SETTLED_MS = 4000 // longer than the worker watches after a request
const MEASURED_MS = 6000

if (process.argv[2] === undefined) main()
else measure(process.argv[2] === 'true')

async function main () {
  const rows = []
  for (let round = 0; round < ROUNDS; round++) {
    for (const blockedLoop of [false, true]) {
      const [row] = await once(fork(__filename, [String(blockedLoop)]), 'message')
      rows.push({ blockedLoop, ...row })
    }
  }
  console.log(`Node ${process.versions.node}`)
  console.table(rows)
}

async function measure (blockedLoop) {
  const app = Fastify({ forceCloseConnections: true })
  app.register(lightTrace, { exporter: 'none', slow: { blockedLoop } })
  app.get('/', async () => ({}))
  app.get('/stream', (request, reply) => {
    reply.hijack()
    reply.raw.write('open')
  })
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  const agent = new http.Agent({ keepAlive: true })
  const get = async (path) => {
    const [response] = await once(http.get(origin + path, { agent }), 'response')
    return response.resume()
  }
  for (let i = 0; i < REQUESTS; i++) await once(await get('/'), 'end')
  await sleep(SETTLED_MS)
  const rssMB = process.memoryUsage.rss() / 1e6
  const asleep = await used()
  const stream = await get('/stream')
  const open = await used()
  stream.destroy()
  process.send({ 'rss, MB': rounded(rssMB), 'asleep, % of a core': asleep.cpu, 'open, % of a core': open.cpu, 'asleep, switches/s': asleep.switches, 'open, switches/s': open.switches }, () => process.exit())
}

async function used () {
  const before = { ...process.cpuUsage(), switches: process.resourceUsage().voluntaryContextSwitches }
  await sleep(MEASURED_MS)
  const { user, system } = process.cpuUsage()
  const switches = process.resourceUsage().voluntaryContextSwitches - before.switches
  return { cpu: rounded((user + system - before.user - before.system) / MEASURED_MS / 10), switches: rounded(switches / (MEASURED_MS / 1000)) }
}

function rounded (value) {
  return Math.round(value * 100) / 100
}
