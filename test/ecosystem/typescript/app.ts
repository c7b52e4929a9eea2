// A strict app, with TypeBox and Zod schemas.
import { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify from 'fastify'
import lightTrace, { type LightTraceStats, type RequestTrace } from 'light-trace'
import { serializerCompiler, validatorCompiler, ZodTypeProvider } from 'fastify-type-provider-zod'
import { Type } from 'typebox'
import { z } from 'zod'

declare module 'light-trace' {
  interface LightTraceStore { tenant: string }
}

const app = Fastify()
const unset = process.env.NOT_SET === undefined ? undefined : 5 // like a value from the environment
await app.register(lightTrace, { exporter: 'none', keep: true, spans: { handler: true }, serviceName: process.env.NOT_SET, buffer: { maxBytes: unset }, outbound: { fold: { after: unset } } })

app.withTypeProvider<TypeBoxTypeProvider>().get('/box/:id', { schema: { params: Type.Object({ id: Type.Number() }) } }, async (request) => {
  const trace: RequestTrace = request.trace
  trace.set('tenant', 'acme')
  const tenant: string | undefined = lightTrace.current()?.get('tenant')
  return { id: request.params.id + 1, tenant }
})

await app.register(async (scope) => {
  scope.setValidatorCompiler(validatorCompiler)
  scope.setSerializerCompiler(serializerCompiler)
  scope.withTypeProvider<ZodTypeProvider>().get('/zod/:id', { schema: { params: z.object({ id: z.coerce.number() }) }, config: { trace: { attributes: { tier: 'gold' } } } }, async (request) =>
    request.trace.withSpan('add', async () => ({ id: request.params.id + 1 })))
})

console.log((await app.inject('/box/1')).body, (await app.inject('/zod/1')).body)
const stats: LightTraceStats = app.lightTrace.stats()
console.log(stats.spans.started)
await app.close()
