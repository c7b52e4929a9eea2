// The preload alone provides the types.
import 'light-trace/register'
import Fastify from 'fastify'

const app = Fastify()
app.get('/', async (request) => request.trace.traceId.length)
console.log((await app.inject('/')).body)
await app.close()
