'use strict'

module.exports = startFastify

// Longer than any bench, so that a server that waits for its turn does not close the load's connections.
const KEEP_ALIVE_MS = 3_600_000

async function startFastify (setup, { upstream, redis, postgresql, options }) {
  const app = require('fastify')({ keepAliveTimeout: KEEP_ALIVE_MS, ...setup.fastify, ...options?.fastify })
  if (setup.register) await setup.register(app)
  const { manyAttributes, annotate, inSpan, traceClient } = setup
  require('./app')(app, { upstream, redis, postgresql, fetches: options?.fetches, hasFreshTexts: options?.hasFreshTexts, manyAttributes, annotate, inSpan, traceClient })
  await app.listen({ host: '127.0.0.1', port: 0 })
  if (setup.prove) await setup.prove(app)
  return { app, port: app.server.address().port, versions: { fastify: app.version } }
}
