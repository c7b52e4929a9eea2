'use strict'

// The recorded status is the one that was sent, even if others have redefined or changed the response's properties.

const http2 = require('node:http2')
const { test } = require('tap')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')
const { picture } = require('../support/picture')
const { connect } = require('../support/raw-client')

/** As @fastify/express does since 4.0.6. */
function shadow (response) {
  Object.defineProperty(response, 'headersSent', { get: () => false, configurable: true })
}

const routes = (app) => {
  app.get('/ok', async () => 'ok')
  app.get('/thrown', async () => { throw new Error('broken') })
  app.get('/later', (request, reply) => {
    reply.raw.on('finish', () => { reply.raw.statusCode = 500 })
    reply.send('ok')
  })
  app.get('/own-message', (request, reply) => {
    reply.hijack()
    reply.raw.writeHead(404, 'Nobody Home')
    reply.raw.end('ok')
    reply.raw.statusCode = 500
  })
  app.get('/after-the-head', async (request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'text/plain' })
    reply.raw.write('ok')
    reply.raw.statusCode = 500
    reply.raw.end()
  })
}

const EXPECTED = ['GET /ok 200', 'GET /thrown 500 ERROR error.type=Error exception=Error: broken', 'GET /later 200', 'GET /own-message 404', 'GET /after-the-head 200']

for (const [what, before] of [['', undefined], [', where headersSent is redefined', (app) => app.addHook('onRequest', async (request, reply) => shadow(reply.raw))]]) {
  test(`the recorded status is the one that was sent${what}`, async (t) => {
    const { collector, origin, app } = await tracedApp(t, { before, routes, trace: { metrics: { exporter: 'none' } } })
    for (const line of EXPECTED) await (await fetch(origin + line.split(' ')[1])).text()
    t.same(await picture(collector), EXPECTED)
    if (without('metrics')) return
    const text = await app.lightTrace.metrics()
    t.match(text, /status_code="500",http_route="\/thrown"|http_route="\/thrown"[^}]*status_code="500"/)
    t.notMatch(text, /route="\/later"[^}]*status_code="500"|status_code="500"[^}]*route="\/later"/)
  })
}

test('it is also right over HTTP/2', async (t) => {
  const { collector, origin } = await tracedApp(t, {
    fastify: { http2: true },
    routes (app) {
      app.get('/ok', async () => 'ok')
      app.get('/after-the-head', (request, reply) => {
        reply.hijack()
        reply.raw.writeHead(200)
        reply.raw.write('ok')
        reply.raw.statusCode = 500
        reply.raw.end()
      })
    }
  })
  const client = http2.connect(origin)
  t.teardown(() => client.destroy())
  for (const path of ['/ok', '/after-the-head']) {
    const stream = client.request({ ':path': path })
    stream.resume()
    await new Promise((resolve) => stream.on('close', resolve))
  }
  t.same(await picture(collector), ['GET /ok 200', 'GET /after-the-head 200'])
})

test('a hijacked stream whose client leaves is no error, where headersSent is redefined', async (t) => {
  const { collector, port } = await tracedApp(t, {
    before: (app) => app.addHook('onRequest', async (request, reply) => shadow(reply.raw)),
    routes: (app) => app.get('/stream', (request, reply) => {
      reply.hijack()
      reply.raw.writeHead(200)
      reply.raw.write('begun')
    })
  })
  const client = await connect(port)
  await client.request('GET', '/stream').until('begun')
  await client.leave()
  t.same(await picture(collector), ['GET /stream 200'])
})
