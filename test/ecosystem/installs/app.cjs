'use strict'

const fastify = require('fastify')
const lightTrace = require('light-trace')

const app = fastify({ logger: true })
if (process.env.PRELOADED !== '1') app.register(lightTrace)
app.get('/', async (request) => request.trace.withSpan('work', async () => ({ traceId: request.trace.traceId })))
app.listen({ port: 0, host: '127.0.0.1' })
process.once('SIGTERM', () => app.close())
