'use strict'

const { once } = require('node:events')
const { readFileSync } = require('node:fs')
const http = require('node:http')
const http2 = require('node:http2')
const https = require('node:https')
const net = require('node:net')
const { join } = require('node:path')
const { Readable } = require('node:stream')
const { connect: connectTls } = require('node:tls')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { picture } = require('../support/picture')
const { socketPath } = require('../support/socket-path')
const { connect, signal } = require('../support/raw-client')

const tls = {
  key: readFileSync(join(__dirname, '../fixtures/tls/key.pem')),
  cert: readFileSync(join(__dirname, '../fixtures/tls/cert.pem'))
}

const ABORTED = 'ERROR error.type=aborted'
const TERMINATED = 'ERROR error.type=response_terminated'

test('HTTPS requests are traced', async (t) => {
  const running = signal()
  const { collector, port } = await tracedApp(t, {
    fastify: { https: tls },
    routes (app) {
      app.get('/users/:id', async () => 'ok')
      app.get('/slow', () => { running.give(); return new Promise(() => {}) })
      app.get('/torn', (request, reply) => { reply.raw.destroy() })
    }
  })
  const ask = (path) => https.request({ port, host: '127.0.0.1', path, rejectUnauthorized: false, agent: false })
  const request = ask('/users/7').end()
  const [response] = await once(request, 'response')
  await once(response.resume(), 'end')
  const [span] = await collector.spans()
  t.equal(span.attributes['url.scheme'], 'https')
  t.equal(span.attributes['server.port'], port)

  const leaving = ask('/slow').on('error', () => {}).end()
  await running.promise
  leaving.destroy()
  const torn = ask('/torn').end()
  await new Promise((resolve) => torn.on('error', resolve))
  t.same(await picture(collector), ['GET /users/:id 200', `GET /slow - ${ABORTED}`, `GET /torn - ${TERMINATED}`])
})

test('one process can serve HTTP and HTTPS for one host', async (t) => {
  const routes = (app) => app.get('/', async () => 'ok')
  const plain = await tracedApp(t, { routes })
  const secure = await tracedApp(t, { routes, fastify: { https: tls } })
  const headers = { host: 'shop.example' }
  for (const [{ get }, { port, collector }, scheme, serverPort] of [[http, plain, 'http', 80], [https, secure, 'https', 443], [http, plain, 'http', 80]]) {
    const [response] = await once(get({ port, host: '127.0.0.1', headers, rejectUnauthorized: false, agent: false }), 'response')
    await once(response.resume(), 'end')
    const { attributes } = (await collector.spans()).at(-1)
    t.equal(attributes['url.scheme'], scheme)
    t.equal(attributes['server.port'], serverPort)
  }
})

