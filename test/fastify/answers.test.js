'use strict'

const { test } = require('tap')
const Fastify = require('fastify')
const { tracedApp } = require('../support/traced-app')
const { picture } = require('../support/picture')

const jsonBody = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } }

// Title, request, routes, and the expected span.
const ANSWERS = [
  ['200', 'GET /', (app) => app.get('/', async () => 'ok'), 'GET / 200'],
  ['200 by a callback', 'GET /', (app) => app.get('/', (request, reply) => { setImmediate(() => reply.send('ok')) }), 'GET / 200'],
  ['201', 'POST /', (app) => app.post('/', async (request, reply) => reply.code(201).send({})), 'POST / 201'],
  ['HEAD of a GET route', 'HEAD /', (app) => app.get('/', async () => 'ok'), 'HEAD / 200'],
  ['204', 'DELETE /7', (app) => app.delete('/:id', (request, reply) => reply.code(204).send()), 'DELETE /:id 204'],
  ['302', 'GET /', (app) => app.get('/', (request, reply) => reply.redirect('/there')), 'GET / 302'],
  ['304', 'GET /', (app) => app.get('/', (request, reply) => reply.code(304).send()), 'GET / 304'],
  ['404 without a route', 'GET /nowhere', () => {}, 'GET 404'],
  ['404 by a not-found handler', 'GET /nowhere', (app) => app.setNotFoundHandler((request, reply) => reply.code(404).send('no')), 'GET 404'],
  ['a not-found handler that answers 200', 'GET /app/page', (app) => app.setNotFoundHandler((request, reply) => reply.code(200).send('page')), 'GET 200'],
  ['404 by the route', 'GET /users/9', (app) => app.get('/users/:id', (request, reply) => reply.code(404).send()), 'GET /users/:id 404'],
  ['404 by callNotFound', 'GET /users/9', (app) => app.get('/users/:id', (request, reply) => { reply.callNotFound() }), 'GET /users/:id 404'],
  ['a prefix is in the route', 'GET /v1/users/9', (app) => app.register(async (app) => { app.get('/users/:id', async () => 1) }, { prefix: '/v1' }), 'GET /v1/users/:id 200'],
  ['a wildcard', 'GET /assets/a/b.js', (app) => app.get('/assets/*', async () => 1), 'GET /assets/* 200'],
  ['a regular expression', 'GET /at/12', (app) => app.get('/at/:n(^\\d+$)', async () => 1), 'GET /at/:n(^\\d+$) 200'],

  ['a body that does not validate', 'POST / {"n":"x"}', (app) => app.post('/', { schema: { body: jsonBody } }, async () => 1), /^POST \/ 400 error\.type=FST_ERR_VALIDATION exception=FST_ERR_VALIDATION: /],
  ['a body that does not parse', 'POST / {"n":', (app) => app.post('/', async () => 1), /^POST \/ 400 error\.type=(FST_ERR_CTP_INVALID_JSON_BODY|SyntaxError) exception=\1: /],
  ['a body that is too large', 'POST / {"n":"xxxxxxxxxxxxxxxxxx"}', (app) => app.post('/', { bodyLimit: 5 }, async () => 1), /^POST \/ 413 error\.type=FST_ERR_CTP_BODY_TOO_LARGE exception=FST_ERR_CTP_BODY_TOO_LARGE: /],
  ['a media type that is not known', 'POST / <x/>', (app) => app.post('/', async () => 1), /^POST \/ 415 error\.type=FST_ERR_CTP_INVALID_MEDIA_TYPE exception=FST_ERR_CTP_INVALID_MEDIA_TYPE: /],
  ['a query that does not validate', 'GET /?n=x', (app) => app.get('/', { schema: { querystring: jsonBody } }, async () => 1), /^GET \/ 400 error\.type=FST_ERR_VALIDATION exception=FST_ERR_VALIDATION: /],

  ['an error', 'GET /', (app) => app.get('/', async () => { throw new TypeError('no') }), 'GET / 500 ERROR error.type=TypeError exception=TypeError: no'],
  ['an error with a code', 'GET /', (app) => app.get('/', async () => { throw Object.assign(new Error('db'), { code: 'ECONNREFUSED' }) }),
    'GET / 500 ERROR error.type=ECONNREFUSED exception=ECONNREFUSED: db'],
  ['an error with a client\'s status', 'GET /', (app) => app.get('/', async () => { throw Object.assign(new Error('no'), { statusCode: 403 }) }), /^GET \/ 403 error\.type=Error exception=Error: /],
  ['an error with a status of its own', 'GET /', (app) => app.get('/', async () => { throw Object.assign(new Error('no'), { statusCode: 503 }) }),
    'GET / 503 ERROR error.type=Error exception=Error: no'],
  ['an error thrown in a sync handler', 'GET /', (app) => app.get('/', () => { throw new RangeError('no') }), 'GET / 500 ERROR error.type=RangeError exception=RangeError: no'],
  ['reply.send(error)', 'GET /', (app) => app.get('/', (request, reply) => { reply.send(new Error('sent')) }), 'GET / 500 ERROR error.type=Error exception=Error: sent'],
  ['500 without an error', 'GET /', (app) => app.get('/', (request, reply) => reply.code(500).send('x')), 'GET / 500 ERROR error.type=500'],
  ['503 without an error', 'GET /', (app) => app.get('/', (request, reply) => reply.code(503).send('x')), 'GET / 503 ERROR error.type=503'],
  ['throw null', 'GET /', (app) => app.get('/', async () => { throw null }), 'GET / 500 ERROR error.type=null exception=null: null'], // eslint-disable-line no-throw-literal
  ['throw undefined', 'GET /', (app) => app.get('/', () => { throw undefined }), 'GET / 500 ERROR error.type=undefined exception=undefined: undefined'], // eslint-disable-line no-throw-literal
  ['throw a string', 'GET /', (app) => app.get('/', async () => { throw 'text' }), 'GET / 500 ERROR error.type=string exception=string: text'], // eslint-disable-line no-throw-literal
  ['throw a number', 'GET /', (app) => app.get('/', async () => { throw 42 }), 'GET / 500 ERROR error.type=number exception=number: 42'], // eslint-disable-line no-throw-literal
  ['throw an object', 'GET /', (app) => app.get('/', async () => { throw { message: 'bare' } }), 'GET / 500 ERROR error.type=object exception=object: bare'], // eslint-disable-line no-throw-literal
  ['throw a symbol', 'GET /', (app) => app.get('/', async () => { throw Symbol('s') }), 'GET / 500 ERROR error.type=symbol exception=symbol: Symbol(s)'],
  ['a payload that does not serialise', 'GET /', (app) => app.get('/', async () => { const loop = {}; loop.loop = loop; return loop }), /^GET \/ 500 ERROR error\.type=TypeError exception=TypeError: /],

  ['an error handler that answers 200', 'GET /', (app) => {
    app.setErrorHandler((error, request, reply) => reply.code(200).send(`but ${error.message}`))
    app.get('/', async () => { throw new Error('no') })
  }, 'GET / 200'],
  ['an error handler that answers 409', 'GET /', (app) => {
    app.setErrorHandler((error, request, reply) => reply.code(409).send(error.message))
    app.get('/', async () => { throw new Error('no') })
  }, /^GET \/ 409 error\.type=Error exception=Error: /],
  ['an error handler that answers 502', 'GET /', (app) => {
    app.setErrorHandler((error, request, reply) => reply.code(502).send(error.message))
    app.get('/', async () => { throw new Error('no') })
  }, 'GET / 502 ERROR error.type=Error exception=Error: no'],
  // Fastify runs no onError hook for an error that an error handler throws, so the original error is recorded.
  ['an error handler that throws again', 'GET /', (app) => {
    app.setErrorHandler(() => { throw new RangeError('again') })
    app.get('/', async () => { throw new Error('no') })
  }, 'GET / 500 ERROR error.type=Error exception=Error: no'],
  ['a route\'s own async error handler', 'GET /', (app) => {
    app.get('/', { errorHandler: async (error, request, reply) => { reply.code(504); return error.message } }, async () => { throw new Error('no') })
  }, 'GET / 504 ERROR error.type=Error exception=Error: no'],
  ['onSend that throws', 'GET /', (app) => {
    app.addHook('onSend', async () => { throw new Error('sending') })
    app.get('/', async () => 'ok')
  }, 'GET / 500 ERROR error.type=Error exception=Error: sending'],
  ['onResponse that throws changes nothing', 'GET /', (app) => {
    app.addHook('onResponse', async () => { throw new Error('late') })
    app.get('/', async () => 'ok')
  }, 'GET / 200'],
  ['onSend that changes the status', 'GET /', (app) => {
    app.addHook('onSend', async (request, reply) => { reply.code(500) })
    app.get('/', async () => 'ok')
  }, 'GET / 500 ERROR error.type=500'],
  ['early hints before the answer', 'GET /', (app) => app.get('/', (request, reply) => {
    reply.raw.writeEarlyHints({ link: '</a.css>; rel=preload' })
    reply.send('ok')
  }), 'GET / 200']
]

