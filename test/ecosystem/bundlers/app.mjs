// The same app as an ES module.

import { trace } from '@opentelemetry/api'
import fastify from 'fastify'
import lightTrace from 'light-trace'

const early = trace.getTracer('shop')

const app = fastify({ logger: { level: 'warn' } })
await app.register(lightTrace)
app.get('/users/:id', async (request) => early.startActiveSpan('load user', (span) => {
  const inSpan = trace.getActiveSpan() === span
  span.end()
  return { inSpan, active: trace.getActiveSpan()?.spanContext().traceId === request.trace.traceId, current: lightTrace.current() === request.trace }
}))
console.log((await app.inject('/users/7')).body)
await app.close()
