'use strict'

// Code that only uses the OpenTelemetry API, as libraries do. Its spans become children of the request's span and are exported with it.
// Only the plugin needs to be registered.

const Fastify = require('fastify')
const { trace } = require('@opentelemetry/api')
const lightTrace = require('light-trace')

// A library. It got its tracer when it was loaded, long before the app existed.
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
