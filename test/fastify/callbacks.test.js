'use strict'

const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { picture } = require('../support/picture')
const { connect, signal } = require('../support/raw-client')
const { tellingLogger } = require('../support/telling-logger')

const ok = (app) => app.get('/users/:id', async (request, reply) => reply.header('x-cache', 'hit').header('x-count', 7).send('ok'))
const hostile = () => { throw Object.defineProperty(new Error(), 'message', { get () { throw new Error('again') } }) }

test('spanName, attributes, onStart and onEnd shape the span', async (t) => {
  const calls = []
  const { collector, origin } = await tracedApp(t, {
    trace: {
      spanName: (request) => `${request.method} for ${request.headers['x-tenant']}`,
      attributes: (request) => ({ tenant: request.headers['x-tenant'], 'app.n': 1 }),
      onStart: (span, request) => { calls.push(['start', span.isRecording(), request.params.id]); span.setAttribute('started', true) },
      onEnd: (span, request, reply) => { calls.push(['end', span.isRecording(), request.params.id, reply.statusCode]); span.setAttribute('took', 'long') }
    },
    routes: ok
  })
  await (await fetch(`${origin}/users/7`, { headers: { 'x-tenant': 'acme' } })).text()
  const [span] = await collector.spans()
  t.equal(span.name, 'GET for acme')
  t.match(span.attributes, { tenant: 'acme', 'app.n': 1, started: true, took: 'long', 'http.route': '/users/:id' })
  t.same(calls, [['start', true, '7'], ['end', true, '7', 200]])
})

test('the callbacks see the request\'s own trace, and values that they set in it stay', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: {
      store: () => ({ n: 1 }),
      spanName: ({ trace }) => `${trace.sampled} ${trace.get('n')}`,
      attributes: ({ trace }) => ({ own: trace.spanId }),
      onStart: (span, { trace }) => { trace.set('started', trace.span === span) }
    },
    routes: (app) => app.get('/', async ({ trace }) => trace.store)
  })
  t.same((await app.inject('/')).json(), { n: 1, started: true })
  const [span] = await collector.spans()
  t.equal(span.name, 'true 1')
  t.equal(span.attributes.own, span.spanId)
})

test('if methods of a response throw when it closes, it is logged once, the span ends, and the process continues', async (t) => {
  const loggerInstance = tellingLogger()
  const { app, collector, origin } = await tracedApp(t, {
    fastify: { loggerInstance },
    trace: { headers: { response: ['x-cache'] } },
    routes (app) {
      app.get('/header', async (request, { raw }) => { raw.on('finish', () => { raw.getHeader = () => { throw new Error('broken') } }); return 'ok' })
      app.get('/state', async (request, { raw }) => { raw.on('finish', () => { Object.defineProperty(raw, 'writableEnded', { get () { throw new Error('broken') } }) }); return 'ok' })
    }
  })
  await (await fetch(`${origin}/header`)).text()
  const [{ attributes }] = await collector.spans()
  t.equal(attributes['http.response.status_code'], 200)
  await (await fetch(`${origin}/state`)).text()
  await app.close()
  t.same(loggerInstance.logged.map(([code]) => code), ['LT_WARN_CALLBACK', 'LT_WARN_BUG'])
})

test('a route\'s own options override the plugin\'s', async (t) => {
  const { collector, origin } = await tracedApp(t, {
    trace: { spanName: () => 'plugin', attributes: () => ({ tier: 'silver', from: 'plugin' }) },
    routes (app) {
      app.get('/text', { config: { trace: { spanName: 'route', attributes: { tier: 'gold' } } } }, async () => 'ok')
      app.get('/function', { config: { trace: { spanName: (request) => `route ${request.query.a}`, attributes: (request) => ({ tier: request.query.a }) } } }, async () => 'ok')
      app.get('/off', { config: { trace: false } }, async () => 'ok')
      app.get('/ignore', { config: { trace: { ignore: true } } }, async () => 'ok')
      app.get('/unsampled', { config: { trace: { sampler: 'always_off' } } }, async () => 'ok')
    }
  })
  for (const path of ['/text', '/function?a=b', '/off', '/ignore', '/unsampled']) await (await fetch(origin + path)).text()
  const spans = await collector.spans()
  t.same(spans.map(({ name, attributes }) => [name, attributes.tier, attributes.from]), [['route', 'gold', 'plugin'], ['route b', 'b', 'plugin']])
})

