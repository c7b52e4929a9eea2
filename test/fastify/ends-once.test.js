'use strict'

// However a response ends, its span ends once, with all data that the application has added until then.

const http = require('node:http')
const { Readable, Writable } = require('node:stream')
const { pipeline } = require('node:stream/promises')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { picture } = require('../support/picture')
const { connect, signal, inOrder } = require('../support/raw-client')

const silent = { logger: { level: 'info', stream: { write () {} } } }

for (const [what, fastify] of [['without a logger', {}], ['with a logger', silent]]) {
  test(`an attribute from a listener of 'finish' is in the span, ${what}`, async (t) => {
    const { collector, origin } = await tracedApp(t, {
      fastify,
      routes: (app) => app.get('/', async (request, reply) => {
        reply.raw.on('finish', () => request.trace.span.setAttribute('finished', true))
        return 'ok'
      })
    })
    for (let i = 0; i < 3; i++) await (await fetch(origin)).text()
    const spans = await collector.spans()
    t.same(spans.map(({ attributes }) => attributes.finished), [true, true, true])
  })

  test(`an attribute from an onResponse hook is in the span, ${what}`, async (t) => {
    const { collector, origin } = await tracedApp(t, {
      fastify,
      routes (app) {
        app.get('/', { onResponse: async (request) => { request.trace.span.setAttribute('responded', true) } }, async () => 'ok')
      }
    })
    await (await fetch(origin)).text()
    t.equal((await collector.spans())[0].attributes.responded, true)
  })

  for (const [how, late] of [
    ['process.nextTick after send()', (request, reply) => process.nextTick(() => request.trace.span.setAttribute('late', true))],
    ["a listener of 'close' that comes first", (request, reply) => reply.raw.prependListener('close', () => request.trace.span.setAttribute('late', true))]
  ]) {
    test(`an attribute from ${how} is in the span, ${what}`, async (t) => {
      const { collector, origin } = await tracedApp(t, {
        fastify,
        routes: (app) => app.get('/', (request, reply) => {
          reply.send('ok')
          late(request, reply)
        })
      })
      for (let i = 0; i < 2; i++) await (await fetch(origin)).text()
      t.same((await collector.spans()).map(({ attributes }) => attributes.late), [true, true])
    })
  }
}

test('attributes from onResponse hooks of the scope that answers 404 are in the span', async (t) => {
  const { collector, origin } = await tracedApp(t, {
    routes: (app) => app.register(async (scope) => {
      scope.addHook('onResponse', async (request) => { request.trace.span.setAttribute('responded', true) })
      scope.setNotFoundHandler((request, reply) => reply.code(404).send('none'))
      scope.get('/none', { onResponse: [] }, (request, reply) => reply.callNotFound())
    })
  })
  await (await fetch(`${origin}/none`)).text()
  t.equal((await collector.spans())[0].attributes.responded, true)
})

test('an attribute set during the logger\'s last line is in the span', async (t) => {
  const serializers = { res (reply) { reply.request?.trace.span.setAttribute('logged', true); return {} } }
  const { collector, origin } = await tracedApp(t, { fastify: { logger: { ...silent.logger, serializers } }, routes: (app) => app.get('/', async () => 'ok') })
  await (await fetch(origin)).text()
  t.equal((await collector.spans())[0].attributes.logged, true)
})

test('pipelined requests have one span each, in any order of their answers', async (t) => {
  const { app, collector, port } = await tracedApp(t, {
    routes: (app) => app.get('/:place', inOrder(3))
  })
  const client = await connect(port)
  for (let round = 0; round < 2; round++) {
    for (const place of [3, 1, 2]) client.request('GET', `/${place}`)
    await client.until('as 2.', round + 1)
  }
  t.equal((await picture(collector)).length, 6)
  t.match(app.lightTrace.stats().spans, { started: 6, ended: 6 })
})

for (const [how, leave] of [['politely', (client) => client.leave()], ['with a reset', (client) => client.reset()]]) {
  for (const nth of ['first', 'second']) {
    test(`a client that leaves ${how} during the ${nth} request of its connection ends the span once`, async (t) => {
      const running = signal()
      const { app, collector, port } = await tracedApp(t, {
        routes (app) {
          app.get('/', async () => 'first.')
          app.get('/slow', (request, reply) => {
            reply.raw.on('close', () => reply.code(499).send()) // too late, so it is not sent
            running.give()
          })
        }
      })
      const client = await connect(port)
      const expected = ['GET /slow - ERROR error.type=aborted']
      if (nth === 'second') {
        await client.request('GET', '/').until('first.')
        expected.unshift('GET / 200')
      }
      client.request('GET', '/slow')
      await running.promise
      await leave(client)
      t.same(await picture(collector), expected)
      t.match(app.lightTrace.stats().spans, { started: expected.length, ended: expected.length })
    })
  }
}

test('streams, hijacked replies and destroyed responses end once', async (t) => {
  const { app, collector, origin } = await tracedApp(t, {
    routes (app) {
      app.get('/stream', (request, reply) => reply.send(Readable.from(['a', 'b', 'c'])))
      app.get('/pipeline', async (request, reply) => {
        reply.hijack()
        reply.raw.writeHead(200)
        await pipeline(Readable.from(['a', 'b']), reply.raw)
      })
      app.get('/hijacked', (request, reply) => {
        reply.hijack()
        reply.raw.end('hijacked')
      })
      app.get('/destroyed', (request, reply) => { reply.hijack(); reply.raw.destroy() })
    }
  })
  const got = []
  for (const path of ['stream', 'pipeline', 'hijacked', 'destroyed']) {
    got.push(await fetch(`${origin}/${path}`).then((response) => response.text(), () => 'broken'))
  }
  t.same(got, ['abc', 'ab', 'hijacked', 'broken'])
  t.same(await picture(collector), ['GET /stream 200', 'GET /pipeline 200', 'GET /hijacked 200', 'GET /destroyed - ERROR error.type=response_terminated'])
  t.match(app.lightTrace.stats().spans, { started: 4, ended: 4 })
})

test('a response of the application\'s own ends when it finishes, even if the connection of the request stays open', async (t) => {
  const { app, collector } = await tracedApp(t, { listen: false, routes: (app) => app.get('/', async () => 'ok') })
  const server = http.createServer((request, response) => {
    const own = new http.ServerResponse(request)
    own.on('finish', () => response.end('done'))
    app.routing(request, own)
    own.assignSocket(new Writable({ write (chunk, encoding, done) { done() } }))
  })
  t.teardown(() => server.close())
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const client = await connect(server.address().port)
  for (let i = 1; i <= 2; i++) await client.request('GET', '/').until('done', i)
  t.same(await picture(collector), ['GET / 200', 'GET / 200'])
  await client.leave()
})
