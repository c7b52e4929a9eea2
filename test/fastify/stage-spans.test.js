'use strict'

// Feature: stages

const diagnosticsChannel = require('node:diagnostics_channel')
const { test } = require('tap')
const Fastify = require('fastify')
const fp = require('fastify-plugin')
const lightTrace = require('../..')
const { collectorFor } = require('../support/collector')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')
const { upstream } = require('../support/upstream')

const CHANNEL = 'tracing:fastify.request.handler:start'
const wait = () => new Promise((resolve) => setImmediate(resolve))

// Returns the tree of one injected request.
async function treeOf (t, spans, routes, url = '/go') {
  const { app, collector } = await tracedApp(t, { listen: false, trace: { spans }, routes })
  const { statusCode } = await app.inject(url)
  return `${statusCode}\n${await collector.tree()}`
}

test('the handler is a span, and its work is below it', async (t) => {
  const { origin } = await upstream(t)
  t.equal(await treeOf(t, { handler: true }, (app) => {
    app.addHook('preHandler', async (request) => { await request.trace.withSpan('before', wait) })
    app.get('/go', async (request) => {
      await request.trace.withSpan('inside', () => fetch(origin).then((response) => response.text()))
      return 'ok'
    })
  }), '200\nSERVER GET /go\n  INTERNAL before\n  INTERNAL handler\n    INTERNAL inside\n      CLIENT GET')
})

test('the span of a handler ends, however it answers', async (t) => {
  const routes = (app) => {
    app.get('/sync', (request, reply) => { reply.send('ok') })
    app.get('/callback', (request, reply) => { setImmediate(() => reply.send('ok')) })
    app.get('/throws', () => { throw new TypeError('no') })
    app.get('/rejects', async () => { await wait(); throw new TypeError('no') })
    app.get('/client-error', async () => { throw Object.assign(new Error('no'), { statusCode: 400 }) })
    app.get('/hijacks', (request, reply) => { reply.hijack(); setImmediate(() => reply.raw.end('ok')) })
    app.get('/hijacks-async', async (request, reply) => { reply.hijack(); await wait(); reply.raw.end('ok') })
  }
  const handler = (path, suffix = '') => `SERVER GET ${path}${suffix}\n  INTERNAL handler${suffix}`
  t.equal(await treeOf(t, { handler: true }, routes, '/sync'), `200\n${handler('/sync')}`)
  t.equal(await treeOf(t, { handler: true }, routes, '/callback'), `200\n${handler('/callback')}`)
  t.equal(await treeOf(t, { handler: true }, routes, '/hijacks'), `200\n${handler('/hijacks')}`)
  t.equal(await treeOf(t, { handler: true }, routes, '/hijacks-async'), `200\n${handler('/hijacks-async')}`)
  t.equal(await treeOf(t, { handler: true }, routes, '/throws'), `500\n${handler('/throws', ' ERROR error.type=TypeError')}`)
  t.equal(await treeOf(t, { handler: true }, routes, '/rejects'), `500\n${handler('/rejects', ' ERROR error.type=TypeError')}`)
  t.equal(await treeOf(t, { handler: true }, routes, '/client-error'), `400\n${handler('/client-error')}`)
})

test('a handler that does not run has no span', async (t) => {
  const routes = (app) => app.get('/go', { preHandler: async () => { throw new TypeError('no') } }, async () => 'ok')
  t.equal(await treeOf(t, { handler: true }, routes), '500\nSERVER GET /go ERROR error.type=TypeError')
})

test('Fastify\'s channel is subscribed to only while an app asks for it', async (t) => {
  const routes = (app) => app.get('/go', async () => 'ok')
  const without = await tracedApp(t, { listen: false, routes })
  t.notOk(diagnosticsChannel.hasSubscribers(CHANNEL))
  const { app } = await tracedApp(t, {
    listen: false,
    routes: (app) => {
      app.get('/asks', { config: { trace: { spans: { handler: true } } } }, async () => 'ok')
      app.get('/go', async () => 'ok')
    }
  })
  await app.inject('/asks')
  t.ok(diagnosticsChannel.hasSubscribers(CHANNEL), 'from the first request of the route with the option')
  await without.app.inject('/go')
  t.equal(await without.collector.tree(), 'SERVER GET /go', 'another app has no span')
  await app.close()
  t.notOk(diagnosticsChannel.hasSubscribers(CHANNEL))
})

