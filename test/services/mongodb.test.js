'use strict'

// MongoDB's own driver. The server is an imitation, see support/mongo-wire.js.

const { test } = require('tap')
const lightTrace = require('../..')
const { serving } = require('../support/serving')
const { tracedApp } = require('../support/traced-app')
const { startMongo } = require('../support/mongo-wire')

const SECRET = 's3cret'

function answer (command) {
  const { Long } = require('mongodb')
  if (/^c\d+$/.test(command.find)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3) // long enough for other requests to wait
  if (command.find === 'held') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600) // longer than other requests may wait
  if (command.find === 'broken') throw Object.assign(new Error(`near ${SECRET}`), { code: 11000 })
  if (command.find !== undefined) return { cursor: { id: Long.ZERO, ns: `shop.${command.find}`, firstBatch: [{ name: SECRET }] } }
  if (command.aggregate !== undefined) return { cursor: { id: Long.ZERO, ns: 'shop.users', firstBatch: [] } }
  return { n: 1, nModified: 1 }
}

async function connect (t, options = {}) {
  const { MongoClient, BSON } = require('mongodb')
  const port = await startMongo(t, BSON, answer)
  const client = new MongoClient(`mongodb://127.0.0.1:${port}/shop?directConnection=true`, options)
  t.equal(lightTrace.traceClient(client), client)
  t.equal(lightTrace.traceClient(client), client, 'a second call changes nothing')
  t.teardown(() => client.close())
  await client.connect()
  return { client, port }
}

test('mongodb: each command of a traced client has a span, without values', async (t) => {
  const { client, port } = await connect(t)
  const users = client.db('shop').collection('users')
  const { go } = await serving(t, async () => {
    t.equal((await users.findOne({ password: SECRET })).name, SECRET)
    await users.insertMany([{ password: SECRET }, { password: SECRET }])
    await users.bulkWrite([{ updateOne: { filter: { a: SECRET }, update: { $set: { b: SECRET } } } }, { updateOne: { filter: { a: 1 }, update: { $set: { b: 2 } } } }])
    await users.aggregate([{ $match: { password: SECRET } }]).toArray()
    await t.rejects(client.db('shop').collection('broken').findOne({ password: SECRET }), { code: 11000 })
  })
  const spans = await go()
  t.same(spans.map(({ name }) => name), ['find users', 'insert users', 'update users', 'aggregate users', 'find broken'])
  t.same(spans[0].attributes, {
    'db.system.name': 'mongodb',
    'db.namespace': 'shop',
    'db.operation.name': 'find',
    'db.collection.name': 'users',
    'server.address': '127.0.0.1',
    'server.port': port
  })
  t.notOk('db.operation.batch.size' in spans[1].attributes)
  t.equal(spans[2].attributes['db.operation.batch.size'], 2)
  t.match(spans[4], { status: { code: 'ERROR' }, attributes: { 'error.type': '11000', 'db.response.status_code': '11000' } })
  t.notMatch(JSON.stringify(spans), SECRET)
})

test('mongodb: an abandoned wait for a connection has failed', async (t) => {
  const { client } = await connect(t, { maxPoolSize: 1, waitQueueTimeoutMS: 300 })
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/:user', async () => {
      const [first, second] = await Promise.allSettled(['held', 'users'].map((name) => client.db('shop').collection(name).findOne({})))
      return [first.status, second.reason?.name]
    })
  })
  t.same((await app.inject('/a')).json(), ['fulfilled', 'MongoWaitQueueTimeoutError'])
  t.match(await collector.tree(), /INTERNAL wait for connection ERROR error\.type=MongoWaitQueueTimeoutError/)
})

test('mongodb: commands of concurrent requests on one connection have the right parent', async (t) => {
  const { client } = await connect(t, { maxPoolSize: 1 })
  const { origin, collector } = await tracedApp(t, {
    routes: (app) => app.get('/go/:id', async ({ params }) => client.db('shop').collection(`c${params.id}`).findOne({}))
  })
  await Promise.all(Array.from({ length: 20 }, (_, id) => fetch(`${origin}/go/${id}`).then((response) => response.text())))
  const spans = await collector.spans()
  const calls = spans.filter(({ kind }) => kind === 'CLIENT')
  t.equal(calls.length, 20)
  for (const call of calls) {
    const server = spans.find(({ spanId }) => spanId === call.parentSpanId)
    t.equal(call.attributes['db.collection.name'], `c${server.attributes['url.path'].split('/')[2]}`)
  }
  const waits = spans.filter(({ name }) => name === 'wait for connection')
  t.equal(new Set(waits.map(({ parentSpanId }) => parentSpanId)).size, waits.length, 'at most one per request')
  t.ok(waits.length >= 10, 'most requests have waited')
  t.ok(waits.every(({ parentSpanId, endTime }) => calls.find((call) => call.parentSpanId === parentSpanId).startTime >= endTime))
})
