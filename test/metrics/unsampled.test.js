'use strict'

// Requests without a span are counted like those with a span: the same number and the same attributes, however they end.

const http = require('node:http')
const { once } = require('node:events')
const { Readable } = require('node:stream')
const { test } = require('tap')
const { measuredApp, points } = require('../support/measured-app')
const { connect, signal, inOrder } = require('../support/raw-client')

const NODE_MAJOR = Number(process.versions.node.split('.')[0])

/** Returns the count of each series after `scenario`, with every request sampled and with none sampled. */
async function bothWays (t, routes, scenario, options = {}) {
  const counts = []
  for (const sampler of [1, 0]) {
    const made = await measuredApp(t, { sampler, ...options }, routes)
    await scenario({ ...made, port: Number(new URL(made.origin).port) })
    const found = Object.entries(await points(made.app, made.sink))
    counts.push(Object.fromEntries(found.map(([label, { count }]) => [label.replace('GET http 1.1 ', ''), count]).sort()))
  }
  t.same(counts[1], counts[0], 'the same with and without spans')
  return counts[1]
}

const inProxy = (response) => new Proxy(response, {
  get (target, key) {
    const value = target[key]
    return typeof value === 'function' ? value.bind(target) : value
  },
  set (target, key, value) {
    target[key] = value
    return true
  }
})

const ok = (route) => `http.response.status_code=200 http.route=${route}`

for (const leave of ['leave', 'reset']) {
  for (const nth of ['first', 'second']) {
    test(`a client that leaves (${leave}) during the ${nth} request of its connection is counted`, async (t) => {
      let running
      const counts = await bothWays(t, (app) => {
        running = signal()
        const { give } = running
        app.get('/slow', (request, reply) => {
          reply.raw.on('close', () => reply.code(499).send()) // too late
          give()
        })
      }, async ({ port }) => {
        const client = await connect(port)
        if (nth === 'second') await client.request('GET', '/users/1').until('{"ok":true}')
        client.request('GET', '/slow')
        await running.promise
        await client[leave]()
      })
      t.same(counts, { 'http.route=/slow error.type=aborted': 1, ...(nth === 'second' ? { [ok('/users/:id')]: 1 } : {}) })
    })
  }
}

test('streams, hijacked replies, a destroyed response and later requests are counted', async (t) => {
  const counts = await bothWays(t, (app) => {
    app.get('/stream', (request, reply) => reply.send(Readable.from(['a', 'b', 'c'])))
    app.get('/hijacked', (request, reply) => {
      reply.hijack()
      reply.raw.end('hijacked')
    })
    app.get('/destroyed', (request, reply) => { reply.hijack(); reply.raw.destroy() })
    app.get('/half', (request, reply) => {
      reply.hijack()
      reply.raw.write('half')
      setImmediate(() => reply.raw.destroy())
    })
  }, async ({ origin }) => {
    for (const path of ['stream', 'hijacked', 'destroyed', 'half', 'stream', 'users/1']) {
      await fetch(`${origin}/${path}`).then((response) => response.text()).catch(() => {})
    }
  })
  t.same(counts, {
    [ok('/stream')]: 2,
    [ok('/hijacked')]: 1,
    [ok('/users/:id')]: 1,
    'http.response.status_code=200 http.route=/half error.type=response_terminated': 1,
    'http.route=/destroyed error.type=response_terminated': 1
  })
})

test('pipelined requests are counted in any order of their answers, also if the client leaves the queue', async (t) => {
  let arrived
  const counts = await bothWays(t, (app) => {
    arrived = signal()
    const { give } = arrived
    app.get('/as/:place', inOrder(3))
    app.get('/never/:n', ({ params }) => { if (params.n === '3') give() })
  }, async ({ port }) => {
    const client = await connect(port)
    for (let round = 0; round < 2; round++) {
      for (const place of [3, 1, 2]) client.request('GET', `/as/${place}`)
      await client.until('as 2.', round + 1)
    }
    for (const n of [1, 2, 3]) client.request('GET', `/never/${n}`)
    await arrived.promise
    await client.leave()
  })
  t.same(counts, { [ok('/as/:place')]: 6, 'http.route=/never/:n error.type=aborted': 3 })
})

test('an error that is passed to fail after the response has gone out is error.type', async (t) => {
  const counts = await bothWays(t, (app) => {
    app.get('/hook', { onResponse: async (request) => { request.trace.fail(new RangeError('x')) } }, async (request, reply) => reply.code(503).send('x'))
    app.get('/tick', (request, reply) => {
      reply.code(500).send('x')
      process.nextTick(() => request.trace.fail(new SyntaxError('x')))
    })
  }, async ({ get }) => {
    for (const path of ['/hook', '/tick']) await get(path)
  })
  t.same(counts, {
    'http.response.status_code=503 http.route=/hook error.type=RangeError': 1,
    'http.response.status_code=500 http.route=/tick error.type=SyntaxError': 1
  })
})

