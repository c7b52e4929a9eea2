'use strict'

const { once } = require('node:events')
const http = require('node:http')
const { PassThrough } = require('node:stream')
const { test } = require('tap')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')
const { picture } = require('../support/picture')
const { connect, signal } = require('../support/raw-client')

const ABORTED = 'ERROR error.type=aborted'
const TERMINATED = 'ERROR error.type=response_terminated'

for (const [how, leave] of [['politely', (client) => client.leave()], ['with a reset', (client) => client.reset()]]) {
  // F01, F02
  test(`a client that leaves ${how} ends the request as aborted if the handler never answers`, async (t) => {
    const running = signal()
    const { app, collector, port } = await tracedApp(t, {
      routes: (app) => app.get('/slow', () => { running.give(); return new Promise(() => {}) })
    })
    const client = (await connect(port)).request('GET', '/slow')
    await running.promise
    await leave(client)
    t.same(await picture(collector), [`GET /slow - ${ABORTED}`])
    t.equal(await collector.tree(), 'SERVER GET /slow ERROR error.type=aborted')
    t.match(app.lightTrace.stats().spans, { started: 1, ended: 1 })
  })

  test(`a client that leaves ${how} ends the request as aborted even if the handler answers later`, async (t) => {
    const running = signal()
    const { app, collector, port } = await tracedApp(t, {
      routes: (app) => app.get('/slow', (request, reply) => { running.give(reply) })
    })
    const client = (await connect(port)).request('GET', '/slow')
    const { value: reply } = await running.promise
    await leave(client)
    t.same(await picture(collector), [`GET /slow - ${ABORTED}`])
    reply.code(201).send('nobody')
    await new Promise((resolve) => setImmediate(resolve))
    t.same(await picture(collector), [`GET /slow - ${ABORTED}`], 'a late answer changes nothing')
    t.match(app.lightTrace.stats().spans, { started: 1, ended: 1 })
  })

  // F01
  test(`a client that leaves ${how} in the middle of its body ends the request as aborted`, async (t) => {
    const arrived = signal()
    const { collector, port } = await tracedApp(t, {
      routes (app) {
        app.addHook('preParsing', async () => { arrived.give() })
        app.post('/upload', async () => 'ok')
      }
    })
    const client = (await connect(port)).send('POST /upload HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"half":')
    await arrived.promise
    await leave(client)
    const [line] = await picture(collector)
    t.match(line, new RegExp(`^POST /upload - ${ABORTED}`))
  })

  test(`a client that leaves ${how} after the whole response changes nothing`, async (t) => {
    const { collector, port } = await tracedApp(t, { routes: (app) => app.get('/', async () => 'everything') })
    const client = (await connect(port)).request('GET', '/')
    await client.until('everything')
    await leave(client)
    t.same(await picture(collector), ['GET / 200'])
  })
}

for (const [name, pipelined] of [['a client', false], ['a client with a second request in the pipeline', true]]) {
  // F07
  test(`${name} that leaves while a hook before ours is busy ends the spans`, async (t) => {
    const running = signal()
    const left = signal()
    const { app, collector, port } = await tracedApp(t, {
      before: (app) => app.addHook('onRequest', async (request) => {
        if (request.url === (pipelined ? '/second' : '/first')) running.give(request.raw.socket)
        await left.promise
      }),
      routes: (app) => app.get('/:name', async () => 'nobody')
    })
    const client = (await connect(port)).request('GET', '/first')
    if (pipelined) client.request('GET', '/second')
    const { value: socket } = await running.promise
    const gone = new Promise((resolve) => socket.on('close', resolve))
    await client.leave()
    await gone
    await new Promise((resolve) => setImmediate(resolve))
    left.give()
    await new Promise((resolve) => setImmediate(resolve)) // our hook has run by now
    t.same(await picture(collector), Array(pipelined ? 2 : 1).fill(`GET /:name - ${ABORTED}`))
    const { started, ended } = app.lightTrace.stats().spans
    t.equal(ended, started)
  })
}

test('a client that leaves before its request is read has one span or none', async (t) => {
  const { app, collector, port } = await tracedApp(t, { routes: (app) => app.get('/', () => new Promise(() => {})) })
  const seen = once(app.server, 'connection')
  const client = await connect(port)
  client.request('GET', '/').socket.resetAndDestroy()
  const [socket] = await seen
  if (!socket.closed) await new Promise((resolve) => socket.on('close', resolve)) // `once` would reject if the socket was reset
  const lines = await picture(collector)
  const { started, ended } = app.lightTrace.stats().spans
  t.ok(started <= 1)
  t.equal(ended, started)
  t.same(lines, Array.from({ length: started }, () => `GET / - ${ABORTED}`))
})

