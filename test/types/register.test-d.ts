import '../../register'
import fastify from 'fastify'
import { expectType } from 'tsd'
import { RequestTrace } from '../..'

// The preload alone brings the types.
fastify().get('/', async (request) => {
  expectType<RequestTrace>(request.trace)
})
