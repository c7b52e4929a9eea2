'use strict'

// Which attributes of the caller and the URL remain with `omitAttributes`. Omitted values are not read.
// Feature: omit

const http = require('node:http')
const { once } = require('node:events')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')

const URL_KEYS = ['http.route', 'url.path', 'url.query']

/** Returns the spans of the requests, both decoded from OTLP and as objects. */
async function bothWays (t, trace, ask, fastify) {
  const sink = await startSink(t)
  const routes = (app) => {
    app.get('/users', async () => 'ok')
    app.get('/users/:id', async () => 'ok')
  }
  const native = await tracedApp(t, { trace: { spanProcessors: undefined, exporter: { url: sink.url }, ...trace }, routes, fastify })
  const objects = await tracedApp(t, { trace, routes, fastify })
  for (const { origin } of [native, objects]) await ask(origin)
  await native.app.lightTrace.flush()
  return [sink.spans, await objects.collector.spans()]
}

const get = (agent) => async (url, headers = {}) => {
  const request = http.get(url, { agent, headers: { 'user-agent': 'tester', ...headers } })
  const [response] = await once(request, 'response')
  response.resume()
  await once(response, 'end')
}

const only = (keys) => ({ attributes }) => Object.fromEntries(Object.entries(attributes).filter(([key]) => keys.includes(key)))

async function askForUrls (origin) {
  for (const path of ['/users', '/users?a=1', '/users?', '/users/7', '/users/7?a=1', '/nowhere', '/nowhere?a=1', '/?a=1?b=2']) await get()(origin + path)
}

test('the path, the query or both can be left out of URLs', async (t) => {
  const all = [
    ['/users', '/users', undefined], ['/users', '/users', 'a=1'], ['/users', '/users', undefined], ['/users/:id', '/users/7', undefined], ['/users/:id', '/users/7', 'a=1'],
    [undefined, '/nowhere', undefined], [undefined, '/nowhere', 'a=1'], [undefined, '/', 'a=1?b=2']
  ]
  for (const omitAttributes of [['url.query'], ['url.path'], ['url.path', 'url.query'], ['url.*'], ['http.route'], ['http.route', 'url.path']]) {
    const isLeft = (key) => !omitAttributes.includes(key) && !(omitAttributes[0] === 'url.*' && key.startsWith('url.'))
    for (const spans of await bothWays(t, { omitAttributes }, askForUrls)) {
      const left = all.map((values) => Object.fromEntries(URL_KEYS.map((key, i) => [key, values[i]]).filter(([key, value]) => value !== undefined && isLeft(key))))
      t.strictSame(spans.map(only(URL_KEYS)), left, omitAttributes.join())
      t.strictSame(spans.map(({ name }) => name), all.map(([route]) => route === undefined ? 'GET' : `GET ${route}`))
    }
  }
})

test('redactQuery is not called for an omitted query', async (t) => {
  const asked = []
  const redactQuery = (name) => { asked.push(name); return true }
  await bothWays(t, { omitAttributes: ['url.*'], redactQuery }, askForUrls)
  t.same(asked, [])
})

test('client.address is recorded without the peer, and the peer without client.address', async (t) => {
  const keys = ['client.address', 'network.peer.address', 'network.peer.port', 'server.address', 'server.port', 'user_agent.original']
  const isPort = (key, value) => key.endsWith('.port') ? typeof value : value
  const ask = async (origin) => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => agent.destroy())
    for (const forwarded of ['203.0.113.7', '203.0.113.7', '203.0.113.8', 'unknown', '']) await get(agent)(`${origin}/users`, { host: 'shop:81', ...forwarded !== '' && { 'x-forwarded-for': forwarded } })
  }
  for (const trustProxy of [true, false]) {
    const clients = trustProxy ? ['203.0.113.7', '203.0.113.7', '203.0.113.8', '127.0.0.1', '127.0.0.1'] : Array(5).fill('127.0.0.1')
    for (const omitAttributes of [['client.address'], ['network.peer.*'], ['network.peer.address'], ['network.peer.port'], ['server.*'], ['server.address'], ['server.port'], ['user_agent.original'], keys]) {
      const isOut = (key) => omitAttributes.includes(key) || omitAttributes[0] === `${key.slice(0, key.lastIndexOf('.'))}.*` ||
        (key.endsWith('.port') && omitAttributes.includes(key.replace('port', 'address'))) // a port is omitted with its address
      const whole = (client) => ({ 'client.address': client, 'network.peer.address': '127.0.0.1', 'network.peer.port': 'number', 'server.address': 'shop', 'server.port': 'number', 'user_agent.original': 'tester' })
      const expected = clients.map((client) => Object.fromEntries(Object.entries(whole(client)).filter(([key]) => !isOut(key))))
      for (const spans of await bothWays(t, { omitAttributes }, ask, { trustProxy })) {
        t.same(spans.map((span) => Object.fromEntries(Object.entries(only(keys)(span)).map(([key, value]) => [key, isPort(key, value)]))), expected, omitAttributes.join())
      }
    }
  }
})

test('the client\'s address is not read if it is omitted', async (t) => {
  let asked = 0
  const trustProxy = () => { asked++; return true }
  const ask = (origin) => get()(`${origin}/users`, { 'x-forwarded-for': '203.0.113.7' })
  await bothWays(t, { omitAttributes: ['user_agent.original'] }, ask, { trustProxy })
  t.ok(asked > 0)
  const before = asked
  await bothWays(t, { omitAttributes: ['client.address'] }, ask, { trustProxy })
  t.ok(asked - before < before)
})

test('two applications behind one connection can differ in what they omit', async (t) => {
  const handlers = []
  const serverFactory = (handler) => { handlers.push(handler); return http.createServer() }
  const routes = (app) => app.get('*', async () => 'ok')
  const omitting = await tracedApp(t, { trace: { omitAttributes: ['client.address', 'network.peer.*', 'server.*', 'user_agent.*'] }, fastify: { serverFactory }, routes, listen: false })
  const other = await tracedApp(t, { fastify: { serverFactory }, routes, listen: false })
  let n = 0
  const front = http.createServer((request, response) => handlers[n++ % 2](request, response)).listen(0, '127.0.0.1')
  await once(front, 'listening')
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => { agent.destroy(); front.close() })
  for (let i = 0; i < 8; i++) await get(agent)(`http://127.0.0.1:${front.address().port}/`)
  const keys = ['client.address', 'network.peer.address', 'network.peer.port', 'server.address', 'server.port', 'user_agent.original']
  t.same((await omitting.collector.spans()).map((span) => Object.keys(only(keys)(span))), [[], [], [], []])
  t.same((await other.collector.spans()).map((span) => Object.keys(only(keys)(span)).sort()), Array(4).fill(keys))
})

test('requests without a route omit the same attributes', { skip: require('../support/features').without('unrouted') }, async (t) => {
  const { app, collector, port } = await tracedApp(t, { trace: { unrouted: true, omitAttributes: ['url.query', 'client.address', 'network.peer.*', 'app.*'] } })
  const { connect } = require('node:net')
  const socket = connect(port, '127.0.0.1')
  socket.end('GET /%ZZ?a=1 HTTP/1.1\r\nhost: shop\r\n\r\n')
  socket.resume()
  await once(socket, 'close')
  const [{ attributes }] = await collector.spans()
  t.match(attributes, { 'url.path': '/%ZZ', 'server.address': 'shop' })
  t.same(Object.keys(attributes).filter((key) => /query|client|peer/.test(key)), [])
  await app.close()
})