test('a client that only closes its sending side gets its answer', async (t) => {
  const { collector, port } = await tracedApp(t, { routes: (app) => app.get('/', async () => 'answer') })
  const client = (await connect(port)).request('GET', '/')
  client.socket.end()
  await client.until('answer')
  await client.closed
  t.same(await picture(collector), ['GET / 200'])
})

test('a large answer that the client does not read ends as aborted', async (t) => {
  const running = signal()
  const { collector, port } = await tracedApp(t, {
    routes: (app) => app.get('/large', (request, reply) => {
      reply.send(Buffer.alloc(64 * 1024 * 1024))
      running.give()
    })
  })
  const client = await connect(port)
  client.socket.pause()
  client.request('GET', '/large')
  await running.promise
  await client.reset()
  t.same(await picture(collector), [`GET /large 200 ${ABORTED}`])
})

test('reply.raw.destroy() ends the request as response_terminated', async (t) => {
  const { collector, port } = await tracedApp(t, {
    routes (app) {
      app.get('/before', (request, reply) => { reply.raw.destroy() })
      app.get('/error', (request, reply) => { reply.raw.destroy(new Error('on purpose')) })
      app.get('/socket', (request) => { request.raw.socket.destroy() })
      app.get('/after', (request, reply) => {
        reply.raw.writeHead(200)
        reply.raw.write('part')
        reply.raw.destroy()
      })
    }
  })
  for (const path of ['/before', '/error', '/socket', '/after']) await (await connect(port)).request('GET', path).closed
  t.same(await picture(collector), [
    `GET /before - ${TERMINATED}`, `GET /error - ${TERMINATED}`, `GET /socket - ${TERMINATED}`, `GET /after 200 ${TERMINATED}`
  ])
})

// F06; answers.test.js tests handlerTimeout
test('connectionTimeout ends the request as response_terminated', async (t) => {
  const { collector, port } = await tracedApp(t, {
    fastify: { connectionTimeout: 60_000 },
    routes: (app) => app.get('/slow', (request) => {
      request.raw.socket.setTimeout(1) // not at the connection: on a busy machine that is over before the request is read
      return new Promise(() => {})
    })
  })
  await (await connect(port)).request('GET', '/slow').closed
  t.same(await picture(collector), [`GET /slow - ${TERMINATED}`])
})

test('app.close() ends running requests and hands over their spans', async (t) => {
  const running = signal()
  const { app, collector, port } = await tracedApp(t, {
    routes: (app) => app.get('/slow', () => { running.give(); return new Promise(() => {}) })
  })
  const client = (await connect(port)).request('GET', '/slow')
  await running.promise
  await app.close()
  await client.closed
  t.same(await picture(collector), [`GET /slow - ${TERMINATED}`])
  t.match(app.lightTrace.stats().spans, { started: 1, ended: 1, accepted: 1, dropped: {} })
})

test('a request that is answered while the app closes keeps its span', async (t) => {
  const running = signal()
  const { app, collector, port } = await tracedApp(t, {
    fastify: { forceCloseConnections: false },
    routes: (app) => app.get('/slow', (request, reply) => { running.give(reply) })
  })
  const client = (await connect(port)).request('GET', '/slow')
  const { value: reply } = await running.promise
  const closed = app.close()
  setImmediate(() => reply.send('late'))
  await client.until('late')
  await client.leave() // or its keep-alive connection keeps the server open
  await closed
  t.same(await picture(collector), ['GET /slow 200'])
  t.match(app.lightTrace.stats().spans, { ended: 1, accepted: 1 })
})

test('a queue of pipelined requests ends when the client leaves', async (t) => {
  const running = signal()
  const { app, collector, port } = await tracedApp(t, {
    routes (app) {
      app.get('/slow', () => { running.give(); return new Promise(() => {}) })
      app.get('/quick', async () => 'quick')
      app.get('/never', () => new Promise(() => {}))
    }
  })
  const client = await connect(port)
  client.request('GET', '/quick').request('GET', '/slow').request('GET', '/quick').request('GET', '/never')
  await client.until('quick')
  await running.promise
  await client.leave()
  const lines = await picture(collector)
  t.equal(lines.length, 4)
  t.equal(lines[0], 'GET /quick 200')
  t.equal(lines[1], `GET /slow - ${ABORTED}`)
  t.match(lines[2], /^GET \/quick (200|-) ERROR error\.type=aborted$/, 'answered, but still in the queue')
  t.equal(lines[3], `GET /never - ${ABORTED}`)
  t.match(app.lightTrace.stats().spans, { started: 4, ended: 4, accepted: 4 })
})

