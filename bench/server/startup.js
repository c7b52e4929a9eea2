'use strict'

// Loads a setup and Fastify, registers and becomes ready. With `answers`, it also answers a first request.

const { setup: file, options, answers } = JSON.parse(process.env.LIGHT_TRACE_BENCH)

main()

async function main () {
  const setup = await require(`../${file}`)(options ?? {})
  const Fastify = require('fastify')
  const app = Fastify(setup.fastify)
  if (setup.register) await setup.register(app)
  if (answers) app.get('/', async () => ({ hello: 'world' }))
  await app.ready()
  if (answers) await app.inject('/')
  process.exit(0)
}
