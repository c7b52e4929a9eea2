'use strict'

// traceClient with clients that report their calls by events. test/services runs the drivers themselves.
// Feature: trace-client

const { EventEmitter } = require('node:events')
const { test } = require('tap')
const lightTrace = require('../..')
const { serving } = require('../support/serving')

class MongoClient extends EventEmitter {
  monitorCommands = false
  db () {}
  startSession () {}
}

function makeKnex (client) {
  const emitter = new EventEmitter()
  const knex = Object.assign(function knex () {}, { raw () {}, client: { config: { client }, connectionSettings: { host: 'db.internal', port: 5432, database: 'shop' } } })
  for (const name of ['on', 'emit', 'listenerCount']) knex[name] = emitter[name].bind(emitter)
  return knex
}

const started = (requestId, more = {}) => ({ requestId, commandName: 'find', databaseName: 'shop', address: 'mongo.internal:27017', command: { find: 'users', filter: { a: 'secret' } }, ...more })

test('a MongoClient has a span from commandStarted to commandSucceeded or commandFailed', async (t) => {
  const client = lightTrace.traceClient(new MongoClient())
  t.ok(client.monitorCommands)
  const { go } = await serving(t, async () => {
    client.emit('commandStarted', started(1))
    client.emit('commandStarted', started(2, { commandName: 'getMore', command: { getMore: 77n, collection: 'orders' }, address: '[::1]:27018' }))
    client.emit('commandStarted', started(3, { commandName: 'hello', command: { hello: 1 } }))
    client.emit('commandFailed', { requestId: 2, failure: Object.assign(new Error('secret'), { code: 43 }) })
    client.emit('commandSucceeded', { requestId: 1 })
    client.emit('commandSucceeded', { requestId: 1 })
    client.emit('commandSucceeded', { requestId: 99 })
    client.emit('commandStarted', started(4, { commandName: 'update', command: { update: 'users', updates: [{}, {}, {}] }, address: '/tmp/mongo.sock' }))
    client.emit('commandSucceeded', { requestId: 4 })
    client.emit('commandStarted', null)
    client.emit('commandStarted', { get commandName () { throw new Error('no') } })
  })
  const spans = await go()
  t.same(spans.slice(0, 3).map(({ name }) => name), ['find users', 'getMore orders', 'update users'])
  t.match(spans[0].attributes, { 'db.namespace': 'shop', 'server.address': 'mongo.internal', 'server.port': 27017 })
  t.match(spans[1], { status: { code: 'ERROR' }, attributes: { 'error.type': '43', 'server.address': '::1', 'server.port': 27018 } })
  t.match(spans[2].attributes, { 'db.operation.batch.size': 3, 'server.address': '/tmp/mongo.sock' })
  t.notMatch(JSON.stringify(spans), /secret/)
})

test('a knex instance has a span for each finished query, named after the dialect', async (t) => {
  const dialects = { pg: 'postgresql', mysql: 'mysql', 'better-sqlite3': 'sqlite', mssql: 'microsoft.sql_server', oracledb: 'oracle.db', own: 'other_sql' }
  const instances = Object.keys(dialects).map((name) => lightTrace.traceClient(makeKnex(name)))
  const { go } = await serving(t, async () => {
    for (const knex of instances) {
      const query = { __knexQueryUid: 'a', sql: "select * from users where a = 'secret'", bindings: ['secret'], queryContext: undefined }
      knex.emit('query', query)
      knex.emit('query', { sql: 'BEGIN;' })
      knex.emit('query', { __knexQueryUid: 'stream', sql: 'select 1' })
      knex.emit('query-response', [], query)
    }
    const failing = { __knexQueryUid: 'b', sql: 'select 1', queryContext: {} }
    instances[0].emit('query', failing)
    instances[0].emit('query-error', Object.assign(new Error('secret'), { code: '42P01', severity: 'ERROR' }), failing)
  })
  const spans = await go()
  t.same(spans.map(({ attributes }) => attributes['db.system.name']), [...Object.values(dialects), 'postgresql'])
  t.match(spans[0], { name: 'SELECT users', attributes: { 'db.namespace': 'shop', 'server.address': 'db.internal', 'server.port': 5432 } })
  t.match(spans.at(-1), { status: { code: 'ERROR' }, attributes: { 'error.type': '42P01' } })
  t.notMatch(JSON.stringify(spans), /secret/)
})

test('knex over a driver that publishes channels is traced by them', async (t) => {
  const knex = lightTrace.traceClient(makeKnex('mysql2'))
  t.equal(knex.listenerCount('query'), 0)
})

test('outside of a request nothing is traced, and each object gets one listener', async (t) => {
  const client = new MongoClient()
  lightTrace.traceClient(lightTrace.traceClient(client))
  t.equal(client.listenerCount('commandStarted'), 1)
  const { collector } = await serving(t, () => {})
  client.emit('commandStarted', started(1))
  client.emit('commandSucceeded', { requestId: 1 })
  t.same(await collector.spans(), [])
  t.equal(new MongoClient().listenerCount('commandStarted'), 0)
})

test('the number of calls without an end is limited', async (t) => {
  const client = lightTrace.traceClient(new MongoClient())
  const { app } = await serving(t, async () => { for (let i = 0; i < 10_050; i++) client.emit('commandStarted', started(i)) })
  await app.inject('/go')
  t.equal(app.lightTrace.stats().spans.ended, 51)
})

test('an unsupported client is rejected', async (t) => {
  for (const wrong of [new EventEmitter(), () => {}, { on () {} }, 'pg']) t.throws(() => lightTrace.traceClient(wrong), { code: 'LT_ERR_OPTION_INVALID' })
})
