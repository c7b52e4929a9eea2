'use strict'

const { test } = require('tap')
const Fastify = require('fastify')
const { inspect } = require('node:util')
const lightTrace = require('../..')

async function injectable (t) {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: 'none', serviceName: 'shop' })
  app.get('/inner', (request, reply) => { reply.send(request.trace.traceId) })
  app.get('/outer', (request, reply) => {
    app.inject('/inner', (error, response) => {
      reply.send(error ?? { inner: response.payload, outer: request.trace.traceId, same })
    })
    const same = lightTrace.current() === request.trace
  })
  await app.ready()
  return app
}

test('inject() with a callback keeps its caller in the caller\'s own context', async (t) => {
  const app = await injectable(t)
  const { inner, outer, same } = (await app.inject('/outer')).json()
  t.equal(same, true)
  t.equal(inner, outer, 'the inner request continues the trace')
  await new Promise((resolve) => {
    app.inject('/inner', resolve)
    t.equal(lightTrace.current(), undefined)
  })
})

test('request.trace prints its own data', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: 'none', serviceName: 'shop' })
  let trace
  app.get('/', async (request) => {
    trace = request.trace
    trace.set('user', 'ann')
    return JSON.stringify(trace)
  })
  const { payload } = await app.inject('/')
  t.same(Object.keys(JSON.parse(payload)), ['traceId', 'spanId', 'sampled'])
  t.match(inspect(trace), `traceId: '${trace.traceId}'`)
  t.match(inspect(trace), "user: 'ann'")
  t.notMatch(inspect({ trace, span: trace.span }), 'shop')
})
