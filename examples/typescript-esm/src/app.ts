// A strict ES module. No loader, no --import: nothing is patched, so the order of imports does not matter.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify from 'fastify'
import lightTrace, { type LightTraceOptions } from 'light-trace'
import { Type } from 'typebox'
import { price } from './price.ts'

// Say once what is in a request's store, and `get`, `set` and `store` know.
declare module 'light-trace' {
  interface LightTraceStore {
    customer: { id: number, plan: 'free' | 'pro' }
  }
}

const options: LightTraceOptions = { serviceName: 'shop' }

const app = Fastify({ logger: true }).withTypeProvider<TypeBoxTypeProvider>()
await app.register(lightTrace, options)

app.get('/customers/:id/price', { schema: { params: Type.Object({ id: Type.Integer() }) } }, async (request) => {
  const { id } = request.params // number
  request.trace.set('customer', { id, plan: id > 100 ? 'free' : 'pro' })
  return request.trace.withSpan('price', async (span) => {
    span.setAttribute('customer.id', id)
    return { price: price() }
  })
})

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => app.close())
await app.listen({ port: Number(process.env.PORT ?? 3000) })
