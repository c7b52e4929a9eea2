'use strict'

// A shop that looks up a product in Redis, then in PostgreSQL.

const Fastify = require('fastify')
const lightTrace = require('light-trace')
const { Pool } = require('pg')
const { createClient } = require('redis')

const pool = lightTrace.traceClient(new Pool({ user: process.env.PGUSER ?? 'postgres' })) // pg publishes no diagnostics channel, so it needs this call
const redis = createClient({ url: process.env.REDIS_URL }) // redis publishes its commands, so it needs nothing

async function main () {
  const app = Fastify({ logger: true })
  await app.register(lightTrace, { serviceName: 'shop' })
  app.addHook('onClose', async () => { await Promise.all([pool.end(), redis.close()]) })

  app.get('/products/:id', { schema: { params: { properties: { id: { type: 'integer' } } } } }, async (request, reply) => {
    const key = `product:${request.params.id}`
    const cached = await redis.get(key)
    if (cached !== null) return JSON.parse(cached)
    const { rows: [product] } = await pool.query('SELECT id, name FROM products WHERE id = $1', [request.params.id])
    if (product === undefined) return reply.code(404).send({ error: 'no such product' })
    await redis.set(key, JSON.stringify(product), { expiration: { type: 'EX', value: 60 } })
    return product
  })

  await redis.connect()
  await pool.query("CREATE TABLE IF NOT EXISTS products AS SELECT * FROM (VALUES (1, 'tea'), (2, 'pot')) AS products (id, name)")
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => app.close()) // sends the remaining spans
  await app.listen({ port: process.env.PORT ?? 3000 })
}

main()
