'use strict'

const { test } = require('tap')
const { serving, clients } = require('../support/serving')
const { tracedApp } = require('../support/traced-app')

const port = Number(process.env.SERVICES_REDIS_PORT)
const names = (spans) => spans.map(({ name }) => name)

test('redis: commands, a pipeline, a MULTI and an error have spans', async (t) => {
  const { createClient } = require('redis')
  const client = createClient({ url: `redis://127.0.0.1:${port}/2` })
  await client.connect()
  t.teardown(() => client.close())
  const { go } = await serving(t, async () => {
    await client.set('user:1', 'secret')
    t.equal(await client.get('user:1'), 'secret')
    await client.multi().set('a', '1').get('a').execAsPipeline()
    await client.multi().set('a', '1').get('a').exec()
    await t.rejects(client.lPush('user:1', 'x'))
  })
  const spans = await go()
  t.same(names(spans), ['SET', 'GET', 'PIPELINE', 'MULTI', 'LPUSH'])
  t.same(spans[0].attributes, {
    'db.system.name': 'redis',
    'db.namespace': '2',
    'db.operation.name': 'SET',
    'db.query.text': 'SET user:1 ?',
    'server.address': '127.0.0.1',
    'server.port': port,
    'network.peer.address': '127.0.0.1',
    'network.peer.port': port
  })
  t.equal(spans[2].attributes['db.operation.batch.size'], 2)
  t.match(spans[4], { status: { code: 'ERROR' }, attributes: { 'error.type': 'WRONGTYPE', 'db.response.status_code': 'WRONGTYPE' } })
  t.notMatch(JSON.stringify(spans), /secret/)
})

test('redis: calls of concurrent requests have the right parent', async (t) => {
  const { createClient } = require('redis')
  const client = createClient({ url: `redis://127.0.0.1:${port}` })
  await client.connect()
  t.teardown(() => client.close())
  const { origin, collector } = await tracedApp(t, {
    routes: (app) => app.get('/go/:id', async ({ params }) => (await client.get(`key${params.id}`)) ?? 'none')
  })
  await Promise.all(Array.from({ length: 20 }, (_, id) => fetch(`${origin}/go/${id}`).then((response) => response.text())))
  const spans = await collector.spans()
  for (const client of clients(spans)) {
    const server = spans.find(({ spanId }) => spanId === client.parentSpanId)
    t.equal(client.attributes['db.query.text'], `GET key${server.attributes['url.path'].split('/')[2]}`)
  }
})

test('ioredis: commands, a MULTI and an error have spans', async (t) => {
  const { Redis } = require('ioredis')
  const client = new Redis({ port, host: '127.0.0.1', db: 3, lazyConnect: true })
  await client.connect()
  t.teardown(() => client.disconnect())
  const { go } = await serving(t, async () => {
    await client.set('user:1', 'secret')
    t.equal(await client.get('user:1'), 'secret')
    await t.rejects(client.lpush('user:1', 'x'))
  })
  const spans = await go()
  t.same(names(spans), ['SET', 'GET', 'LPUSH'])
  t.match(spans[0].attributes, { 'db.namespace': '3', 'db.query.text': 'SET user:1 ?', 'server.address': '127.0.0.1', 'server.port': port })
  t.equal(spans[2].attributes['error.type'], 'WRONGTYPE')
  const batch = await serving(t, async () => { await client.multi().set('a', '1').get('a').exec() })
  t.ok(names(await batch.go()).includes('MULTI'))
})

for (const name of ['ioredis', 'ioredis5']) {
  test(`${name}: commands sent before the connection is ready are below their own request`, async (t) => {
    const lightTrace = require('../..')
    const { Redis } = require(name)
    const client = lightTrace.traceClient(new Redis({ port, host: '127.0.0.1', lazyConnect: true }))
    t.teardown(() => client.disconnect())
    const { origin, collector } = await tracedApp(t, {
      routes: (app) => app.get('/go/:id', async ({ params }) => (await client.get(`key${params.id}`)) ?? 'none')
    })
    await Promise.all(Array.from({ length: 10 }, (_, id) => fetch(`${origin}/go/${id}`).then((response) => response.text())))
    const spans = await collector.spans()
    const calls = clients(spans).filter(({ name }) => name === 'GET')
    t.equal(calls.length, 10)
    for (const call of calls) {
      const server = spans.find(({ spanId }) => spanId === call.parentSpanId)
      t.equal(call.attributes['db.query.text'], `GET key${server.attributes['url.path'].split('/')[2]}`)
    }
  })
}
