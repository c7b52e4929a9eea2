'use strict'

// A small shop with typical routes. One calls another, one fails, one is slow, one streams.

const { Readable } = require('node:stream')
const { setTimeout } = require('node:timers/promises')
const Fastify = require('fastify')
const lightTrace = require('light-trace')

const SLOW_MS = 120
const ROWS = 5

async function buildShop (traceOptions) {
  const app = Fastify()
  await app.register(lightTrace, { serviceName: 'light-trace-demo', ...traceOptions })
  app.get('/users/:id', findUser)
  app.get('/stock/:item', async (request) => ({ item: request.params.item, left: 3 }))
  app.post('/orders', { schema: { body: orderSchema } }, placeOrder)
  app.get('/report', slowReport)
  app.get('/export', streamRows)
  return app
}

async function findUser (request) {
  request.trace.span.setAttribute('user.id', request.params.id)
  return request.trace.withSpan('load user', async () => {
    await setTimeout(2)
    return { id: request.params.id }
  })
}

const orderSchema = {
  type: 'object',
  required: ['item'],
  properties: { item: { type: 'string' } }
}

async function placeOrder (request) {
  await request.trace.withSpan('reserve stock', async (span) => {
    span.setAttribute('order.item', request.body.item)
    // Calls the shop itself as if it were another service: the call gets a CLIENT span and passes the trace on.
    const response = await fetch(`${request.server.listeningOrigin}/stock/${request.body.item}`)
    return response.json()
  })
  await request.trace.withSpan('charge card', async () => {
    throw Object.assign(new Error('the bank does not answer'), { code: 'BANK_TIMEOUT' })
  })
}

async function slowReport (request) {
  return request.trace.withSpan('add up', async () => {
    await setTimeout(SLOW_MS)
    return { total: 42 }
  })
}

// Its span ends when the last row has been sent, not when the handler returns.
async function streamRows (request, reply) {
  reply.type('text/csv')
  return Readable.from(rows())
}

async function * rows () {
  for (let row = 1; row <= ROWS; row++) {
    yield `${row},${row * row}\n`
    await setTimeout(10)
  }
}

module.exports = { buildShop }