test('hooks are one span for each configured stage', async (t) => {
  t.equal(await treeOf(t, { hooks: ['onRequest', 'preParsing', 'preValidation', 'preHandler', 'preSerialization', 'onSend', 'onResponse'], handler: true }, (app) => {
    for (const stage of ['onRequest', 'preHandler', 'onResponse']) {
      app.addHook(stage, async (request) => { await request.trace.withSpan(`1st ${stage}`, wait) })
      app.addHook(stage, (request, reply, done) => { request.trace.withSpan(`2nd ${stage}`, () => {}); done() })
    }
    app.addHook('onSend', async (request, reply, payload) => `${payload}!`)
    app.get('/go', { preHandler: async (request) => { await request.trace.withSpan('route\'s preHandler', wait) } }, async () => ({ a: 1 }))
  }), ['200', 'SERVER GET /go',
    '  INTERNAL onRequest', '    INTERNAL 1st onRequest', '    INTERNAL 2nd onRequest',
    '  INTERNAL preHandler', '    INTERNAL 1st preHandler', '    INTERNAL 2nd preHandler', '    INTERNAL route\'s preHandler',
    '  INTERNAL handler',
    '  INTERNAL onSend',
    '  INTERNAL onResponse', '    INTERNAL 1st onResponse', '    INTERNAL 2nd onResponse'].join('\n'))
})

test('payloads are unchanged', async (t) => {
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { spans: { hooks: ['preParsing', 'preSerialization', 'onSend'] } },
    routes: (app) => app.post('/go', async ({ body }) => ({ got: body }))
  })
  const response = await app.inject({ method: 'POST', url: '/go', payload: { a: 1 } })
  t.same(response.json(), { got: { a: 1 } })
})

test('a stage ends when a hook throws, replies or hijacks', async (t) => {
  const withHook = (hook) => (app) => {
    app.addHook('preHandler', hook)
    app.get('/go', async () => 'ok')
  }
  const spans = { hooks: ['preHandler'] }
  t.equal(await treeOf(t, spans, withHook(async () => { throw new TypeError('no') })),
    '500\nSERVER GET /go ERROR error.type=TypeError\n  INTERNAL preHandler ERROR error.type=TypeError')
  t.equal(await treeOf(t, spans, withHook(async () => { throw Object.assign(new Error('who?'), { statusCode: 401 }) })),
    '401\nSERVER GET /go\n  INTERNAL preHandler')
  t.equal(await treeOf(t, spans, withHook((request, reply) => { reply.code(202).send('later') })),
    '202\nSERVER GET /go\n  INTERNAL preHandler')
  t.equal(await treeOf(t, spans, withHook((request, reply) => { reply.hijack(); reply.raw.end('mine') })),
    '200\nSERVER GET /go\n  INTERNAL preHandler')
})

test('work after a stage is not below its span', async (t) => {
  t.equal(await treeOf(t, { hooks: ['preHandler'] }, (app) => {
    app.setErrorHandler(async (error, request, reply) => {
      await request.trace.withSpan('error handler', wait)
      reply.code(503)
      return error.message
    })
    app.addHook('preHandler', async (request) => { if (request.query.fail) throw new Error('no') })
    app.get('/go', async (request) => { await request.trace.withSpan('in handler', wait); return 'ok' })
  }), '200\nSERVER GET /go\n  INTERNAL preHandler\n  INTERNAL in handler')
})

test('a route can ask for more stages, or for none', async (t) => {
  const routes = (app) => {
    app.get('/more', { config: { trace: { spans: { hooks: ['preValidation'], handler: true } } }, preValidation: async () => {} }, async () => 'ok')
    app.get('/nothing', { config: { trace: { spans: {} } } }, async () => 'ok')
  }
  t.equal(await treeOf(t, undefined, routes, '/more'), '200\nSERVER GET /more\n  INTERNAL preValidation\n  INTERNAL handler')
  t.equal(await treeOf(t, { handler: true }, routes, '/nothing'), '200\nSERVER GET /nothing')
})

test('ignored and unsampled requests have no stage spans', async (t) => {
  const routes = (app) => app.get('/go', async () => 'ok')
  for (const trace of [{ ignore: ['/go'] }, { sampler: 'always_off' }]) {
    const { app, collector } = await tracedApp(t, { listen: false, routes, trace: { ...trace, spans: { handler: true, hooks: ['preHandler'] } } })
    t.equal((await app.inject('/go')).statusCode, 200)
    t.same(await collector.spans(), [])
  }
})

// For each way to register the plugin, and each place of the route.

const STAGES = ['onRequest', 'preValidation', 'preHandler', 'onSend']
const trace = { config: { trace: { spans: { handler: true, hooks: STAGES } } } }

const REGISTRATIONS = {
  'routes in the same turn as the plugin': (app, register, route) => { register(app); route(app) },
  'the plugin behind its routes': (app, register, route) => { route(app); register(app) },
  'an awaited plugin': async (app, register, route) => { await register(app); route(app) },
  'routes in after()': (app, register, route) => { register(app); app.after(() => route(app)) },
  'routes in a plugin of their own': (app, register, route) => { register(app); app.register(async (scope) => route(scope)) },
  'plugin and routes in one plugin': (app, register, route) => { app.register(async (scope) => { register(scope); route(scope) }) },
  'plugin and routes in one plugin that breaks encapsulation, as fastify-cli loads them': (app, register, route) => {
    app.register(fp(async (scope) => { register(scope); route(scope) }))
  }
}

