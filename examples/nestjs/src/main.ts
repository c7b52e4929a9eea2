import 'reflect-metadata'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'
import lightTrace from 'light-trace'
import { AllErrors } from './all-errors.js'
import { CatsModule } from './cats.js'

// Registered before Nest gets the adapter, so that middleware, guards, pipes, interceptors and filters run in the request's context.
const adapter = new FastifyAdapter()
await adapter.getInstance().register(lightTrace, { serviceName: 'cats' })

const app = await NestFactory.create<NestFastifyApplication>(CatsModule, adapter)
app.useGlobalFilters(new AllErrors(app.getHttpAdapter()))
app.enableShutdownHooks() // SIGTERM closes the app, which sends the remaining spans
await app.listen(process.env.PORT ?? 3000)
console.log(`Listening at ${await app.getUrl()}`)
