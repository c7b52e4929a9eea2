'use strict'

const { once } = require('node:events')
const { test } = require('tap')
const lightTrace = require('../..')
const { serving, clients } = require('../support/serving')
const { tracedApp } = require('../support/traced-app')

const port = Number(process.env.SERVICES_MARIADB_PORT)
const options = { host: '127.0.0.1', port, user: 'root' }

test('mysql2: query, execute, callbacks, events and an error have spans', async (t) => {
  const mysql = require('mysql2')
  const connection = mysql.createConnection(options)
  t.teardown(() => connection.destroy())
  const { go } = await serving(t, async () => {
    const promised = connection.promise()
    await promised.query('CREATE DATABASE IF NOT EXISTS shop')
    await promised.query('CREATE TABLE IF NOT EXISTS shop.users (id INT PRIMARY KEY, name VARCHAR(99))')
    await promised.query('REPLACE INTO shop.users VALUES (?, ?)', [1, 'secret'])
    await promised.execute('SELECT name FROM shop.users WHERE id = ?', [1])
    await new Promise((resolve) => connection.query("SELECT 'secret'", resolve))
    await once(connection.query('SELECT * FROM shop.users').on('result', () => {}), 'end')
    await t.rejects(promised.query('INSERT INTO shop.users VALUES (1, ?)', ['secret']))
  })
  const spans = await go()
  t.same(spans.map(({ name }) => name), ['CREATE', 'CREATE TABLE shop.users', 'REPLACE shop.users', 'SELECT shop.users', 'SELECT', 'SELECT shop.users', 'INSERT shop.users'])
  t.match(spans[3].attributes, {
    'db.system.name': 'mysql',
    'db.query.text': 'SELECT name FROM shop.users WHERE id = ?',
    'server.address': '127.0.0.1',
    'server.port': port
  })
  t.match(spans[6], { status: { code: 'ERROR' }, attributes: { 'db.response.status_code': '1062' } })
  t.notMatch(JSON.stringify(spans), /secret/)
})

test('mysql2: a request that waits for the pool keeps its context', async (t) => {
  const mysql = require('mysql2/promise')
  const pool = mysql.createPool({ ...options, connectionLimit: 2 })
  t.teardown(() => pool.end())
  const { origin, collector } = await tracedApp(t, {
    routes: (app) => {
      app.get('/query/:id', async ({ params }) => { await pool.query(`SELECT SLEEP(0.01) AS a${params.id}`); return 'ok' })
      app.get('/connection/:id', async ({ params }) => {
        const connection = await pool.getConnection()
        await connection.execute(`SELECT SLEEP(?) AS a${params.id}`, [0.01])
        connection.release()
        return 'ok'
      })
    }
  })
  await Promise.all(Array.from({ length: 16 }, (_, id) => fetch(`${origin}/${id % 2 ? 'query' : 'connection'}/${id}`).then((response) => response.text())))
  const spans = await collector.spans()
  t.equal(clients(spans).length, 16)
  for (const client of clients(spans)) {
    const server = spans.find(({ spanId }) => spanId === client.parentSpanId)
    t.match(client.attributes['db.query.text'], new RegExp(`AS a${server.attributes['url.path'].split('/')[2]}$`))
  }
})

test('mysql2: with two users of one connection, a callback runs in its own request\'s context', async (t) => {
  const pool = require('mysql2').createPool({ ...options, connectionLimit: 1 })
  t.teardown(() => new Promise((resolve) => pool.end(resolve)))
  const getConnection = (sql, callback) => pool.getConnection((error, connection) => {
    connection.query(sql, () => {
      connection.release()
      callback(error)
    })
  })
  const kinds = [pool.query.bind(pool), pool.execute.bind(pool), getConnection]
  const { app } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/:user', async (request) => {
      const seen = await Promise.all(kinds.map((kind) => new Promise((resolve) => kind('SELECT 1', () => resolve(lightTrace.current())))))
      return seen.map((trace) => trace === request.trace)
    })
  })
  for (const user of ['a', 'b']) t.same((await app.inject(`/${user}`)).json(), [true, true, true], user)
})
