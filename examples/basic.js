'use strict'

// The whole setup: register the plugin, and every request gets a span.
// Without `exporter`, spans go to the collector at OTEL_EXPORTER_OTLP_ENDPOINT, or on localhost:4318.

const Fastify = require('fastify')
const lightTrace = require('light-trace')

async function main () {
  const app = Fastify()
  await app.register(lightTrace, { serviceName: 'shop', exporter: 'console' })

  app.get('/users/:id', async (request) => {
    request.trace.span.setAttribute('user.id', request.params.id)
    return { id: request.params.id, traceId: request.trace.traceId }
  })
  app.get('/broken', async () => { throw new TypeError('no such user') })

  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  await fetch(`${origin}/users/7`)
  await fetch(`${origin}/broken`)
  await fetch(`${origin}/nothing-here`)
  await app.close()
}

main()

// Prints:
// SERVER GET /users/:id … ms trace_id=…
// SERVER GET /broken ERROR error.type=TypeError (no such user) … ms trace_id=…
// SERVER GET … ms trace_id=…
