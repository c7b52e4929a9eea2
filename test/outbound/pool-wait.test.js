'use strict'

// The test controls the clock. A wait counts from 1 ms, and on a busy machine everything takes that long.
// Alone in its process: the clock is replaced before light-trace reads it.
// Feature: trace-client

const { performance } = require('node:perf_hooks')
let now = performance.now()
performance.now = () => now

const diagnosticsChannel = require('node:diagnostics_channel')
const { EventEmitter } = require('node:events')
const { test } = require('tap')
const lightTrace = require('../..')
const { tracedApp } = require('../support/traced-app')

const callbackPool = (name) => {
  const channel = diagnosticsChannel.tracingChannel(name)
  return (pool) => (callback) => channel.traceCallback((done) => pool.connect(done), 0, {}, null, callback)
}
const pgWithCallback = (pool) => {
  const traced = lightTrace.traceClient({ totalCount: 1, query () {}, connect: (callback) => pool.connect(callback) })
  return (callback) => traced.connect(callback)
}
const POOLS = {
  'mysql2\'s': ['mysql', callbackPool('mysql2:pool:connect')],
  'mssql\'s': ['microsoft.sql_server', callbackPool('mssql:pool:acquire')],
  'pg\'s, with a callback': ['postgresql', pgWithCallback],
  'pg\'s, with a promise': ['postgresql', (pool) => {
    const traced = lightTrace.traceClient({ totalCount: 1, query () {}, connect: () => new Promise((resolve) => pool.connect((error, client) => resolve(error ?? client))) })
    return (callback) => { traced.connect().then((client) => callback(null, client)) }
  }],
  'mysql2\'s, which is given up': ['mysql', givenUp(callbackPool('mysql2:pool:connect'))],
  'pg\'s, which is given up, with a callback': ['postgresql', givenUp(pgWithCallback)],
  'pg\'s, which is given up': ['postgresql', (pool) => {
    const traced = lightTrace.traceClient({ totalCount: 1, query () {}, connect: () => new Promise((resolve, reject) => pool.connect(() => reject(new Error('timeout')))) })
    return (callback) => { traced.connect().catch(callback) }
  }],
  'knex\'s': ['postgresql', tarn('acquireSuccess', {})],
  'knex\'s, which is given up': ['postgresql', tarn('acquireFail', new Error('timeout'))],
  'MongoDB\'s': ['mongodb', (pool) => {
    const client = lightTrace.traceClient(Object.assign(new EventEmitter(), { db () {}, startSession () {} }))
    return (callback) => {
      const startedAt = now
      client.emit('connectionCheckOutStarted', { address: '127.0.0.1:27017' })
      const connection = { address: '127.0.0.1:27017', connectionId: 1 }
      new Promise((resolve) => pool.connect(() => {
        client.emit('connectionCheckedOut', { ...connection, durationMS: now - startedAt })
        resolve()
      })).then(() => {
        for (const requestId of [1, 2]) {
          client.emit('commandStarted', { ...connection, requestId, commandName: 'find', command: { find: 'users' } })
          client.emit('commandSucceeded', { requestId })
        }
        callback()
      })
    }
  }]
}

/** A pool whose second connection request fails with a timeout. */
function givenUp (connectTo) {
  return (pool) => connectTo({ connect: (callback) => pool.connect((error, client) => callback(pool.served++ > 0 ? new Error('timeout') : error, client)) })
}

/** knex with the events of its pool. Each runs in the context of the waiting code, since tarn emits it after its promise. */
function tarn (event, given) {
  return (pool) => {
    let id = 0
    const events = new EventEmitter()
    lightTrace.traceClient(Object.assign(() => {}, { on () {}, raw () {}, client: { config: { client: 'pg' }, pool: events } }))
    return (callback) => {
      const acquire = ++id
      events.emit('acquireRequest', acquire)
      new Promise((resolve) => pool.connect(resolve)).then(() => { events.emit(event, acquire, given); callback() })
    }
  }
}

