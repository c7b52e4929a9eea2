'use strict'

// The application for the thirty requests. It does not mention any tracer: one of setups/ is loaded before it. It prints its origin as a
// line of JSON, logs to stderr, and exits on SIGTERM.

const { Readable } = require('node:stream')
const { trace } = require('@opentelemetry/api')
const Fastify = require('fastify')

const { UPSTREAM } = process.env
const app = Fastify({ logger: { level: 'info', stream: process.stderr }, forceCloseConnections: true })

app.get('/', async () => ({ hello: 'world' }))
app.get('/users/:id', async (request) => ({ id: request.params.id }))
app.options('/users/:id', (request, reply) => { reply.code(204).send() })
app.get('/search', async (request) => ({ found: request.query.q }))
app.post('/orders', { schema: { body: { type: 'object', required: ['count'], properties: { count: { type: 'integer' } } } } }, async (request, reply) => {
  reply.code(201)
  return request.body
})
app.route({ method: ['GET', 'PUT'], url: '/either', handler: async () => 'ok' })
app.get('/moved', (request, reply) => reply.redirect('/'))

app.get('/throws', async () => { throw new TypeError('no such thing') })
app.get('/sends-error', (request, reply) => { reply.send(new Error('sent')) })
app.get('/throws-404', async () => { throw Object.assign(new Error('not here'), { statusCode: 404 }) })
app.get('/answers-503', (request, reply) => { reply.code(503).send('later') })
app.get('/hook-fails', { preHandler: async () => { throw new Error('in a hook') } }, async () => 'never')
app.get('/hook-answers', { onRequest: (request, reply) => { reply.code(401).send('who?') } }, async () => 'never')
app.get('/handled', { errorHandler: (error, request, reply) => { reply.code(422).send(error.message) } }, async () => { throw new Error('handled') })

app.get('/stream', (request, reply) => reply.send(Readable.from(['one', 'two'])))
app.get('/broken-stream', (request, reply) => reply.send(Readable.from((async function * () {
  yield 'one'
  await new Promise((resolve) => setImmediate(resolve))
  throw new Error('broken')
})())))
app.get('/never', (request, reply) => { reply.raw.flushHeaders() }) // open until the client disconnects
app.get('/hijacked', (request, reply) => {
  reply.hijack()
  reply.raw.end('mine')
})
app.get('/later', async () => {
  await new Promise((resolve) => setTimeout(resolve, 20))
  return 'at last'
})

app.get('/attribute', async () => {
  trace.getActiveSpan()?.setAttribute('user.id', '7')
  return 'ok'
})
app.get('/own-span', async () => trace.getTracer('shop').startActiveSpan('price', async (span) => {
  await new Promise((resolve) => setImmediate(resolve))
  span.end()
  return 'ok'
}))
app.get('/log', async (request) => {
  request.log.info('from the handler')
  return 'ok'
})
app.get('/fetch', async () => (await fetch(UPSTREAM)).json())

app.register(async (shop) => {
  shop.addHook('onRequest', async () => {})
  shop.addHook('preHandler', async () => {})
  shop.setNotFoundHandler((request, reply) => { reply.code(404).send('no such item') })
  shop.get('/items/:item', async (request) => request.params)
}, { prefix: '/shop' })

app.listen({ port: 0, host: '127.0.0.1' }).then((origin) => console.log(JSON.stringify({ origin })))

process.once('SIGTERM', async () => {
  await app.close()
  await globalThis.shutDownTracing?.()
})