test('an object of attributes is on the span of every request, even if no route matches', async (t) => {
  const { collector, origin } = await tracedApp(t, {
    trace: { attributes: { tier: 'silver', from: 'plugin', 'app.zones': ['a', 'b'] } },
    routes (app) {
      app.get('/plain', async () => 'ok')
      app.get('/object', { config: { trace: { attributes: { tier: 'gold' } } } }, async () => 'ok')
      app.get('/function', { config: { trace: { attributes: (request) => ({ tier: request.query.a }) } } }, async () => 'ok')
      app.get('/own', { config: { trace: { attributes: { 'url.path': '/own' } } } }, async () => 'ok')
      app.get('/set', async ({ trace }) => { trace.span.setAttribute('tier', 'mine') })
    }
  })
  for (const path of ['/plain', '/plain', '/object', '/function?a=b', '/own', '/set', '/nowhere']) await (await fetch(origin + path)).text()
  const spans = await collector.spans()
  t.same(spans.map(({ attributes }) => [attributes['url.path'], attributes.tier, attributes.from, attributes['app.zones']]), [
    ['/plain', 'silver'], ['/plain', 'silver'], ['/object', 'gold'], ['/function', 'b'], ['/own', 'silver'], ['/set', 'mine'], ['/nowhere', 'silver']
  ].map((expected) => [...expected, 'plugin', ['a', 'b']]))
})

test('an object of attributes overrides light-trace\'s attributes with the same key', async (t) => {
  const { collector, origin } = await tracedApp(t, {
    trace: { attributes: { 'server.address': 'shop.test', 'url.path': '/left/out', tier: 'silver' } },
    routes (app) {
      app.get('/users/:id', async () => 'ok')
      app.get('/gold', { config: { trace: { attributes: { tier: 'gold', 'url.path': '/gold' } } } }, async () => 'ok')
    }
  })
  for (const path of ['/users/7', '/gold', '/nowhere']) await (await fetch(origin + path)).text()
  const spans = await collector.spans()
  t.same(spans.map(({ attributes }) => [attributes['url.path'], attributes['server.address'], attributes.tier]), [
    ['/left/out', 'shop.test', 'silver'], ['/gold', 'shop.test', 'gold'], ['/left/out', 'shop.test', 'silver']
  ])
})

test('an object of attributes is copied when light-trace is registered, within the limits', async (t) => {
  const zones = ['a']
  const attributes = { tier: 'silver', zones, long: 'x'.repeat(99) }
  const { app, collector } = await tracedApp(t, { listen: false, trace: { attributes, limits: { attributeValueLength: 8 } }, routes: ok })
  zones.push('b')
  attributes.tier = 'gold'
  await app.inject('/users/7')
  const [span] = await collector.spans()
  t.match(span.attributes, { tier: 'silver', zones: ['a'], long: 'x'.repeat(8) })
})

