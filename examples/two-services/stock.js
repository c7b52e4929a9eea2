'use strict'

// The service that the shop calls. Its requests continue the caller's trace.

const Fastify = require('fastify')
const lightTrace = require('light-trace')

const LEFT = { tea: 3, pot: 0 }

async function main () {
  const app = Fastify({ logger: true })
  await app.register(lightTrace, { serviceName: 'stock' })
  app.get('/stock/:item', async (request, reply) => {
    const left = LEFT[request.params.item]
    if (left === undefined) return reply.code(404).send({ error: 'no such item' })
    return request.trace.withSpan('count the shelf', async () => ({ left }))
  })
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => app.close())
  await app.listen({ port: process.env.STOCK_PORT ?? 3001 })
}

main()
