'use strict'

// Prints, as JSON, how long this process took to load a setup and Fastify (`requireMs`) and to register and
// get ready (`registerMs`), its CPU time by then, all threads, and how many files were loaded. With `answers` it has
// answered a first request too.

const started = performance.now()
const startedCpu = process.cpuUsage()
const { setup: file, options, listFiles, answers } = JSON.parse(process.env.LIGHT_TRACE_BENCH)

main()

async function main () {
  const setup = await require(`../${file}`)(options ?? {})
  const Fastify = require('fastify')
  const loaded = performance.now()
  const app = Fastify(setup.fastify)
  if (setup.register) await setup.register(app)
  if (answers) app.get('/', async () => ({ hello: 'world' }))
  await app.ready()
  if (answers) await app.inject('/')
  const ready = performance.now()
  const { user, system } = process.cpuUsage(startedCpu)
  const files = Object.keys(require.cache)
  process.stdout.write(JSON.stringify({
    version: process.version,
    requireMs: loaded - started,
    registerMs: ready - loaded,
    totalMs: ready - started,
    cpuMs: (user + system) / 1000,
    files: listFiles ? files : files.length
  }))
  process.exit(0)
}
