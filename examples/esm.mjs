// light-trace in an ES module. No loader or `--import` is needed: nothing is patched, so the order of imports does not matter.

import Fastify from 'fastify'
import lightTrace, { current } from 'light-trace'
import { createCollector } from 'light-trace/testing'

const collector = createCollector()
const app = Fastify()
await app.register(lightTrace, { spanProcessors: [collector] })
app.get('/', async (request) => current() === request.trace)

const { body } = await app.inject('/')
console.log(body)
console.log(await collector.tree())
await app.close()

// Prints:
// true
// SERVER GET /
