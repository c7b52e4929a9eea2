'use strict'

// The database and messaging conventions in cases where a library's call could be described in more than one way.
// Feature: libraries

const diagnosticsChannel = require('node:diagnostics_channel')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')

async function spansOf (t, work, trace = {}) {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace,
    routes: (app) => app.get('/', async (request) => { await work(request); return 'ok' })
  })
  const response = await app.inject('/')
  return { response, spans: await collector.spans() }
}

const call = (name, payload, work = async () => 'done') => diagnosticsChannel.tracingChannel(name).tracePromise(work, payload)
const failing = (error) => async () => { throw error }

test('only the summary is parsed out of SQL', async (t) => {
  const { spans: [, ...calls] } = await spansOf(t, async () => {
    for (const name of ['mysql2:query', 'mysql2:execute']) await call(name, { query: 'SELECT * FROM users WHERE id = 7', serverAddress: 'db' })
    await call('mssql:query', { command: 'DELETE FROM users WHERE id = 7' })
    await call('pg:query', { query: { text: 'UPDATE users SET a = 7' }, client: {} })
    diagnosticsChannel.channel('sqlite.db.query').publish({ sql: 'INSERT INTO users VALUES (7)', database: {}, duration: 1 })
  })
  t.same(calls.map(({ name }) => name), ['SELECT users', 'SELECT users', 'DELETE users', 'UPDATE users', 'INSERT users'])
  for (const { name, attributes } of calls) {
    t.equal(attributes['db.query.summary'], name)
    t.notOk('db.operation.name' in attributes)
    t.notOk('db.collection.name' in attributes)
    t.notMatch(attributes['db.query.text'], /7/)
  }
})

test('db.operation.batch.size counts operations, not documents or rows', async (t) => {
  const { spans: [, insertMany, bulkWrite, one, load, multi] } = await spansOf(t, async () => {
    await call('mongoose:model:insertMany', { operation: 'insertMany', collection: 'users', args: { docs: [{}, {}, {}] }, batchSize: 3 })
    await call('mongoose:model:bulkWrite', { operation: 'bulkWrite', collection: 'users', args: { ops: [{}, {}] } })
    await call('mongoose:model:bulkWrite', { operation: 'bulkWrite', collection: 'users', args: { ops: [{}] } })
    await call('mssql:bulk', { table: 'users', rowCount: 40 })
    await call('ioredis:batch', { batchMode: 'MULTI', batchSize: 3 })
  })
  t.same([insertMany, bulkWrite, one, load, multi].map(({ attributes }) => attributes['db.operation.batch.size']), [undefined, 2, undefined, undefined, 3])
})

test('Redis calls have network.peer.* if known', async (t) => {
  const redis = { command: 'GET', args: ['GET', 'k'], serverPort: 6379 }
  const { spans: [, ip, path, name] } = await spansOf(t, async () => {
    for (const serverAddress of ['10.0.0.7', '/run/redis.sock', 'redis.internal']) await call('node-redis:command', { ...redis, serverAddress })
  })
  t.match(ip.attributes, { 'network.peer.address': '10.0.0.7', 'network.peer.port': 6379, 'server.address': '10.0.0.7' })
  t.match(path.attributes, { 'network.peer.address': '/run/redis.sock' })
  t.notOk('network.peer.address' in name.attributes)
})

test('Kafka calls have server.* if there is one broker', async (t) => {
  const client = (...brokers) => ({ clientId: 'c', [Symbol('plt.kafka.base.bootstrapBrokers')]: brokers })
  const { spans: [, one, several, received] } = await spansOf(t, async () => {
    const options = { messages: [{ topic: 'orders', value: 'x' }] }
    await call('plt:kafka:producer:sends', { client: client({ host: 'kafka.internal', port: 9092 }), options: { ...options } })
    await call('plt:kafka:producer:sends', { client: client({ host: 'a', port: 1 }, { host: 'b', port: 2 }), options: { ...options } })
    diagnosticsChannel.tracingChannel('plt:kafka:consumer:receives').asyncStart.publish({
      client: client({ host: 'kafka.internal', port: 9092 }), raw: { headers: [] }, result: { topic: 'orders', partition: 1, offset: 2n }
    })
  })
  t.match(one.attributes, { 'server.address': 'kafka.internal', 'server.port': 9092 })
  t.notOk('server.address' in several.attributes)
  t.match(received, { kind: 'CLIENT', attributes: { 'server.address': 'kafka.internal', 'server.port': 9092 } })
})

test('a GraphQL operation has kind SERVER, also for a sampler, and changes nothing else in the process', async (t) => {
  const sampler = { shouldSample: () => ({ decision: 2 }), toString: () => 'all' }
  for (const trace of [{}, { sampler }, { keep: { errors: true } }]) {
    const { spans } = await spansOf(t, async () => { await call('graphql:execute', { operationType: 'query' }) }, trace)
    t.same(spans.map(({ kind, name }) => [kind, name]), [['SERVER', 'GET /'], ['SERVER', 'query']])
  }
})

test('names outside of the conventions are in our own namespace', async (t) => {
  const { spans: [, span] } = await spansOf(t, async () => {
    await call('graphql:resolve', { parentType: 'Query', fieldName: 'user', fieldPath: 'user', fieldType: 'User' })
  }, { outbound: { channels: { 'graphql:resolve': true } } })
  t.same(span.attributes, { 'light_trace.graphql.field.name': 'user', 'light_trace.graphql.field.path': 'user', 'light_trace.graphql.field.type': 'User' })
})

const DATABASE_ERRORS = [
  ['pg:query', { query: { text: 'SELECT 1' }, client: {} }, Object.assign(new Error('exists'), { name: 'error', code: '23505', severity: 'ERROR' }), '23505'],
  ['mssql:query', { command: 'SELECT 1' }, Object.assign(new Error('exists'), { name: 'RequestError', code: 'EREQUEST', number: 2627 }), '2627'],
  ['mongoose:query', { operation: 'find', collection: 'users' }, Object.assign(new Error('exists'), { name: 'MongoServerError', code: 11000 }), '11000'],
  ['ioredis:command', { command: 'incr', args: ['k'] }, Object.assign(new Error('WRONGTYPE Operation'), { name: 'ReplyError' }), 'WRONGTYPE']
]
for (const [channel, payload, error, type] of DATABASE_ERRORS) {
  test(`${channel}: a request that fails with a call has the error.type of the call`, async (t) => {
    const { response, spans } = await spansOf(t, () => call(channel, { ...payload }, failing(error)))
    t.equal(response.statusCode, 500)
    t.same(spans.map(({ attributes }) => attributes['error.type']), [type, type])
  })
}
