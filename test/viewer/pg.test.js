'use strict'

const { test } = require('tap')
const { runApp, eventually, arrived, APP } = require('./command')

const MODULE = APP.replace("const app = require('fastify')()", "import Fastify from 'fastify'\nconst app = Fastify()")

// A minimal imitation of pg.
const PG = `
class Client {
  connect () { return Promise.resolve() }
  query () { return Promise.resolve({ rows: [] }) }
}
class Pool {
  totalCount = 1
  async connect () { const client = new Client(); await client.connect(); return client }
  async query (text) { return (await this.connect()).query(text) }
}
module.exports = { Client, Pool }
`

test('pools and clients of pg are traced without a line of code, in modules of either kind', async (t) => {
  const route = `const { Pool, Client } = pg
const pool = new Pool()
app.get('/pg', async () => {
  await pool.query('SELECT 1 FROM pooled')
  const client = new Client()
  await client.connect()
  return client.query('SELECT 1 FROM alone')
})
app.listen(`
  for (const [program, code] of [['app.js', `const pg = require('pg')${APP}`], ['app.mjs', `import pg from 'pg'\n${MODULE}`]]) {
    const files = { [program]: code.replace('app.listen(', route), node_modules: { pg: { 'index.js': PG } } }
    const { json, app } = await runApp(t, { files, program })
    t.same(await (await fetch(`${app}/pg`)).json(), { rows: [] })
    const { traces: [trace] } = await eventually(() => json('/api/traces'), arrived(1))
    const { rows } = await json(`/api/traces/${trace.id}/rows`)
    t.same(rows.filter(({ kind }) => kind === 'CLIENT').map(({ name }) => name), ['postgresql SELECT pooled', 'postgresql SELECT alone'])
  }
})

test('a library whose calls have no spans is named in the terminal, once, and in the viewer, and pg is not', async (t) => {
  const files = {
    'app.js': `require('pg'); require('mongodb')${APP.replace("require('fastify')()", "require('fastify')({ logger: true })")}`,
    node_modules: { pg: { 'index.js': PG }, mongodb: { 'index.js': '' } }
  }
  const { app, json, text, output } = await runApp(t, { files })
  for (let i = 0; i < 3; i++) await (await fetch(`${app}/users/7`)).text()
  await output(/req-3.*request completed/)
  t.match(text(), /^light-trace: the calls of mongodb are not traced: /m)
  t.equal(text().match(/are not traced/g).length, 1)
  const { apps: [{ untracedLibraries }] } = await eventually(() => json('/api/stats'), ({ apps }) => apps.length === 1)
  t.same(untracedLibraries, ['mongodb'])
})