// Since Fastify 5.5.
if ('handlerTimeout' in Fastify().initialConfig) {
  ANSWERS.push(['handlerTimeout', 'GET /', (app) => app.get('/', { handlerTimeout: 20 }, async () => new Promise(() => {})),
    /^GET \/ 503 ERROR error\.type=FST_ERR_HANDLER_TIMEOUT exception=FST_ERR_HANDLER_TIMEOUT: /])
}

for (const stage of ['onRequest', 'preParsing', 'preValidation', 'preHandler']) {
  ANSWERS.push(
    [`${stage} replies`, 'POST / {}', (app) => {
      app.addHook(stage, (request, reply) => { reply.code(401).send('no') })
      app.post('/', async () => 'ok')
    }, 'POST / 401'],
    [`async ${stage} replies`, 'POST / {}', (app) => {
      app.addHook(stage, async (request, reply) => reply.code(403).send('no'))
      app.post('/', async () => 'ok')
    }, 'POST / 403'],
    [`${stage} throws`, 'POST / {}', (app) => {
      app.addHook(stage, async () => { throw new TypeError(stage) })
      app.post('/', async () => 'ok')
    }, `POST / 500 ERROR error.type=TypeError exception=TypeError: ${stage}`],
    [`${stage} fails by its callback`, 'POST / {}', (app) => {
      app.addHook(stage, (...args) => { args.at(-1)(new TypeError(stage)) })
      app.post('/', async () => 'ok')
    }, `POST / 500 ERROR error.type=TypeError exception=TypeError: ${stage}`]
  )
}