test('pipelined requests that are all answered have one span each', async (t) => {
  const isThere = signal()
  const { collector, port } = await tracedApp(t, {
    routes (app) {
      // The second answer is ready before the first.
      app.get('/a', (request, reply) => { isThere.promise.then(() => reply.send('aaa')) })
      app.get('/b', async () => {
        setImmediate(isThere.give)
        return 'bbb'
      })
    }
  })
  const client = await connect(port)
  client.send('GET /a HTTP/1.1\r\nhost: x\r\n\r\nGET /b HTTP/1.1\r\nhost: x\r\n\r\nGET /a HTTP/1.1\r\nhost: x\r\n\r\n')
  await client.until('aaa', 2)
  t.same(await picture(collector), ['GET /a 200', 'GET /b 200', 'GET /a 200'])
  await client.leave()
})

// Node removes its own listeners from the socket in these cases.
const LAST_WORDS = {
  'a CONNECT that nobody listens to': { text: 'CONNECT shop.test:80 HTTP/1.1\r\nhost: shop.test\r\n\r\n' },
  'a CONNECT': { text: 'CONNECT shop.test:80 HTTP/1.1\r\nhost: shop.test\r\n\r\n', event: 'connect' },
  'an upgrade': { text: 'GET / HTTP/1.1\r\nhost: shop.test\r\nconnection: upgrade\r\nupgrade: own\r\n\r\n', event: 'upgrade' }
}

for (const [what, { text, event }] of Object.entries(LAST_WORDS)) {
  test(`a queue of pipelined requests before ${what} ends with its child spans when the client leaves`, { skip: without('stages') }, async (t) => {
    const running = signal()
    let count = 0
    const { app, collector, port } = await tracedApp(t, {
      trace: { spans: { handler: true, hooks: ['preHandler'] }, metrics: { exporter: 'none', activeRequests: true } },
      routes (app) {
        app.get('/slow', (request, reply) => { if (++count === 4) running.give() })
        app.get('/held', { preHandler: (request, reply, done) => { if (++count === 4) running.give() } }, async () => 'never')
      }
    })
    if (event !== undefined) app.server.on(event, (request, socket) => socket.resume().on('error', () => {}))
    const client = await connect(port)
    client.send(['/slow', '/slow', '/held', '/slow'].map((path) => `GET ${path} HTTP/1.1\r\nhost: shop.test\r\n\r\n`).join('') + text)
    await running.promise
    await new Promise(setImmediate) // Node for Windows, under wine, does not see the end of a connection that is reset before the last request is read
    await client.reset()
    const lines = await picture(collector)
    t.same(lines.map((line) => line.replace(/(aborted|response_terminated)$/, 'x')).sort(), [
      'GET /held - ERROR error.type=x', ...Array(3).fill('GET /slow - ERROR error.type=x')
    ])
    const children = (await collector.spans()).filter(({ kind }) => kind !== 'SERVER').map(({ name }) => name)
    t.same(children.sort(), [...Array(3).fill('handler'), 'preHandler'])
    t.match(app.lightTrace.stats().spans, { started: 8, ended: 8 })
    if (!without('metrics')) t.match(await app.lightTrace.metrics(), /http_server_active_requests\{[^}]*\} 0/)
  })
}

// As adapters for serverless functions make them. Such a response emits no 'close'.
test('a request that an application passes to app.routing() ends when its own response is written', async (t) => {
  const { app, collector } = await tracedApp(t, { routes: (app) => app.get('/', async () => 'ok'), listen: false })
  const request = new http.IncomingMessage(new PassThrough())
  Object.assign(request, { method: 'GET', url: '/', headers: { host: 'a' }, httpVersion: '1.1', httpVersionMajor: 1, httpVersionMinor: 1 })
  request.push(null)
  const response = new http.ServerResponse(request)
  response.assignSocket(request.socket)
  const finished = once(response, 'finish')
  app.routing(request, response)
  await finished
  await new Promise((resolve) => setImmediate(resolve))
  t.match(app.lightTrace.stats().spans, { started: 1, ended: 1 })
  t.same(await picture(collector), ['GET / 200'])
})
