import '../../register'
import fastify from 'fastify'
import { RequestTrace } from '../..'
import { expectTypeOf } from './expect'

// The preload alone provides the types.
fastify().get('/', async (request) => {
  expectTypeOf(request.trace).toBe<RequestTrace>()
})