for (const [how, build] of Object.entries(REGISTRATIONS)) {
  for (const [who, spans, options] of [['the plugin', trace.config.trace.spans, {}], ['the route', undefined, trace]]) {
    test(`${who} asks for spans, with ${how}`, async (t) => {
      const { collector, options: collecting } = await collectorFor(t)
      const app = Fastify()
      t.teardown(() => app.close())
      await build(app, (app) => app.register(lightTrace, { ...collecting, registerGlobals: false, spans }), (app) => {
        app.addHook('preValidation', async () => {})
        app.get('/go', { ...options, onRequest: wait, preHandler: wait, onSend: async (request, reply, payload) => payload }, async (request) => {
          await request.trace.withSpan('inside', wait)
          return 'ok'
        })
      })
      t.equal((await app.inject('/go')).statusCode, 200)
      t.equal((await app.inject('/go')).statusCode, 200)
      const tree = ['SERVER GET /go', '  INTERNAL onRequest', '  INTERNAL preValidation', '  INTERNAL preHandler', '  INTERNAL handler', '    INTERNAL inside', '  INTERNAL onSend']
      t.equal(await collector.tree(), [...tree, ...tree].join('\n'))
    })
  }
}

test('a stage ends with its last hook, even if the route was declared before the plugin was loaded', async (t) => {
  const { options: collecting } = await collectorFor(t)
  const app = Fastify()
  t.teardown(() => app.close())
  app.register(lightTrace, { ...collecting, registerGlobals: false, spans: { hooks: ['onSend'] } })
  app.get('/go', { onSend: async (request, reply, payload) => payload }, async () => 'ok')
  let ended
  app.addHook('onResponse', async () => { ended = app.lightTrace.stats().spans.ended })
  await app.inject('/go')
  t.equal(ended, 1, 'and not with the response')
})

// Handlers that send the answer themselves. Their promise, if they return one, settles when the response is over.
const ANSWERING = {
  'from a callback': (request, reply) => { setImmediate(() => reply.send({ a: 1 })) },
  'and returns the reply': async (request, reply) => { await wait(); return reply.send({ a: 1 }) },
  'and awaits the reply, as Nest does': async (request, reply) => { await wait(); await reply.send({ a: 1 }); await wait() },
  'and never settles': async (request, reply) => { reply.send({ a: 1 }); await new Promise(() => {}) },
  'and works on': async (request, reply) => { reply.send({ a: 1 }); for (let i = 0; i < 50; i++) await wait() }
}

for (const [how, handler] of Object.entries(ANSWERING)) {
  test(`a handler that answers ${how} ends when the hooks of its answer begin, or before its request`, { skip: without('testing') }, async (t) => {
    const { app, collector, ended } = await endsOf(t, { handler: true }, (app) => {
      app.get('/hooks', { preSerialization: async (request, reply, payload) => { payload.ended = [...ended]; return payload } }, handler)
      app.get('/onSend', { onSend: async (request, reply, payload) => JSON.stringify([...ended]) }, handler)
      app.get('/plain', handler)
    })
    t.same((await app.inject('/hooks')).json(), { a: 1, ended: ['handler'] })
    await collector.spans()
    ended.length = 0
    t.same((await app.inject('/onSend')).json(), ['handler'])
    await collector.spans()
    ended.length = 0
    t.same((await app.inject('/plain')).json(), { a: 1 })
    await collector.spans()
    t.same(ended, ['handler', 'GET /plain'])
  })
}

test('a stage that answers from a callback, and a not-found handler, end before their request', { skip: without('testing') }, async (t) => {
  const { app, collector, ended } = await endsOf(t, { handler: true, hooks: ['preHandler'] }, (app) => {
    app.get('/go', { preHandler: ANSWERING['from a callback'] }, async () => 'ok')
    app.addHook('onSend', async (request, reply, payload) => request.is404 ? JSON.stringify([...ended]) : payload)
    app.setNotFoundHandler(ANSWERING['from a callback'])
  })
  await app.inject('/go')
  await collector.spans()
  t.same(ended, ['preHandler', 'GET /go'])
  ended.length = 0
  t.same((await app.inject('/nothing-here')).json(), ['handler'])
})

/** Returns an app, and the names of its spans in the order in which they end. */
async function endsOf (t, spans, routes) {
  const ended = []
  const { collector } = await collectorFor(t)
  const order = { onStart () {}, onEnd: ({ name }) => ended.push(name), async forceFlush () {}, async shutdown () {} }
  const { app } = await tracedApp(t, { listen: false, trace: { spans, spanProcessors: [collector, order] }, routes })
  return { app, collector, ended }
}
