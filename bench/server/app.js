'use strict'

// The Fastify app under measurement. It has the same routes in every case, written as a user would write them.

const http = require('node:http')

module.exports = addRoutes

function addRoutes (app, { upstream, redis, postgresql, fetches = false, hasFreshTexts = false, manyAttributes, annotate = () => {}, inSpan = (request, name, fn) => fn(), traceClient = (client) => client }) {
  app.get('/', async () => ({ hello: 'world' }))

  app.get('/users/:id', async () => ({ hello: 'world' }))

  let n = 0 // for values that take turns or never repeat
  app.get('/statuses', async (request, reply) => {
    reply.code(210 + n++ % 8)
    return { hello: 'world' }
  })

  app.get('/keys', async (request) => {
    annotate(request, `app.key.${n++}`, n)
    return { hello: 'world' }
  })

  app.get('/names', async (request) => {
    inSpan(request, `step ${n++}`, nothing)
    return { hello: 'world' }
  })

  app.get('/throws', async () => {
    throw new Error('no such order')
  })

  for (const [path, level] of [['/lines', 'info'], ['/debug', 'debug']]) {
    app.get(path, async ({ log }) => {
      for (let i = 0; i < 10; i++) log[level]({ order: 'order-7', step: i, took: 1.25, stock: { sku: 'a-1', left: 3 } }, 'the stock was reserved')
      return { hello: 'world' }
    })
  }

  const agent = new http.Agent({ keepAlive: true, maxSockets: 256 })
  app.get('/outbound', async () => ({ upstream: await statusOf(upstream, agent) }))

  app.get('/fetch', async () => {
    const response = await fetch(upstream)
    await response.text()
    return { upstream: response.status }
  })

  // What a typical service does: validates a body, writes a log line, sets attributes, runs a step, looks something up, and answers with a
  // response schema.
  const addCheckout = (lookUp) => app.post('/checkout', { schema: { body: checkoutSchema, response: { 200: checkoutAnswerSchema } } }, async (request) => {
    const { order, plan, items } = request.body
    annotate(request, 'app.order.id', order)
    annotate(request, 'app.user.plan', plan)
    request.log.info({ order }, 'checkout')
    const user = await inSpan(request, 'load user', lookUp)
    return { plan, user, count: items.reduce((sum, { count }) => sum + count, 0) }
  })

  if (redis !== undefined) addCheckout(addRedis(app, redis))
  else if (postgresql !== undefined) addCheckout(addPostgresql(app, postgresql, traceClient, hasFreshTexts))
  else if (fetches) addCheckout(async () => (await fetch(upstream)).text())

  app.get('/attributes', async (request) => {
    if (manyAttributes) manyAttributes(request)
    return { hello: 'world' }
  })
}

// Each returns the function that looks up a user.

function addRedis (app, port) {
  const { createClient } = require('redis')
  // The client's own timeout is an AbortSignal per command, whose timer runs on wall-clock time. Under valgrind far fewer requests run
  // before it fires, so it is switched off.
  const client = createClient({ url: `redis://127.0.0.1:${port}`, commandOptions: { timeout: 0 } })
  app.addHook('onReady', async () => {
    await client.connect()
    await client.set('user:1', 'a value of twenty ch')
  })
  app.get('/redis', async () => ({ value: await client.get('user:1') }))
  app.get('/redis-often', async () => {
    let value = null
    for (let i = 0; i < 21; i++) value = await client.get('user:1')
    return { value }
  })
  const commands = ['get', 'strLen', 'exists', 'ttl']
  let n = 0
  app.get('/redis-other', async () => {
    await client[commands[n % commands.length]](`user:${n++}`)
    return { hello: 'world' }
  })
  return () => client.get('user:1')
}

function addPostgresql (app, port, traceClient, hasFreshTexts) {
  const { Client } = require('pg') // not a pool: under valgrind requests wait for each of its connections, and the wait has a span
  const client = traceClient(new Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' }))
  app.addHook('onReady', async () => {
    await client.connect()
    await client.query('CREATE TABLE IF NOT EXISTS users (id INT PRIMARY KEY, name TEXT)')
    await client.query("INSERT INTO users VALUES (1, 'a value of twenty ch') ON CONFLICT DO NOTHING")
  })
  let n = 1
  if (hasFreshTexts) return async () => (await client.query(`SELECT name FROM users WHERE id IN (1, ${++n})`)).rows[0].name
  return async () => (await client.query('SELECT name FROM users WHERE id = $1', [1])).rows[0].name
}

function nothing () {}

function statusOf (url, agent) {
  return new Promise((resolve, reject) => {
    http.get(url, { agent }, (response) => {
      response.resume()
      response.once('end', () => resolve(response.statusCode))
    }).once('error', reject)
  })
}

const checkoutSchema = {
  type: 'object',
  required: ['order', 'plan', 'items'],
  properties: {
    id: { type: 'integer' },
    order: { type: 'string' },
    plan: { type: 'string' },
    items: {
      type: 'array',
      items: {
        type: 'object',
        required: ['sku', 'count'],
        properties: { sku: { type: 'string' }, count: { type: 'integer', minimum: 1 } }
      }
    }
  }
}
const checkoutAnswerSchema = { type: 'object', properties: { plan: { type: 'string' }, user: { type: 'string' }, count: { type: 'integer' } } }
