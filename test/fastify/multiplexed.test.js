'use strict'

// HTTP/2: many concurrent requests on one connection, each of which ends independently.

const { test } = require('tap')
const http2 = require('node:http2')
const { once } = require('node:events')
const { Readable } = require('node:stream')
const lightTrace = require('../..')
const { tracedApp } = require('../support/traced-app')
const { signal } = require('../support/raw-client')

test('a response that ends does not affect others of its connection', async (t) => {
  const running = { first: signal(), second: signal() }
  const { app, collector, origin } = await tracedApp(t, {
    fastify: { http2: true },
    routes (app) {
      app.get('/fast', async () => 'ok')
      app.get('/:name', (request, reply) => { running[request.params.name].give(reply) })
    }
  })
  const client = http2.connect(origin)
  t.teardown(() => client.destroy())

  const first = client.request({ ':path': '/first' })
  const { value: firstReply } = await running.first.promise
  const second = client.request({ ':path': '/second' })
  const { value: secondReply } = await running.second.promise
  firstReply.send('ok')
  await whole(first)
  // One more round trip, so that all work that the first stream's close has started is done.
  await whole(client.request({ ':path': '/fast' }))
  secondReply.send('ok')
  await whole(second)
  await new Promise((resolve) => client.close(resolve)) // Fastify 5.0 does not close HTTP/2 sessions
  await app.close()
  t.equal(await collector.tree(), 'SERVER GET /:name\nSERVER GET /:name\nSERVER GET /fast')
  for (const { attributes } of await collector.spans()) t.equal(attributes['http.response.status_code'], 200)
})

test('onResponse hooks see their own request, and the code before the next request sees none', async (t) => {
  const before = []
  const after = []
  const { app, collector, origin } = await tracedApp(t, {
    fastify: { http2: true, genReqId: () => { before.push(lightTrace.current()); return 'x' } },
    routes (app) {
      app.addHook('onResponse', async (request) => {
        const seen = lightTrace.current() === request.trace
        await null
        after.push(`${request.url} ${seen && lightTrace.current() === request.trace}`)
      })
      app.get('/at-once', async () => 'ok')
      app.get('/later', (request, reply) => { setImmediate(() => reply.send('ok')) })
      app.get('/stream', (request, reply) => reply.send(Readable.from(['o', 'k'])))
      app.get('/off', { config: { trace: false } }, async () => 'ok')
    }
  })
  const client = http2.connect(origin)
  t.teardown(() => client.destroy())
  const paths = ['/at-once', '/later', '/stream', '/off']
  await Promise.all(paths.map((path) => whole(client.request({ ':path': path }))))
  for (const path of paths) await whole(client.request({ ':path': path }))
  await new Promise((resolve) => client.close(resolve))
  await app.close()
  t.equal((await collector.spans()).length, 6)
  t.same(after.sort(), [...paths, ...paths].map((path) => `${path} true`).sort())
  t.same(before, Array(8).fill(undefined))
})

test('hosts and clients of one session can alternate', async (t) => {
  for (const trustProxy of [false, true]) {
    const { collector, origin } = await tracedApp(t, { fastify: { http2: true, trustProxy }, routes: (app) => app.get('/', async () => 'ok') })
    const client = http2.connect(origin)
    t.teardown(() => client.destroy())
    const asked = []
    for (let i = 0; i < 12; i++) {
      asked.push({ host: `${'abc'[i % 3]}.test`, client: `10.0.0.${Math.floor(i / 3)}`, agent: `agent ${Math.floor(i / 4)}` })
      const { host, client: ip, agent } = asked[i]
      await whole(client.request({ ':path': '/', ':authority': host, 'x-forwarded-for': ip, 'user-agent': agent }))
    }
    await new Promise((resolve) => client.close(resolve))
    const seen = (await collector.spans()).map(({ attributes }) => ({
      host: attributes['server.address'], client: attributes['client.address'], agent: attributes['user_agent.original']
    }))
    t.same(seen, asked.map((caller) => trustProxy ? caller : { ...caller, client: '127.0.0.1' }))
  }
})

test('a stream that closes while a hook before ours is busy ends its span', async (t) => {
  const running = signal()
  const left = signal()
  const { app, collector, origin } = await tracedApp(t, {
    fastify: { http2: true },
    before: (app) => app.addHook('onRequest', async (request, { raw }) => { running.give(raw.stream); await left.promise }),
    routes: (app) => app.get('/', async () => 'nobody')
  })
  const client = http2.connect(origin).on('error', () => {})
  client.request({ ':path': '/' }).on('error', () => {})
  const { value: stream } = await running.promise
  const gone = new Promise((resolve) => stream.on('close', resolve))
  client.destroy()
  await gone
  left.give()
  await new Promise((resolve) => setImmediate(resolve)) // our hook has run by now
  t.equal(await collector.tree(), 'SERVER GET / ERROR error.type=aborted')
  t.match(app.lightTrace.stats().spans, { started: 1, ended: 1 })
})

async function whole (stream) {
  stream.resume()
  await once(stream, 'close')
}