// A01
test('functions that throw or return a promise are logged once, the request is served, and its span ends', async (t) => {
  const promised = async () => ({ a: 1 })
  const rejected = async () => { throw new Error('late') }
  for (const name of ['spanName', 'attributes', 'onStart', 'onEnd', 'store', 'ignore', 'trustIncoming']) {
    for (const fail of [() => { throw new Error('broken') }, hostile, () => { throw null }, promised, rejected]) { // eslint-disable-line no-throw-literal
      const loggerInstance = tellingLogger()
      const { app, collector, origin } = await tracedApp(t, { fastify: { loggerInstance }, trace: { [name]: fail }, routes: ok })
      for (let i = 0; i < 2; i++) {
        const response = await fetch(`${origin}/users/7`, { headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' } })
        t.equal(await response.text(), 'ok')
      }
      t.same(await picture(collector), ['GET /users/:id 200', 'GET /users/:id 200'], name)
      const asyncIsFine = fail === promised && (name === 'onStart' || name === 'onEnd')
      t.same(loggerInstance.logged.map(([code]) => code), asyncIsFine ? [] : ['LT_WARN_CALLBACK'], name)
      await app.close()
    }
  }
})

test('invalid results of spanName and attributes change nothing', async (t) => {
  for (const answer of [undefined, null, '', 7, {}, [], Symbol('s'), () => {}]) {
    const { app, collector, origin } = await tracedApp(t, { trace: { spanName: () => answer, attributes: () => answer }, routes: ok })
    await (await fetch(`${origin}/users/7`)).text()
    t.same(await picture(collector), ['GET /users/:id 200'])
    await app.close()
  }
})

test('listed headers are captured, credentials never', async (t) => {
  const loggerInstance = tellingLogger()
  const { collector, origin } = await tracedApp(t, {
    fastify: { loggerInstance },
    trace: { headers: { request: ['X-Tenant', 'authorization', 'cookie', 'accept', 'x-none'], response: ['x-cache', 'x-count', 'set-cookie', 'content-type'] } },
    routes: ok
  })
  await (await fetch(`${origin}/users/7`, { headers: { 'x-tenant': 'acme', authorization: 'Bearer x', cookie: 'a=b', accept: 'text/plain' } })).text()
  const [{ attributes }] = await collector.spans()
  const captured = Object.fromEntries(Object.entries(attributes).filter(([key]) => key.includes('.header.')))
  t.same(captured, {
    'http.request.header.x-tenant': ['acme'],
    'http.request.header.accept': ['text/plain'],
    'http.response.header.x-cache': ['hit'],
    'http.response.header.x-count': ['7'],
    'http.response.header.content-type': ['text/plain; charset=utf-8']
  })
  t.same(loggerInstance.logged.map(([code]) => code), ['LT_WARN_HEADER_DENIED', 'LT_WARN_HEADER_DENIED', 'LT_WARN_HEADER_DENIED'])
})

test('response headers that were never sent are not captured', async (t) => {
  const running = signal()
  const { collector, port } = await tracedApp(t, {
    trace: { headers: { response: ['x-cache'] } },
    routes: (app) => app.get('/', (request, reply) => { reply.raw.setHeader('x-cache', 'hit'); running.give() })
  })
  const client = (await connect(port)).request('GET', '/')
  await running.promise
  await client.leave()
  const [{ attributes }] = await collector.spans()
  t.notOk('http.response.header.x-cache' in attributes)
})

test('replyHeader sends the caller its trace, sampled or not', async (t) => {
  const pattern = /^trace;desc=(00-[0-9a-f]{32}-[0-9a-f]{16}-(0[0-3])), traceparent;desc="\1"$/
  for (const sampler of ['always_on', 'always_off']) {
    const { app, origin } = await tracedApp(t, { trace: { headers: { serverTiming: true }, sampler }, routes: (app) => app.get('/', async (request) => request.trace.traceparent) })
    const response = await fetch(origin)
    const [, traceparent, flags] = pattern.exec(response.headers.get('server-timing'))
    t.equal(traceparent, await response.text())
    t.equal(Number(flags) & 1, sampler === 'always_on' ? 1 : 0)
    await app.close()
  }
})

test('trustIncoming: false starts a new trace with a link to the caller\'s', async (t) => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  for (const [trustIncoming, trusted] of [[true, true], [false, false], [(request) => request.headers['x-inside'] === 'yes', false], [(request) => request.headers['x-inside'], true]]) {
    const { app, collector, origin } = await tracedApp(t, { trace: { trustIncoming }, routes: ok })
    await (await fetch(`${origin}/users/7`, { headers: { traceparent, tracestate: 'a=b', 'x-inside': 'y' } })).text()
    const [span] = await collector.spans()
    t.equal(span.traceId === '0af7651916cd43dd8448eb211c80319c', trusted)
    t.equal(span.parentSpanId, trusted ? 'b7ad6b7169203331' : undefined)
    t.same(span.links.map(({ traceId, spanId }) => [traceId, spanId]), trusted ? [] : [['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331']])
    await app.close()
  }
})