for (const [title, asked, routes, expected] of ANSWERS) {
  // F05, F06, F08, F12
  test(`one span: ${title}`, async (t) => {
    const { app, collector, origin } = await tracedApp(t, { routes })
    await ask(origin, asked)
    const lines = await picture(collector)
    t.equal(lines.length, 1)
    if (typeof expected === 'string') t.equal(lines[0], expected)
    else t.match(lines[0], expected)
    t.match(app.lightTrace.stats().spans, { started: 1, ended: 1, accepted: 1 })
  })
}

// A08
test('hostile errors are recorded and not read twice, and the request is served', async (t) => {
  const hostile = {
    '/getters': () => Object.defineProperties(new Error(), {
      message: { get () { throw new Error('message') } },
      stack: { get () { throw new Error('stack') } },
      code: { get () { throw new Error('code') } },
      name: { get () { throw new Error('name') } }
    }),
    '/revoked': () => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy },
    '/numbers': () => Object.assign(new Error('n'), { code: 7, name: 8 }),
    '/huge': () => Object.assign(new Error('x'.repeat(1e6)), { stack: 'y'.repeat(1e6), code: 'Z'.repeat(1e5) }),
    '/surrogate': () => new Error('lone \ud800 half')
  }
  const { collector, origin } = await tracedApp(t, {
    routes (app) {
      app.setErrorHandler((error, request, reply) => reply.code(500).send(typeof error))
      for (const [path, make] of Object.entries(hostile)) app.get(path, async () => { throw make() })
    }
  })
  for (const path of Object.keys(hostile)) {
    const response = await fetch(origin + path)
    t.equal(response.status, 500, path)
    await response.text()
  }
  const spans = await collector.spans()
  t.equal(spans.length, 5)
  for (const { status, events, attributes } of spans) {
    t.equal(status.code, 'ERROR')
    t.equal(events.length, 1)
    t.ok(attributes['error.type'].length <= 128)
    for (const value of Object.values(events[0].attributes)) {
      t.type(value, 'string')
      t.ok(value.length <= 16384)
      t.ok(value.isWellFormed())
    }
  }
})

test('an error with a 4xx answer leaves an exception event', async (t) => {
  const { collector, origin } = await tracedApp(t, {
    routes (app) {
      app.setErrorHandler((error, request, reply) => reply.code(error.statusCode ?? 422).send('x'))
      app.get('/', async () => { throw new Error('no') })
    }
  })
  await fetch(origin)
  const [span] = await collector.spans()
  t.equal(span.events.length, 1)
  t.equal(span.attributes['error.type'], 'Error')
})

async function ask (origin, asked) {
  const [method, path, body] = asked.split(' ')
  const headers = body === undefined ? {} : { 'content-type': body[0] === '<' ? 'application/xml' : 'application/json' }
  const response = await fetch(origin + path, { method, headers, body, redirect: 'manual' })
  await response.text()
}
