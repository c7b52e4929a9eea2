'use strict'

// A stage span changes only its own stage, and only as a user's hook would.
// Feature: stages

const { test } = require('tap')
const Fastify = require('fastify')
const { tracedApp } = require('../support/traced-app')

const STAGES = ['onRequest', 'preParsing', 'preValidation', 'preHandler', 'preSerialization', 'onSend', 'onResponse', 'onError']

// The error that reply.send throws for an object with a text content type, inside the handler.
function sendsInvalid (app) {
  app.get('/', (request, reply) => {
    try {
      reply.type('text/html').send({})
    } catch (error) {
      reply.code(555).type('text/plain').send(`thrown into the handler: ${error.code}`)
    }
  })
}

async function answerOf (app) {
  const { statusCode, payload } = await app.inject('/')
  return `${statusCode} ${payload}`
}

for (const stage of STAGES) {
  test(`with a span of ${stage}, where it has no hooks, reply.send throws into the handler as without light-trace`, async (t) => {
    const bare = Fastify()
    t.teardown(() => bare.close())
    sendsInvalid(bare)
    const { app } = await tracedApp(t, { listen: false, trace: { spans: { hooks: [stage] } }, routes: sendsInvalid })
    const { app: ofRoute } = await tracedApp(t, {
      listen: false,
      routes (app) {
        app.get('/', { config: { trace: { spans: { hooks: [stage] } } } }, (request, reply) => {
          try {
            reply.type('text/html').send({})
          } catch (error) {
            reply.code(555).type('text/plain').send(`thrown into the handler: ${error.code}`)
          }
        })
      }
    })
    const expected = await answerOf(bare)
    t.equal(await answerOf(app), expected)
    t.equal(await answerOf(ofRoute), expected)
  })
}

test('light-trace adds hooks to the application only for requests and errors, and hooks for stages only to routes with hooks', async (t) => {
  const { app } = await tracedApp(t, { listen: false, trace: { spans: { hooks: ['preHandler'], handler: true } }, routes: (app) => app.get('/', async () => 'ok') })
  const kHooks = Object.getOwnPropertySymbols(app).find(({ description }) => description === 'fastify.hooks')
  const used = Object.entries(app[kHooks]).filter(([, hooks]) => Array.isArray(hooks) && hooks.length > 0).map(([name]) => name)
  t.same(used.filter((name) => STAGES.includes(name)).sort(), ['onError', 'onRequest'])
})

async function treeOf (t, spans, routes, url) {
  const { app, collector } = await tracedApp(t, { listen: false, trace: { spans }, routes })
  const { statusCode } = await app.inject(url)
  return `${statusCode}\n${await collector.tree()}`
}

test('a custom not-found handler has a span', async (t) => {
  const routes = (handler) => (app) => {
    app.setNotFoundHandler({ preHandler: (request, reply, done) => done() }, handler)
    app.get('/', async () => 'ok')
  }
  const inside = async (request) => { await request.trace.withSpan('inside', async () => {}) }
  t.equal(await treeOf(t, { handler: true }, routes(async (request, reply) => { await inside(request); reply.code(404); return 'mine' }), '/none'),
    '404\nSERVER GET\n  INTERNAL handler\n    INTERNAL inside')
  t.equal(await treeOf(t, { handler: true }, routes((request, reply) => { setImmediate(() => reply.code(404).send('mine')) }), '/none'),
    '404\nSERVER GET\n  INTERNAL handler')
  t.equal(await treeOf(t, { handler: true }, routes(async () => { throw new TypeError('no') }), '/none'),
    '500\nSERVER GET ERROR error.type=TypeError\n  INTERNAL handler ERROR error.type=TypeError')
  t.equal(await treeOf(t, { handler: true }, routes(async (request, reply) => reply.code(404).send('mine')), '/'),
    '200\nSERVER GET /\n  INTERNAL handler', 'a route has a span')
  t.equal(await treeOf(t, { handler: true, hooks: ['preHandler'] }, routes(async (request, reply) => reply.code(404).send('mine')), '/none'),
    '404\nSERVER GET\n  INTERNAL preHandler\n  INTERNAL handler')
})

test('Fastify\'s own not-found handler has no span, nor does any handler without the option', async (t) => {
  t.equal(await treeOf(t, { handler: true }, (app) => app.get('/', async () => 'ok'), '/none'), '404\nSERVER GET')
  t.equal(await treeOf(t, { hooks: ['onError'] }, (app) => app.setNotFoundHandler(async (request, reply) => reply.code(404).send('mine')), '/none'), '404\nSERVER GET')
})

test('a custom not-found handler in a child scope has a span', async (t) => {
  const routes = (app) => app.register(async (child) => {
    child.setNotFoundHandler(async (request, reply) => reply.code(404).send('mine'))
    child.get('/there', async () => 'ok')
  }, { prefix: '/child' })
  t.equal(await treeOf(t, { handler: true }, routes, '/child/none'), '404\nSERVER GET\n  INTERNAL handler')
})