test('a server that gives Fastify a custom response is counted', async (t) => {
  const serverFactory = (handler) => http.createServer((request, response) => handler(request, inProxy(response)))
  const counts = await bothWays(t, () => {}, async ({ get }) => {
    for (let i = 0; i < 3; i++) await get(`/users/${i}`)
  }, { fastify: { serverFactory } })
  t.same(counts, { [ok('/users/:id')]: 3 })
})

test('a server that starts to give Fastify custom responses on an open connection is counted', async (t) => {
  const counts = await bothWays(t, () => {}, async ({ app, port }) => {
    const client = await connect(port)
    await client.request('GET', '/users/1').until('{"ok":true}')
    const [handler] = app.server.listeners('request')
    app.server.off('request', handler)
    app.server.on('request', (request, response) => handler(request, inProxy(response)))
    for (const n of [2, 3]) await client.request('GET', `/users/${n}`).until('{"ok":true}', n)
    await client.leave()
  })
  t.same(counts, { [ok('/users/:id')]: 3 })
})

test('a refused upgrade on a used connection, with a custom response, is counted', async (t) => {
  const counts = await bothWays(t, (app) => {
    app.get('/refused', async (request, reply) => {
      const { socket } = request.raw
      reply.raw.on('finish', () => {
        reply.raw.detachSocket(socket)
        socket.end()
        reply.raw.emit('close')
      })
      return reply.code(403).send('no')
    })
  }, async ({ app, port }) => {
    app.server.on('upgrade', (request, socket) => {
      const response = new http.ServerResponse(request)
      response.assignSocket(socket)
      app.routing(request, response)
    })
    const client = await connect(port)
    await client.request('GET', '/users/1').until('{"ok":true}')
    await client.request('GET', '/refused', { headers: { connection: 'upgrade', upgrade: 'websocket' } }).closed
  })
  t.same(counts, { [ok('/users/:id')]: 1, 'http.response.status_code=403 http.route=/refused': 1 })
})

test('a socket that the application has detached from its response ends the request', async (t) => {
  const counts = await bothWays(t, (app) => {
    app.get('/taken', (request, reply) => {
      reply.hijack()
      const { socket } = request.raw
      reply.raw.detachSocket(socket)
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx')
    })
  }, async ({ port, get }) => {
    await get('/users/1')
    const client = await connect(port)
    await client.request('GET', '/taken').closed
  })
  // Before Node 24, a connection that closes also closes everything that is open on it. See lib/fastify/response-end.js.
  if (NODE_MAJOR >= 24) t.same(counts, { [ok('/users/:id')]: 1 })
})

test('an answer whose headers come before the request\'s body was read is counted', async (t) => {
  const counts = await bothWays(t, (app) => {
    app.addContentTypeParser('*', (request, payload, done) => done(null))
    app.post('/upload', async (request, reply) => reply.code(413).send('x'))
  }, async ({ port }) => {
    const client = await connect(port)
    client.send('POST /upload HTTP/1.1\r\nhost: a\r\ncontent-type: x/y\r\ncontent-length: 10\r\n\r\nabc')
    await client.until('413')
    await client.leave()
  })
  t.same(Object.values(counts), [1])
})

test('two applications count their own requests, and one continues after the other has closed', async (t) => {
  const first = await measuredApp(t, { sampler: 0 })
  const second = await measuredApp(t, { sampler: 0 })
  const other = http.createServer((request, response) => response.end('x')).listen(0, '127.0.0.1')
  t.teardown(() => other.close())
  await once(other, 'listening')
  await first.get('/users/1')
  await second.get('/users/1')
  const counted = await points(first.app, first.sink)
  t.equal(counted[`GET http 1.1 ${ok('/users/:id')}`].count, 1)
  await second.get('/users/2')
  await (await fetch(`http://127.0.0.1:${other.address().port}`)).text()
  t.equal((await points(second.app, second.sink))[`GET http 1.1 ${ok('/users/:id')}`].count, 2)
})

test('a connection with many requests has one listener of ours', async (t) => {
  const sockets = new Set()
  const { origin, app } = await measuredApp(t, { sampler: 0 }, (app) => {
    app.addHook('onRequest', async (request) => { sockets.add(request.raw.socket) })
  })
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const counts = []
  for (let i = 0; i < 20; i++) {
    const [response] = await once(http.get(`${origin}/users/1`, { agent }), 'response')
    response.resume()
    await once(response, 'end')
    counts.push([...sockets][0].listenerCount('close'))
  }
  t.equal(sockets.size, 1)
  t.equal(counts.at(-1), counts[1])
  t.equal((await app.lightTrace.metrics()).match(/_count\{.*\} (\d+)/)[1], '20')
})
