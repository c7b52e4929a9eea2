// GraphQL with mercurius, and tRPC: one SERVER span per request, and the request's context in resolvers and procedures.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTRPCClient, httpBatchLink } from '@trpc/client'
import { initTRPC, TRPCError } from '@trpc/server'
import { fastifyTRPCPlugin } from '@trpc/server/adapters/fastify'
import fastify from 'fastify'
import lightTrace from 'light-trace'
import { createCollector } from 'light-trace/testing'
import mercurius from 'mercurius'

test('mercurius: resolvers are in the request’s context', async (t) => {
  const collector = createCollector()
  const app = fastify()
  t.after(() => app.close())
  await app.register(lightTrace, { spanProcessors: [collector] })
  await app.register(mercurius, {
    schema: 'type Query { add(x: Int, y: Int): Int }',
    resolvers: { Query: { add: (_, { x, y }) => lightTrace.current().withSpan('add', async () => x + y) } }
  })
  const { body } = await app.inject({ method: 'POST', url: '/graphql', payload: { query: '{ add(x: 2, y: 3) }' } })
  assert.deepEqual(JSON.parse(body), { data: { add: 5 } })
  assert.equal(await collector.tree(), 'SERVER POST /graphql\n  INTERNAL add')
})

test('tRPC: procedures are in the request’s context, and onError passes the error to the span', async (t) => {
  const trpc = initTRPC.create()
  const router = trpc.router({
    hello: trpc.procedure.query(() => lightTrace.current().withSpan('greet', async () => 'hello')),
    broken: trpc.procedure.query(() => { throw new TRPCError({ code: 'INTERNAL_SERVER_ERROR', message: 'out of greetings' }) })
  })
  const collector = createCollector()
  const app = fastify()
  t.after(() => app.close())
  await app.register(lightTrace, { spanProcessors: [collector] })
  await app.register(fastifyTRPCPlugin, { prefix: '/trpc', trpcOptions: { router, onError: ({ error, req }) => req.trace.fail(error) } })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const client = createTRPCClient({ links: [httpBatchLink({ url: `http://127.0.0.1:${app.server.address().port}/trpc` })] })
  assert.equal(await client.hello.query(), 'hello')
  await assert.rejects(client.broken.query())
  const spans = await collector.spans()
  assert.deepEqual(spans.map(({ kind, name, status }) => `${kind} ${name} ${status.code}`), ['SERVER GET /trpc/:path UNSET', 'INTERNAL greet UNSET', 'SERVER GET /trpc/:path ERROR'])
  assert.equal(spans[2].attributes['error.type'], 'INTERNAL_SERVER_ERROR')
})
