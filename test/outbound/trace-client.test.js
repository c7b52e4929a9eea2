'use strict'

// A minimal imitation of pg. test/services runs pg itself with PostgreSQL.
// Alone in its process: traceClient leaves pg alone once its channel has been heard, and other files publish it.
// Feature: trace-client

const { EventEmitter } = require('node:events')
const { test } = require('tap')
const lightTrace = require('../..')
const { serving } = require('../support/serving')
const { tracedApp } = require('../support/traced-app')

class Client {
  host = 'db.internal'
  port = 5432
  database = 'shop'
  calls = []

  query (config, values, callback) {
    this.calls.push([this, config, values])
    if (typeof config.submit === 'function') {
      setImmediate(() => config.fails ? config.emit('error', new Error('no')) : config.emit('end'))
      return config
    }
    const done = typeof values === 'function' ? values : callback ?? config.callback
    const error = String(config.text ?? config).includes('broken') ? Object.assign(new Error("'bob' exists"), { code: '23505', severity: 'ERROR' }) : null
    if (done !== undefined) {
      setImmediate(done, error, { rows: [] })
      return undefined
    }
    return new Promise((resolve, reject) => setImmediate(() => error === null ? resolve({ rows: [] }) : reject(error)))
  }
}

// A single client, handed over in the releaser's context, as pg's pool does.
class Pool {
  totalCount = 1
  client = new Client()
  #waiting = []
  #isBusy = false

  connect (callback) {
    if (callback === undefined) return new Promise((resolve, reject) => this.connect((error, client) => error ? reject(error) : resolve(client)))
    this.#waiting.push(callback)
    this.#next()
  }

  query (text, values) {
    return new Promise((resolve, reject) => this.connect((error, client) => {
      if (error) return reject(error)
      client.query(text, values, (error, result) => {
        this.release()
        error ? reject(error) : resolve(result)
      })
    }))
  }

  release () {
    this.#isBusy = false
    this.#next()
  }

  #next () {
    if (this.#isBusy || this.#waiting.length === 0) return
    this.#isBusy = true
    this.#waiting.shift()(null, this.client)
  }
}

test('the promise, callback, config and event forms are one span each', async (t) => {
  const client = lightTrace.traceClient(new Client())
  const submitted = Object.assign(new EventEmitter(), { submit () {}, text: 'SELECT 4' })
  const { go } = await serving(t, async (request) => {
    t.same(await client.query("SELECT * FROM users WHERE name = 'bob'"), { rows: [] })
    t.same(await client.query('SELECT * FROM users WHERE id = $1', [7]), { rows: [] })
    await new Promise((resolve) => t.equal(client.query('SELECT 2', resolve), undefined))
    await new Promise((resolve) => client.query('SELECT $1', [3], () => { t.equal(lightTrace.current(), request.trace); resolve() }))
    await new Promise((resolve) => client.query({ text: 'SELECT 5', callback: resolve }))
    t.equal(client.query(submitted), submitted)
    await new Promise((resolve) => submitted.on('end', resolve))
  })
  const spans = await go()
  t.same(spans.map(({ attributes }) => attributes['db.query.text']), [
    'SELECT * FROM users WHERE name = ?', 'SELECT * FROM users WHERE id = $1', 'SELECT ?', 'SELECT $1', 'SELECT ?', 'SELECT ?'
  ])
  t.same(spans[0].attributes, {
    'db.system.name': 'postgresql',
    'db.namespace': 'shop',
    'db.query.summary': 'SELECT users',
    'db.query.text': 'SELECT * FROM users WHERE name = ?',
    'server.address': 'db.internal',
    'server.port': 5432
  })
  for (const [self] of client.calls) t.equal(self, client)
})

test('an error has its SQLSTATE and not its message, and only the caller handles it', async (t) => {
  const client = lightTrace.traceClient(new Client())
  const submitted = Object.assign(new EventEmitter(), { submit () {}, fails: true })
  const unhandled = []
  const onUnhandled = (error) => unhandled.push(error)
  process.on('unhandledRejection', onUnhandled)
  t.teardown(() => process.off('unhandledRejection', onUnhandled))
  const { go } = await serving(t, async () => {
    await t.rejects(client.query('broken'), { code: '23505' })
    await new Promise((resolve) => client.query('broken', (error) => { t.equal(error.code, '23505'); resolve() }))
    submitted.on('error', () => {})
    client.query(submitted)
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    t.same(unhandled, [])
    client.query('broken').catch(() => {})
    const nobody = client.query('broken')
    await new Promise((resolve) => process.once('unhandledRejection', resolve))
    t.equal(unhandled.length, 1, 'as without light-trace')
    nobody.catch(() => {})
  })
  const spans = await go()
  t.match(spans[0], { status: { code: 'ERROR' }, attributes: { 'error.type': '23505', 'db.response.status_code': '23505' } })
  t.match(spans[2], { status: { code: 'ERROR' }, attributes: { 'error.type': 'Error' } })
  t.notMatch(JSON.stringify(spans), /bob/)
})