for (const secure of [false, true]) {
  const name = secure ? 'HTTP/2 over TLS' : 'HTTP/2 without TLS'

  test(name, async (t) => {
    const running = signal()
    const { app, collector, origin, port } = await tracedApp(t, {
      fastify: secure ? { http2: true, https: tls } : { http2: true },
      routes (app) {
        app.post('/users/:id', async (request, reply) => reply.code(201).send(request.body))
        app.get('/error', async () => { throw new TypeError('no') })
        app.head('/head', async () => '')
        app.get('/slow', (request, reply) => { running.give(reply) })
      }
    })
    const session = http2.connect(origin, { rejectUnauthorized: false })
    t.teardown(() => session.destroy())
    const post = session.request({ ':method': 'POST', ':path': '/users/7?a=1', 'content-type': 'application/json', 'user-agent': 'h2' })
    post.end('{"a":1}')
    await finished(post)
    await finished(session.request({ ':path': '/nowhere' }))
    await finished(session.request({ ':path': '/error' }))
    await finished(session.request({ ':method': 'HEAD', ':path': '/head' }))
    const cancelled = session.request({ ':path': '/slow' }).on('error', () => {})
    const { value: reply } = await running.promise
    cancelled.close(http2.constants.NGHTTP2_CANCEL)
    await once(reply.raw, 'close')
    reply.send('too late')
    t.same(await picture(collector), [
      'POST /users/:id 201', 'GET 404', 'GET /error 500 ERROR error.type=TypeError exception=TypeError: no', 'HEAD /head 200',
      `GET /slow - ${ABORTED}`
    ])
    const [{ attributes }] = await collector.spans()
    t.match(attributes, {
      'network.protocol.version': '2',
      'url.scheme': secure ? 'https' : 'http',
      'url.path': '/users/7',
      'url.query': 'a=1',
      'server.address': '127.0.0.1',
      'server.port': port,
      'client.address': '127.0.0.1',
      'network.peer.address': '127.0.0.1',
      'user_agent.original': 'h2'
    })
    t.match(app.lightTrace.stats().spans, { started: 5, ended: 5, accepted: 5 })
  })

  // The ways in which either side can abort a response over HTTP/2.
  const ENDS = [
    ['the client resets the stream quietly', '/never', (stream) => stream.close(0), `GET /never - ${ABORTED}`],
    ['the client destroys its session', '/never', (stream, session) => session.destroy(), `GET /never - ${ABORTED}`],
    ['the client\'s connection breaks', '/never', (stream, session, socket) => socket.resetAndDestroy(), `GET /never - ${ABORTED}`],
    ['the client leaves a stream', '/part', (stream) => stream.close(8), `GET /part 200 ${ABORTED}`],
    ['the client leaves an event stream', '/events', (stream) => stream.close(8), 'GET /events 200'],
    ['the client leaves an answer that it does not read', '/large', (stream) => stream.close(8), `GET /large 200 ${ABORTED}`],
    ['the server destroys the response', '/destroyed', null, `GET /destroyed - ${TERMINATED}`],
    ['the server destroys the response with an error', '/failed', null, `GET /failed - ${TERMINATED}`],
    ['the server destroys the session', '/session', null, `GET /session - ${TERMINATED}`]
  ]
  for (const [title, path, act, expected] of ENDS) {
    test(`${name}: ${title}`, async (t) => {
      const running = signal()
      const { collector, origin, port } = await tracedApp(t, {
        fastify: secure ? { http2: true, https: tls } : { http2: true },
        routes (app) {
          app.addHook('onRequest', async () => running.give())
          app.get('/never', () => new Promise(() => {}))
          app.get('/part', (request, reply) => {
            const stream = new Readable({ read () {} })
            stream.push('part')
            reply.send(stream)
          })
          app.get('/events', (request, reply) => {
            reply.hijack()
            reply.raw.writeHead(200, { 'content-type': 'text/event-stream' })
            reply.raw.write('data: 1\n\n')
          })
          app.get('/large', (request, reply) => { reply.send(Buffer.alloc(32 * 1024 * 1024)) })
          app.get('/destroyed', (request, reply) => { reply.raw.destroy() })
          app.get('/failed', (request, reply) => { reply.raw.destroy(new Error('on purpose')) })
          app.get('/session', (request, reply) => { reply.raw.stream.session.destroy() })
        }
      })
      const socket = net.connect(port, '127.0.0.1')
      await once(socket, 'connect')
      const session = http2.connect(origin, {
        createConnection: () => secure ? connectTls({ socket, rejectUnauthorized: false, ALPNProtocols: ['h2'] }) : socket
      })
      session.on('error', () => {})
      t.teardown(() => session.destroy())
      const stream = session.request({ ':path': path }).on('error', () => {})
      await running.promise
      if (act === null) await new Promise((resolve) => stream.on('close', resolve))
      else if (path === '/never') act(stream, session, socket)
      else {
        await once(stream, 'response')
        act(stream, session, socket)
      }
      t.same(await picture(collector), [expected])
    })
  }
}

test('a unix socket has no address attributes', async (t) => {
  const path = socketPath(t)
  const { collector } = await tracedApp(t, { listen: { path }, routes: (app) => app.get('/', async () => 'ok') })
  const client = (await connect(path)).request('GET', '/')
  await client.until('ok')
  await client.leave()
  t.same(await picture(collector), ['GET / 200'])
  const [{ attributes }] = await collector.spans()
  t.equal(attributes['server.address'], 'shop.test')
  for (const key of ['network.peer.address', 'network.peer.port', 'client.address']) t.notOk(key in attributes, key)
})

test('HTTP/1.0 without a Host is traced', async (t) => {
  const { collector, port } = await tracedApp(t, { routes: (app) => app.get('/', async () => 'ok') })
  const client = (await connect(port)).send('GET / HTTP/1.0\r\n\r\n')
  await client.closed
  t.same(await picture(collector), ['GET / 200'])
  const [{ attributes }] = await collector.spans()
  t.equal(attributes['network.protocol.version'], '1.0')
  t.notOk('server.address' in attributes)
  t.notOk('server.port' in attributes)
})

test('inject() ends its span with its response', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes (app) {
      app.get('/ok', async () => 'ok')
      app.get('/error', async () => { throw new Error('no') })
      app.get('/never', () => new Promise(() => {}))
      app.get('/torn', (request, reply) => { reply.raw.destroy() })
      app.get('/stream', (request, reply) => reply.send(Readable.from(['a', 'b'])))
    }
  })
  await app.inject('/ok')
  await app.inject({ method: 'HEAD', url: '/ok' })
  await app.inject('/error')
  await app.inject('/stream')
  await app.inject('/torn').catch(() => {})
  const controller = new AbortController()
  const aborted = app.inject({ url: '/never', signal: controller.signal }).catch((error) => error)
  setImmediate(() => setImmediate(() => controller.abort()))
  t.equal((await aborted).name, 'AbortError')
  t.same(await picture(collector), [
    'GET /ok 200', 'HEAD /ok 200', 'GET /error 500 ERROR error.type=Error exception=Error: no', 'GET /stream 200',
    `GET /torn - ${TERMINATED}`, `GET /never - ${ABORTED}`
  ])
})

