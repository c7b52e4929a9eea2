'use strict'

// Prints how long this process took to load a setup, register it and get Fastify ready, in ms.

const started = performance.now()
const config = JSON.parse(process.env.LIGHT_TRACE_BENCH)

main()

async function main () {
  const setup = await require(`../${config.setup}`)(config.options ?? {})
  const app = require('fastify')(setup.fastify)
  if (setup.register) await setup.register(app)
  await app.ready()
  process.stdout.write(String(performance.now() - started))
  process.exit(0)
}
