'use strict'

// Prints how light-trace works together with Sentry (the package is the first argument), and whether both use the same trace.

const sentry = require(process.argv[2])
sentry.init({ dsn: 'http://key@127.0.0.1:9/1', tracesSampleRate: 1 })
const fastify = require('fastify')
const lightTrace = require('light-trace')

async function main () {
  const app = fastify()
  await app.register(lightTrace)
  app.get('/', async ({ trace }) => ({ mode: app.lightTrace.stats().mode, isOneTrace: sentry.getActiveSpan()?.spanContext().traceId === trace.traceId }))
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  console.log(await (await fetch(origin)).text())
  process.exit()
}

main()
