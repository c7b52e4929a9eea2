'use strict'

// One connection with two users, one after the other. A connection's callbacks run in the context of the code that opened it: here an
// AsyncResource that the first request has created. test/services runs the libraries themselves.
// Alone in its process: traceClient leaves pg alone once its channel has been heard, and other files publish it.

const { AsyncLocalStorage, AsyncResource } = require('node:async_hooks')
const diagnosticsChannel = require('node:diagnostics_channel')
const { test } = require('tap')
const lightTrace = require('../..')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')

const usersOwn = new AsyncLocalStorage()

/** The socket of a pool with one connection. It calls back in the context of its first user. */
class Connection {
  #resource = null

  answer (callback, ...args) {
    this.#resource ??= new AsyncResource('test.socket')
    setImmediate(() => this.#resource.runInAsyncScope(callback, null, ...args))
  }
}

/** Returns what `current()` is in the callbacks of two requests and of code outside of any request, one after the other. */
async function seenBy (t, work, trace = {}) {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace,
    routes: (app) => app.get('/:user', async (request) => {
      const seen = await new Promise((resolve) => work(() => resolve(lightTrace.current())))
      return seen === request.trace ? 'own' : 'another\'s'
    })
  })
  const seen = []
  for (const user of ['a', 'b']) seen.push((await app.inject(`/${user}`)).body)
  const outside = await new Promise((resolve) => work(() => resolve(lightTrace.current())))
  return { seen: [...seen, outside === undefined ? 'none' : 'another\'s'], spans: await collector.spans() }
}

test('pg, traced: a callback runs in its own request\'s context, and in its own value of the application\'s storage', { skip: without('trace-client') }, async (t) => {
  const connection = new Connection()
  const client = lightTrace.traceClient({ query: (text, values, callback) => connection.answer(callback ?? values, null, { rows: [] }) })
  const storages = []
  const { seen } = await seenBy(t, (callback) => usersOwn.run(storages.length, () => client.query('SELECT 1', (error, result) => {
    t.same([error, result], [null, { rows: [] }])
    storages.push(usersOwn.getStore())
    callback()
  })))
  t.same(seen, ['own', 'own', 'none'])
  t.same(storages, [0, 1, 2])
})

test('pg\'s pool, traced: a callback that gets a client runs in its own request\'s context', { skip: without('trace-client') }, async (t) => {
  const connection = new Connection()
  const client = { query () {} }
  const pool = lightTrace.traceClient({ totalCount: 1, query () {}, connect: (callback) => connection.answer(callback, null, client) })
  const { seen } = await seenBy(t, (callback) => pool.connect(callback))
  t.same(seen, ['own', 'own', 'none'])
})

// These tests come last. After `pg:query` has been published, traceClient leaves pg to its channel.
for (const name of ['mysql2:pool:connect', 'mysql2:query', 'mysql2:execute', 'mssql:query', 'pg:query', 'my-lib:op']) {
  test(`${name} with a callback: it runs in its own request's context`, async (t) => {
    const connection = new Connection()
    const channel = diagnosticsChannel.tracingChannel(name)
    const query = (callback) => channel.traceCallback((done) => connection.answer(done, null), 0, { query: 'SELECT 1', command: 'SELECT 1' }, null, callback)
    const { seen } = await seenBy(t, query, name === 'my-lib:op' || without('libraries') ? { outbound: { channels: { [name]: true } } } : {})
    t.same(seen, ['own', 'own', 'none'])
  })
}
