'use strict'

// The app under soak, in its own process: a few realistic routes, traced or not.

const { monitorEventLoopDelay } = require('node:perf_hooks')
const { Readable } = require('node:stream')
const { setTimeout: pause } = require('node:timers/promises')
const Fastify = require('fastify')

const RSS_EVERY_MS = 200

main(JSON.parse(process.argv[2]))

async function main ({ trace }) {
  const app = Fastify()
  if (trace !== null) await app.register(require('../..'), trace)
  addRoutes(app)
  await app.listen({ port: 0, host: '127.0.0.1' })

  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  let rssMax = 0
  const timer = setInterval(() => { rssMax = Math.max(rssMax, process.memoryUsage.rss()) }, RSS_EVERY_MS)

  const report = () => ({
    stats: app.lightTrace?.stats() ?? null,
    rssMax,
    delayP99Ms: delay.percentile(99) / 1e6,
    delayMaxMs: delay.max / 1e6
  })
  process.on('message', async (message) => {
    if (message === 'close') {
      clearInterval(timer)
      await app.close()
      process.send({ closed: report() }, () => process.disconnect())
    } else process.send({ report: report() })
  })
  process.send({ port: app.server.address().port })
}

function addRoutes (app) {
  app.get('/', async () => ({ hello: 'world' }))
  app.get('/items/:id', async (request) => {
    await pause(1)
    request.trace?.span.setAttribute('item.kind', 'book')
    const load = async () => { await null; return { id: request.params.id } }
    return request.trace === undefined ? load() : request.trace.withSpan('load item', load)
  })
  app.post('/orders', { schema: { body: { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } } } },
    async (request, reply) => reply.code(201).send({ n: request.body.n }))
  app.get('/error', async () => { throw new Error('as asked for') })
  app.get('/stream', async (request, reply) => reply.type('text/plain').send(Readable.from(['a', 'b', 'c'])))
}
