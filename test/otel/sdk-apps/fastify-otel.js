'use strict'

// @fastify/otel and @fastify/request-context in the same application.

const { createRequire } = require('node:module')
const path = require('node:path')

const load = createRequire(path.join(process.env.FIXTURE, 'kit.js'))
const { api, Fastify, lightTrace } = require(path.join(process.env.FIXTURE, 'kit.js'))
const { requestContext, fastifyRequestContext } = load('@fastify/request-context')

main()

async function main () {
  const spans = []
  const app = Fastify({ forceCloseConnections: true })
  await app.register(lightTrace, { spanProcessors: [{ onStart () {}, onEnd: (span) => spans.push(span), async forceFlush () {}, async shutdown () {} }] })
  if (process.argv[3] === 'otel') {
    const { FastifyOtelInstrumentation } = load('@fastify/otel')
    await app.register(new FastifyOtelInstrumentation({ registerOnInitialization: false }).plugin())
  }
  await app.register(fastifyRequestContext)
  const seen = []
  app.get('/users/:id', async (request) => {
    requestContext.set('user', 7)
    await new Promise((resolve) => setImmediate(resolve))
    seen.push(requestContext.get('user') === 7, lightTrace.current() === request.trace, api.trace.getActiveSpan()?.spanContext().traceId === request.trace.traceId)
    return 'ok'
  })
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  const { status } = await fetch(`${origin}/users/7`)
  await app.close()
  const ids = spans.map((span) => span.spanContext().spanId)
  console.log(JSON.stringify({ status, seen, names: spans.map(({ name, kind }) => [kind, name]), traces: new Set(spans.map((span) => span.spanContext().traceId)).size, doubled: new Set(ids).size !== ids.length }))
  process.exit()
}
