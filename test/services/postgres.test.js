'use strict'

const { test } = require('tap')
const lightTrace = require('../..')
const { serving } = require('../support/serving')
const { tracedApp } = require('../support/traced-app')

const port = Number(process.env.SERVICES_POSTGRESQL_PORT)
const options = { host: '127.0.0.1', port, username: 'postgres', database: 'postgres', max: 1, onnotice: () => {} }

test('postgres: every form of a query of a traced sql has a span', async (t) => {
  const bare = require('postgres')(options)
  const sql = lightTrace.traceClient(bare)
  t.teardown(() => sql.end())
  t.equal(lightTrace.traceClient(sql), sql)
  t.equal(lightTrace.traceClient(bare), sql)
  const { go } = await serving(t, async () => {
    await sql`CREATE TABLE IF NOT EXISTS cats (id INT PRIMARY KEY, name TEXT)`
    await sql`INSERT INTO cats ${sql({ id: 1, name: 'secret' })} ON CONFLICT DO NOTHING`
    const where = sql`WHERE name = ${'secret'}`
    t.same([...await sql`SELECT id FROM cats ${where}`], [{ id: 1 }])
    t.same([...await sql.unsafe("SELECT 'secret' AS a")], [{ a: 'secret' }])
    await sql.begin(async (sql) => {
      await sql`UPDATE cats SET name = ${'secret'} WHERE id = 1`
      await sql.savepoint((sql) => sql`DELETE FROM cats WHERE id = 2`)
    })
    for await (const [row] of sql`SELECT name FROM cats`.cursor()) t.same(row, { name: 'secret' })
    const reserved = await sql.reserve()
    await reserved`SELECT 7`
    reserved.release()
    await t.rejects(sql`INSERT INTO cats VALUES (1, ${'secret'})`, { code: '23505' })
    await t.rejects(sql`SELEC`, { code: '42601' })
  })
  const spans = await go()
  t.same(spans.map(({ name }) => name), ['CREATE TABLE cats', 'INSERT cats', 'SELECT cats', 'SELECT', 'UPDATE cats', 'DELETE cats', 'SELECT cats',
    'SELECT', 'INSERT cats', 'SELEC'])
  t.same(spans[2].attributes, {
    'db.system.name': 'postgresql',
    'db.namespace': 'postgres',
    'db.query.summary': 'SELECT cats',
    'db.query.text': 'SELECT id FROM cats WHERE name = $1',
    'server.address': '127.0.0.1',
    'server.port': port
  })
  t.match(spans[8], { status: { code: 'ERROR' }, attributes: { 'error.type': '23505', 'db.response.status_code': '23505' } })
  t.notMatch(JSON.stringify(spans), /secret/)
})

test('postgres: concurrent users of one connection have their own queries', async (t) => {
  const sql = lightTrace.traceClient(require('postgres')(options))
  t.teardown(() => sql.end())
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/:user', async (request) => {
      await sql.unsafe(`SELECT 1 AS ${request.params.user}`)
      return lightTrace.current() === request.trace
    })
  })
  const users = ['a', 'b', 'c', 'd']
  for (const { body } of await Promise.all(users.map((user) => app.inject(`/${user}`)))) t.equal(body, 'true')
  const spans = await collector.spans()
  for (const { parentSpanId, attributes } of spans.filter(({ kind }) => kind === 'CLIENT')) {
    const server = spans.find(({ spanId }) => spanId === parentSpanId)
    t.match(attributes['db.query.text'], new RegExp(`AS ${server.attributes['url.path'].slice(1)}$`))
  }
  t.equal(spans.length, 8)
})
