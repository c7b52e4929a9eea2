'use strict'

// Code that knows the OpenTelemetry API alone, as libraries do: its spans are children of the request's, and are exported with it.
// Nothing but the plugin is registered.

const Fastify = require('fastify')
const { trace } = require('@opentelemetry/api')
const lightTrace = require('light-trace')

// A library. It fetched its tracer when it was loaded, long before there was an app.
const tracer = trace.getTracer('my-orm', '2.0.0')
function findUser (id) {
  return tracer.startActiveSpan('users.find', async (span) => {
    span.setAttribute('orm.model', 'User')
    await tracer.startActiveSpan('connect', async (inner) => inner.end())
    span.end()
    return { id }
  })
}

async function main () {
  const app = Fastify()
  await app.register(lightTrace, { exporter: 'console' })
  app.get('/users/:id', async (request) => {
    const same = trace.getActiveSpan() === request.trace.span
    return { ...await findUser(request.params.id), same }
  })
  console.log((await app.inject('/users/7')).body)
  await app.close()
}

main()

// Prints:
// SERVER GET /users/:id … ms trace_id=…
//   INTERNAL users.find … ms
//     INTERNAL connect … ms
// {"id":"7","same":true}
