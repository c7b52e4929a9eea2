'use strict'

// The app that is bundled, as CommonJS. It prints what its handler saw of OpenTelemetry's API.

const { trace } = require('@opentelemetry/api')
const fastify = require('fastify')
const lightTrace = require('light-trace')

const early = trace.getTracer('shop') // at load time, before anything is registered, as libraries do

module.exports = main()

async function main () {
  const app = fastify({ logger: { level: 'warn' } })
  await app.register(lightTrace)
  app.get('/users/:id', async (request) => early.startActiveSpan('load user', (span) => {
    const inSpan = trace.getActiveSpan() === span
    span.end()
    return { inSpan, active: trace.getActiveSpan()?.spanContext().traceId === request.trace.traceId, current: lightTrace.current() === request.trace }
  }))
  console.log((await app.inject('/users/7')).body)
  await app.close()
}
