'use strict'

const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')

const OURS = /trace;desc=(00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-3]), traceparent;desc="\1"/

const routes = {
  'on the reply': (app) => app.get('/', async (request, reply) => { reply.header('server-timing', 'db;dur=53'); return 'ok' }),
  'on the reply, in two parts': (app) => app.get('/', async (request, reply) => { reply.header('server-timing', ['db;dur=53', 'cache;dur=1']); return 'ok' }),
  'on the raw response': (app) => app.get('/', async (request, reply) => { reply.raw.setHeader('server-timing', 'db;dur=53'); return 'ok' }),
  'in an onRequest hook': (app) => {
    app.addHook('onRequest', async (request, reply) => { reply.header('server-timing', 'db;dur=53') })
    app.get('/', async () => 'ok')
  },
  'in an onSend hook': (app) => {
    app.addHook('onSend', async (request, reply) => { reply.header('server-timing', 'db;dur=53') })
    app.get('/', async () => 'ok')
  },
  'in a route\'s own onSend hook': (app) => app.get('/', { onSend: async (request, reply) => { reply.header('server-timing', 'db;dur=53') } }, async () => 'ok'),
  'in an error handler': (app) => {
    app.setErrorHandler((error, request, reply) => reply.code(error.statusCode ?? 500).header('server-timing', 'db;dur=53').send('no'))
    app.get('/', async () => { throw new Error('no') })
  }
}

for (const [where, declare] of Object.entries(routes)) {
  test(`an application's own Server-Timing is kept: ${where}`, async (t) => {
    const { origin } = await tracedApp(t, { trace: { headers: { serverTiming: true } }, routes: declare })
    const text = (await fetch(origin)).headers.get('server-timing')
    t.match(text, OURS)
    t.match(text, /db;dur=53/)
    t.equal(text.match(/;desc=/g).length, 2, text)
  })
}

test('it is also kept without a route, without Fastify, and from an earlier hook', async (t) => {
  const { origin } = await tracedApp(t, {
    trace: { headers: { serverTiming: true } },
    before: (app) => app.addHook('onRequest', (request, reply, done) => { reply.raw.setHeader('server-timing', 'early;dur=1'); done() }),
    routes: (app) => app.get('/raw', (request, reply) => {
      reply.hijack()
      reply.raw.end('ok')
    })
  })
  for (const path of ['/raw', '/nowhere']) {
    const text = (await fetch(origin + path)).headers.get('server-timing')
    t.match(text, OURS)
    t.match(text, /^early;dur=1, /)
  }
})