/** A pool with one connection. */
function poolOfOne () {
  const waiting = []
  let isBusy = false
  return {
    served: 0,
    connect (callback) {
      if (isBusy) waiting.push(callback)
      else callback(null, {})
      isBusy = true
    },
    release () { waiting.shift()?.(null, {}) },
    get waiting () { return waiting.length }
  }
}

for (const [what, [system, connectTo]] of Object.entries(POOLS)) {
  test(`the wait for a connection of a pool is a span: ${what}`, async (t) => {
    const pool = poolOfOne()
    const connect = connectTo(pool)
    const { app, collector } = await tracedApp(t, {
      listen: false,
      routes: (app) => app.get('/:user', async ({ params: { user } }) => {
        await new Promise((resolve) => connect(resolve))
        const isFirst = user === 'a'
        while (pool.waiting === 0) {
          if (!isFirst) break
          await new Promise(setImmediate)
        }
        await new Promise(setImmediate) // a wait that ends in the turn in which it began does not count
        now += 2 // the other request waits meanwhile
        pool.release()
        return 'ok'
      })
    })
    await Promise.all(['a', 'b'].map((user) => app.inject(`/${user}`)))
    const spans = await collector.spans()
    const waits = spans.filter(({ name }) => name === 'wait for connection')
    const failure = what.includes('given up') ? { 'error.type': 'Error' } : {}
    t.same(waits.map(({ attributes }) => attributes), [{ 'db.system.name': system, ...failure }])
    t.match(waits, [{ kind: 'INTERNAL', status: { code: what.includes('given up') ? 'ERROR' : 'UNSET' } }])
    t.equal(waits.length, 1, 'a free connection causes no wait')
    const server = spans.find(({ spanId }) => spanId === waits[0].parentSpanId)
    t.equal(server.attributes['url.path'], '/b')
  })
}

for (const [what, [, connectTo]] of Object.entries(POOLS).filter(([what]) => !what.includes('given up'))) {
  test(`with a free connection in the pool, time in which code blocks the loop is no wait: ${what}`, async (t) => {
    const connect = connectTo({ connect: (callback) => process.nextTick(callback, null, {}) })
    const { app, collector } = await tracedApp(t, {
      listen: false,
      routes: (app) => app.get('/', async () => {
        const connected = new Promise((resolve) => connect(resolve))
        now += 100 // e.g. for JSON.parse
        await connected
        await new Promise(setImmediate)
        return 'ok'
      })
    })
    for (let i = 0; i < 2; i++) await app.inject('/')
    const spans = await collector.spans()
    t.same(spans.filter(({ name }) => name === 'wait for connection'), [])
  })
}

test('an abandoned wait for a MongoDB connection is an error', async (t) => {
  const client = lightTrace.traceClient(Object.assign(new EventEmitter(), { db () {}, startSession () {} }))
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/', async () => {
      await null
      client.emit('connectionCheckOutFailed', { reason: 'timeout', durationMS: 7 })
      client.emit('connectionCheckOutFailed', { reason: 'connectionError', durationMS: 7 }) // may run in any context
      return 'ok'
    })
  })
  await app.inject('/')
  t.equal(await collector.tree(), 'SERVER GET /\n  INTERNAL wait for connection ERROR error.type=MongoWaitQueueTimeoutError')
})

test('a MongoDB connection that returns to its pool without a command leaves nothing behind', async (t) => {
  const client = lightTrace.traceClient(Object.assign(new EventEmitter(), { db () {}, startSession () {} }))
  const connection = { address: '127.0.0.1:27017', connectionId: 1 }
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/', async () => {
      client.emit('connectionCheckedOut', { ...connection, durationMS: 7 })
      client.emit('connectionCheckedIn', connection)
      client.emit('connectionCheckedOut', { ...connection, durationMS: 0 })
      client.emit('commandStarted', { ...connection, requestId: 1, commandName: 'find', command: { find: 'users' } })
      client.emit('commandSucceeded', { requestId: 1 })
      return 'ok'
    })
  })
  await app.inject('/')
  t.equal(await collector.tree(), 'SERVER GET /\n  CLIENT find users')
})
