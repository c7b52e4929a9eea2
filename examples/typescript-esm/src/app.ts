// A strict ES module. No loader or --import is needed: nothing is patched, so the order of imports does not matter.

import Fastify from 'fastify'
import lightTrace, { type LightTraceOptions } from 'light-trace'
import { price } from './price.ts'

// Declare the content of a request's store once, and `get`, `set` and `store` are typed.
declare module 'light-trace' {
  interface LightTraceStore {
    customer: { id: number, plan: 'free' | 'pro' }
  }
}

const options: LightTraceOptions = { serviceName: 'shop' }

const app = Fastify({ logger: true })
await app.register(lightTrace, options)

const schema = { params: { properties: { id: { type: 'integer' } } } }

app.get<{ Params: { id: number } }>('/customers/:id/price', { schema }, async (request) => {
  const { id } = request.params
  request.trace.set('customer', { id, plan: id > 100 ? 'free' : 'pro' })
  return request.trace.withSpan('price', async (span) => {
    span.setAttribute('customer.id', id)
    return { price: price() }
  })
})

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => app.close())
await app.listen({ port: Number(process.env.PORT ?? 3000) })
