'use strict'

const { once } = require('node:events')
const { test } = require('tap')
const lightTrace = require('../..')
const { serving, clients } = require('../support/serving')
const { tracedApp } = require('../support/traced-app')

const port = Number(process.env.SERVICES_POSTGRESQL_PORT)
const options = { host: '127.0.0.1', port, user: 'postgres', database: 'postgres' }

test('pg: every form of a query of a traced client has a span', async (t) => {
  const { Client, Query } = require('pg')
  const client = lightTrace.traceClient(new Client(options))
  await client.connect()
  t.teardown(() => client.end())
  const { go } = await serving(t, async (request) => {
    await client.query('CREATE TABLE IF NOT EXISTS users (id INT PRIMARY KEY, name TEXT)')
    t.equal((await client.query('INSERT INTO users VALUES ($1, $2) ON CONFLICT DO NOTHING', [1, 'secret'])).command, 'INSERT')
    t.same((await client.query({ text: "SELECT name FROM users WHERE name = 'secret'", rowMode: 'array' })).rows, [['secret']])
    await new Promise((resolve) => client.query('SELECT 1', (error, { rowCount }) => {
      t.equal(rowCount, 1)
      t.equal(lightTrace.current(), request.trace)
      resolve(error)
    }))
    await new Promise((resolve) => client.query('SELECT $1::int', [1], resolve))
    const query = new Query('SELECT * FROM users')
    t.equal(client.query(query), query)
    await once(query, 'end')
    await t.rejects(client.query("INSERT INTO users VALUES (1, 'secret')"), { code: '23505' })
    await t.rejects(client.query('SELEC'), { code: '42601' })
  })
  const spans = await go()
  t.same(spans.map(({ name }) => name), ['CREATE TABLE users', 'INSERT users', 'SELECT users', 'SELECT', 'SELECT', 'SELECT users', 'INSERT users', 'SELEC'])
  t.same(spans[1].attributes, {
    'db.system.name': 'postgresql',
    'db.namespace': 'postgres',
    'db.query.summary': 'INSERT users',
    'db.query.text': 'INSERT INTO users VALUES ($1, $2) ON CONFLICT DO NOTHING',
    'server.address': '127.0.0.1',
    'server.port': port
  })
  t.match(spans[6], { status: { code: 'ERROR' }, attributes: { 'error.type': '23505', 'db.response.status_code': '23505' } })
  t.notMatch(JSON.stringify(spans), /secret/)
})

test('pg: queries that wait for a traced pool have the right parent', async (t) => {
  const { Pool } = require('pg')
  const pool = lightTrace.traceClient(new Pool({ ...options, max: 2 }))
  t.teardown(() => pool.end())
  const { origin, collector } = await tracedApp(t, {
    routes: (app) => {
      app.get('/query/:id', async ({ params }) => { await pool.query(`SELECT pg_sleep(0.01) AS a${params.id}`); return 'ok' })
      app.get('/callback/:id', ({ params }, reply) => { pool.query(`SELECT pg_sleep(0.01) AS a${params.id}`, () => reply.send('ok')) })
      app.get('/transaction/:id', async ({ params }) => {
        const client = await pool.connect()
        try {
          await client.query('BEGIN')
          await client.query(`SELECT pg_sleep($1) AS a${params.id}`, [0.01])
          await client.query('COMMIT')
        } finally {
          client.release()
        }
        return 'ok'
      })
    }
  })
  await Promise.all(Array.from({ length: 18 }, (_, id) => fetch(`${origin}/${['query', 'callback', 'transaction'][id % 3]}/${id}`).then((response) => response.text())))
  const spans = await collector.spans()
  t.equal(clients(spans).length, 12 + 6 * 3)
  for (const client of clients(spans)) {
    const server = spans.find(({ spanId }) => spanId === client.parentSpanId)
    t.match(client.attributes['db.query.text'], new RegExp(`^(BEGIN|COMMIT|.* AS a${server.attributes['url.path'].split('/')[2]})$`))
  }
})

test('pg: with two users of one connection, a callback runs in its own request\'s context', async (t) => {
  const { Pool } = require('pg')
  const pool = lightTrace.traceClient(new Pool({ ...options, max: 1 }))
  t.teardown(() => pool.end())
  const connect = (sql, callback) => pool.connect((error, client, release) => {
    release()
    callback(error)
  })
  const kinds = [pool.query.bind(pool), connect]
  const { app } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/:user', async (request) => {
      const seen = await Promise.all(kinds.map((kind) => new Promise((resolve) => kind('SELECT 1', () => resolve(lightTrace.current())))))
      return seen.map((trace) => trace === request.trace)
    })
  })
  for (const user of ['a', 'b']) t.same((await app.inject(`/${user}`)).json(), [true, true], user)
})
