'use strict'

// Feature: unrouted

const dc = require('node:diagnostics_channel')
const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { collectorFor } = require('../support/collector')
const { tracedApp } = require('../support/traced-app')
const { picture } = require('../support/picture')
const { connect, signal } = require('../support/raw-client')

const unrouted = { spans: { unrouted: true } }
const routes = (app) => app.get('/users/:id', async () => 'ok')

// F05
test('requests that reach no hook get one span each with `unrouted`', async (t) => {
  const { app, collector, port } = await tracedApp(t, { trace: unrouted, routes })
  const client = await connect(port)
  client.request('GET', '/users/%zz')
  await client.until('400 Bad Request')
  client.request('GET', `/users/${'x'.repeat(200)}`)
  await client.until('HTTP/1.1 4', 2)
  client.request('GET', '/users/7?q=1')
  await client.until('200 OK')
  client.send('GET /nohost HTTP/1.1\r\n\r\n')
  await client.until('HTTP/1.1 400', 2)
  const lines = await picture(collector)
  t.equal(lines.length, 4)
  t.equal(lines[0], 'GET 400')
  t.match(lines[1], /^GET 4(04|14)$/)
  t.equal(lines[2], 'GET /users/:id 200')
  t.equal(lines[3], 'GET 400')
  const [bad] = await collector.spans()
  t.match(bad.attributes, {
    'http.request.method': 'GET',
    'url.path': '/users/%zz',
    'url.scheme': 'http',
    'server.address': 'shop.test',
    'network.peer.address': '127.0.0.1',
    'network.protocol.version': '1.1'
  })
  t.ok(bad.duration > 0)
  t.match(app.lightTrace.stats().spans, { started: 4, ended: 4, accepted: 4 })
  await client.leave()
})

test('they have the attributes of all requests if the option is an object', async (t) => {
  for (const attributes of [{ tier: 'silver' }, { tier: 'silver', 'server.address': 'other.test' }]) {
    const { app, collector, port } = await tracedApp(t, { trace: { ...unrouted, attributes }, routes })
    const client = await connect(port)
    client.request('GET', '/users/%zz')
    await client.until('400 Bad Request')
    t.same(await picture(collector), ['GET 400'])
    const [span] = await collector.spans()
    t.match(span.attributes, { 'server.address': 'shop.test', ...attributes })
    await client.leave()
    await app.close()
  }
})

test('without `unrouted` they get no span', async (t) => {
  const { collector, port } = await tracedApp(t, { routes })
  const client = (await connect(port)).request('GET', '/users/%zz')
  await client.until('400')
  t.same(await picture(collector), [])
  await client.leave()
})

// F07
test('a request that an earlier hook answers has a span with its caller as parent', async (t) => {
  const { collector, origin } = await tracedApp(t, {
    trace: unrouted,
    before: (app) => app.addHook('onRequest', async (request, reply) => reply.code(429).send('slow down')),
    routes
  })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await (await fetch(`${origin}/users/7`, { headers: { traceparent } })).text()
  t.same(await picture(collector), ['GET 429'])
  const [span] = await collector.spans()
  t.equal(span.traceId, '0af7651916cd43dd8448eb211c80319c')
  t.equal(span.parentSpanId, 'b7ad6b7169203331')
})

// F06
test('requests that are refused because the app closes have a span', async (t) => {
  const running = signal()
  const { app, collector, port } = await tracedApp(t, {
    trace: unrouted,
    fastify: { forceCloseConnections: false },
    routes: (app) => app.get('/slow', (request, reply) => { running.give(reply) })
  })
  const client = (await connect(port)).request('GET', '/slow')
  const { value: reply } = await running.promise
  const preClosed = signal()
  app.server.once('close', () => {})
  const closed = app.close()
  setImmediate(() => preClosed.give())
  await preClosed.promise
  client.request('GET', '/slow')
  reply.send('done')
  await client.until('503')
  await client.leave()
  await closed
  t.same(await picture(collector), ['GET /slow 200', 'GET 503 ERROR error.type=503'])
})

test('ignored and switched-off requests have no span', async (t) => {
  const { collector, port, origin } = await tracedApp(t, {
    trace: { spans: { unrouted: true }, ignore: ['/users/%zz', '/health'] },
    routes (app) {
      app.get('/health', async () => 'ok')
      app.get('/off', { config: { trace: false } }, async () => 'ok')
    }
  })
  await (await fetch(`${origin}/health`)).text()
  await (await fetch(`${origin}/off`)).text()
  const client = (await connect(port)).request('GET', '/users/%zz')
  await client.until('400')
  await client.leave()
  t.same(await picture(collector), [])
})

test('only requests of this app have a span, on all of its servers', async (t) => {
  const other = Fastify()
  t.teardown(() => other.close())
  routes(other)
  const otherPort = new URL(await other.listen({ port: 0, host: '127.0.0.1' })).port
  const { app, collector, port } = await tracedApp(t, { trace: unrouted, routes, listen: { host: 'localhost' } })
  const badUrl = async (port, host) => {
    const client = await connect(require('node:net').connect(port, host))
    await client.request('GET', '/users/%zz').until('400')
    await client.leave()
  }
  await badUrl(otherPort, '127.0.0.1')
  for (const { address } of app.addresses()) await badUrl(port, address)
  t.same(await picture(collector), app.addresses().map(() => 'GET 400'))
})

test('the channels are subscribed to only while an app asks for it', async (t) => {
  const busy = () => ['http.server.request.start', 'http.server.response.finish'].map((name) => dc.hasSubscribers(name))
  t.same(busy(), [false, false])
  const plain = Fastify()
  await plain.register(lightTrace, { exporter: 'none', registerGlobals: false })
  await plain.ready()
  t.same(busy(), [false, false])
  const asking = Fastify()
  await asking.register(lightTrace, { exporter: 'none', registerGlobals: false, spans: { unrouted: true } })
  await asking.ready()
  t.same(busy(), [true, true])
  await asking.close()
  t.same(busy(), [false, false])
  await plain.close()
})

test('a child scope does not trace requests without a route', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  const { collector, options: collecting } = await collectorFor(t)
  await app.register(async (child) => {
    await child.register(lightTrace, { ...collecting, registerGlobals: false, spans: { unrouted: true } })
    child.get('/in', async () => 'in')
  })
  app.get('/out', async () => 'out')
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  await (await fetch(`${origin}/in`)).text()
  await (await fetch(`${origin}/out`)).text()
  await (await fetch(`${origin}/nowhere`)).text()
  t.same(await picture(collector), ['GET /in 200'])
})