test('a request that fails with pg\'s error has the same error, traced or not', async (t) => {
  for (const client of [new Client(), lightTrace.traceClient(new Client())]) {
    const { app, collector } = await tracedApp(t, { listen: false, routes: (app) => app.get('/', () => client.query('broken')) })
    await app.inject('/')
    const server = (await collector.spans()).find(({ kind }) => kind === 'SERVER')
    t.equal(server.attributes['error.type'], '23505')
    t.equal(server.events[0].attributes['exception.type'], '23505')
  }
})

test('traceClient affects only its object, once, under its own name', async (t) => {
  const client = new Client()
  const other = new Client()
  t.equal(lightTrace.traceClient(client), client)
  const { query } = client
  lightTrace.traceClient(client)
  t.equal(client.query, query)
  t.equal(query.name, 'query')
  t.equal(query.length, Client.prototype.query.length)
  t.equal(other.query, Client.prototype.query)
  t.notOk(Object.keys(client).includes('query'))
  for (const wrong of [undefined, null, {}, 7]) t.throws(() => lightTrace.traceClient(wrong), { code: 'LT_ERR_OPTION_INVALID' })
})

test('queries that wait for a client of the pool have the right parent', async (t) => {
  const pool = lightTrace.traceClient(new Pool())
  const { origin, collector } = await tracedApp(t, {
    routes: (app) => {
      app.get('/query/:id', async ({ params }) => { await pool.query(`SELECT * FROM t${params.id}`); return 'ok' })
      app.get('/connect/:id', async ({ params }) => {
        const client = await pool.connect()
        await client.query(`SELECT * FROM t${params.id}`)
        pool.release()
        return 'ok'
      })
    }
  })
  await Promise.all(Array.from({ length: 8 }, (_, id) => fetch(`${origin}/${id % 2 ? 'query' : 'connect'}/${id}`).then((response) => response.text())))
  const spans = await collector.spans()
  const clients = spans.filter(({ kind }) => kind === 'CLIENT')
  t.equal(clients.length, 8)
  for (const client of clients) {
    const server = spans.find(({ spanId }) => spanId === client.parentSpanId)
    t.equal(client.attributes['db.query.summary'], `SELECT t${server.attributes['url.path'].split('/')[2]}`)
  }
})

test('without a request nothing is traced', async (t) => {
  const { collector } = await serving(t, () => {})
  const client = lightTrace.traceClient(new Client())
  await client.query('SELECT 1')
  t.same(await collector.spans(), [])
})

test('outbound: false and libraries: false apply to a traced client, too, and its callbacks keep their context', async (t) => {
  for (const outbound of [false, { libraries: false }]) {
    const client = lightTrace.traceClient(new Client())
    const { go } = await serving(t, async (request) => {
      await client.query('SELECT 1')
      await new Promise((resolve) => client.query('SELECT 2', () => { t.equal(lightTrace.current(), request.trace); resolve() }))
    }, { trace: { outbound } })
    t.same(await go(), [])
  }
})

test('a pg that publishes channels itself is traced by them', async (t) => {
  const channel = require('node:diagnostics_channel').tracingChannel('pg:query')
  class PublishingClient extends Client {
    query (text) {
      return channel.tracePromise(async () => ({ rows: [] }), { query: { text }, client: this })
    }
  }
  const client = lightTrace.traceClient(new PublishingClient())
  const { go } = await serving(t, async () => {
    await client.query('SELECT * FROM users')
    await client.query('SELECT * FROM users')
  })
  const spans = await go()
  t.same(spans.map(({ name }) => name), ['SELECT users', 'SELECT users'])
  t.match(spans[0].attributes, { 'db.namespace': 'shop', 'server.address': 'db.internal' })
})