test('inject() from a handler is a child of the handler\'s request', async (t) => {
  const { collector, origin } = await tracedApp(t, {
    routes (app) {
      app.get('/outer', async () => (await app.inject('/inner')).body)
      app.get('/inner', async () => 'inner')
    }
  })
  await (await fetch(`${origin}/outer`)).text()
  t.equal(await collector.tree(), 'SERVER GET /outer\n  SERVER GET /inner')
})

// F10 (this whole file)
test('an accepted upgrade is one span with status 101 until the socket closes', async (t) => {
  const open = signal()
  const { app, collector, port } = await tracedApp(t, {
    before: (app) => app.register(require('@fastify/websocket')),
    routes: (app) => app.get('/ws/:room', { websocket: true }, (socket) => {
      socket.on('message', (message) => socket.send(`echo ${message}`))
      open.give(socket)
    })
  })
  const client = new WebSocketClient(port, '/ws/7')
  await client.opened
  await open.promise
  t.match(app.lightTrace.stats().spans, { started: 1, ended: 0 })
  client.leave()
  t.same(await picture(collector), ['GET /ws/:room 101'])
})

test('an upgrade that a hook refuses is an ordinary answer', async (t) => {
  const { collector, port } = await tracedApp(t, {
    before: (app) => app.register(require('@fastify/websocket')),
    routes: (app) => app.get('/ws', { websocket: true, preValidation: async (request, reply) => reply.code(401).send('no') }, () => {})
  })
  const client = new WebSocketClient(port, '/ws')
  t.match(await client.refused, { statusCode: 401 })
  t.same(await picture(collector), ['GET /ws 401'])
})

test('an upgrade without a route has one span', async (t) => {
  const { collector, port } = await tracedApp(t, {
    before: (app) => app.register(require('@fastify/websocket')),
    routes: () => {}
  })
  const client = new WebSocketClient(port, '/nowhere')
  t.match(await client.refused, { statusCode: 404 })
  t.same(await picture(collector), ['GET 404'])
})

test('an unhandled Upgrade header is ignored', async (t) => {
  const { collector, port } = await tracedApp(t, { routes: (app) => app.get('/', async () => 'ok') })
  const client = (await connect(port)).request('GET', '/', { headers: { connection: 'upgrade', upgrade: 'h2c' } })
  await client.until('ok')
  t.same(await picture(collector), ['GET / 200'])
  await client.leave()
})

test('Expect: 100-continue is traced', async (t) => {
  const { collector, port } = await tracedApp(t, { routes: (app) => app.post('/', async (request) => request.body) })
  const client = (await connect(port)).send('POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-type: application/json\r\ncontent-length: 7\r\n\r\n')
  await client.until('100 Continue')
  client.send('{"a":1}')
  await client.until('{"a":1}')
  t.same(await picture(collector), ['POST / 200'])
  await client.leave()
})

test('both servers of listen({ host: \'localhost\' }) are traced', async (t) => {
  const { app, collector, port } = await tracedApp(t, { listen: { host: 'localhost' }, routes: (app) => app.get('/', async () => 'ok') })
  for (const { address } of app.addresses()) {
    const host = address.includes(':') ? `[${address}]` : address
    await (await fetch(`http://${host}:${port}/`)).text()
  }
  const spans = await collector.spans()
  t.same(await picture(collector), app.addresses().map(() => 'GET / 200'))
  t.same(spans.map(({ attributes }) => attributes['network.peer.address']), app.addresses().map(({ address }) => address))
})

// A hand-written handshake, so that we do not depend on the `ws` package.
class WebSocketClient {
  constructor (port, path) {
    const request = http.get({
      port,
      host: '127.0.0.1',
      path,
      headers: { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': 13, 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }
    })
    this.opened = once(request, 'upgrade').then(([, socket]) => { this.socket = socket })
    this.refused = once(request, 'response').then(([response]) => response.resume())
    this.opened.catch(() => {})
    this.refused.catch(() => {})
  }

  leave () {
    this.socket.destroy()
  }
}

function finished (stream) {
  return new Promise((resolve, reject) => {
    stream.on('close', resolve)
    stream.on('error', reject)
    stream.resume()
  })
}
