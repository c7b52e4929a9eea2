'use strict'

const { setTimeout } = require('node:timers/promises')
const { test } = require('tap')
const lightTrace = require('../..')
const { serving } = require('../support/serving')
const { tracedApp } = require('../support/traced-app')

const port = Number(process.env.SERVICES_POSTGRESQL_PORT)

test('knex over pg: each query of the traced instance has its error and its parent', async (t) => {
  const create = require('knex')
  const knex = lightTrace.traceClient(create({ client: 'pg', connection: { host: '127.0.0.1', port, user: 'postgres', database: 'postgres' }, pool: { min: 0, max: 2 } }))
  t.equal(lightTrace.traceClient(knex), knex)
  t.teardown(() => knex.destroy())
  await knex.schema.dropTableIfExists('people')
  await knex.schema.createTable('people', (table) => { table.integer('id').primary(); table.text('name') })
  const { go } = await serving(t, async () => {
    await knex('people').insert({ id: 1, name: 'secret' })
    t.same(await knex('people').where({ name: 'secret' }).select('id'), [{ id: 1 }])
    await t.rejects(knex('people').insert({ id: 1, name: 'secret' }), { code: '23505' })
    await knex.raw("select 'secret' as a, ?::int as b", [7])
    await Promise.all(Array.from({ length: 6 }, (_, i) => knex('people').where({ id: i })))
    await knex.transaction(async (trx) => { await trx('people').where({ id: 1 }).update({ name: 'secret' }) })
  })
  const spans = await go()
  t.same(spans.map(({ name }) => name), ['INSERT people', 'SELECT people', 'INSERT people', 'SELECT', ...Array(6).fill('SELECT people'), 'UPDATE people'])
  t.same(spans[0].attributes, {
    'db.system.name': 'postgresql',
    'db.namespace': 'postgres',
    'db.query.summary': 'INSERT people',
    'db.query.text': 'insert into "people" ("id", "name") values ($1, $2)',
    'server.address': '127.0.0.1',
    'server.port': port
  })
  t.match(spans[2], { status: { code: 'ERROR' }, attributes: { 'error.type': '23505', 'db.response.status_code': '23505' } })
  t.notMatch(JSON.stringify(spans), /secret/)
})

test('knex: a wait for a connection of the pool has a span', async (t) => {
  const knex = lightTrace.traceClient(require('knex')({ client: 'pg', connection: { host: '127.0.0.1', port, user: 'postgres', database: 'postgres' }, pool: { min: 0, max: 1 } }))
  t.teardown(() => knex.destroy())
  const held = await knex.transaction() // holds the only connection
  const { origin, collector } = await tracedApp(t, { routes: (app) => app.get('/go/:id', async () => { await knex.raw('select 1'); return 'ok' }) })
  const answers = Promise.all(['a', 'b', 'c'].map((id) => fetch(`${origin}/go/${id}`).then((response) => response.text())))
  while (knex.client.pool.numPendingAcquires() < 3) await setTimeout(1)
  await setTimeout(2) // a wait of less than a millisecond has no span
  await held.commit()
  await answers
  const spans = await collector.spans()
  const waits = spans.filter(({ name }) => name === 'wait for connection')
  t.equal(new Set(waits.map(({ parentSpanId }) => parentSpanId)).size, 3)
  t.ok(waits.every(({ attributes }) => attributes['db.system.name'] === 'postgresql'))
})
