// Query builders with a pool that traceClient traces, and Prisma with its own instrumentation. PostgreSQL is PGlite: PostgreSQL compiled to
// WebAssembly, behind a socket to which pg connects. Prisma uses SQLite through libSQL, which needs no engine.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import { PrismaLibSql } from '@prisma/adapter-libsql'
import { asc, eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable, text } from 'drizzle-orm/pg-core'
import fastify from 'fastify'
import { Kysely, PostgresDialect } from 'kysely'
import lightTrace from 'light-trace'
import { createCollector } from 'light-trace/testing'
import pg from 'pg'
import { docsCode, runProgram } from '../../test/support/ecosystem.js'

const require = createRequire(import.meta.url)
const here = import.meta.dirname
const [builders, prismaSetUp] = docsCode('recipes.md', 'Databases: pg, drizzle, kysely, knex, Prisma and others', 'js')
const makeBuilders = new Function('lightTrace', 'pg', 'connectionString', 'drizzle', 'Kysely', 'PostgresDialect', `${builders}\nreturn { pool, db, kysely }`) // eslint-disable-line no-new-func
const setUpPrisma = new Function('lightTrace', 'require', 'app', prismaSetUp) // eslint-disable-line no-new-func

const users = pgTable('users', { id: integer('id').primaryKey(), name: text('name') })

// Without waits for a free connection of the pool. They are spans from one millisecond, which a busy machine may need.
const queriesIn = async (collector) => (await collector.tree()).split('\n').filter((line) => line !== '  INTERNAL wait for connection').join('\n')

test('drizzle and kysely over a traced pool of pg: each query is a child of its request, without its values', async (t) => {
  const { pool, db, kysely } = makeBuilders(lightTrace, pg, await startPostgresql(t), drizzle, Kysely, PostgresDialect)
  t.after(() => pool.end())
  await pool.query('CREATE TABLE users (id integer PRIMARY KEY, name text)')

  const { app, collector } = await start(t, (app) => {
    app.get('/drizzle', async () => {
      await db.insert(users).values({ id: 1, name: 'secret' })
      await db.transaction(async (tx) => { await tx.update(users).set({ name: 'secret2' }).where(eq(users.id, 1)) })
      return db.select().from(users).orderBy(asc(users.id))
    })
    app.get('/kysely', async () => {
      await kysely.insertInto('users').values({ id: 2, name: 'secret' }).execute()
      await kysely.transaction().execute((trx) => trx.updateTable('users').set({ name: 'secret2' }).where('id', '=', 2).execute())
      return kysely.selectFrom('users').selectAll().where('name', '=', 'secret2').orderBy('id').execute()
    })
    app.get('/twice', () => kysely.insertInto('users').values({ id: 1, name: 'secret' }).execute().catch(({ code }) => code))
  })
  const rows = [{ id: 1, name: 'secret2' }, { id: 2, name: 'secret2' }]
  for (const [path, expected, queries] of [
    ['/drizzle', rows.slice(0, 1), ['INSERT users', 'BEGIN', 'UPDATE users', 'COMMIT', 'SELECT users']],
    ['/kysely', rows, ['INSERT users', 'BEGIN', 'UPDATE users', 'COMMIT', 'SELECT users']]
  ]) {
    collector.reset()
    assert.deepEqual((await app.inject(path)).json(), expected)
    assert.equal((await queriesIn(collector)).toLowerCase(), [`SERVER GET ${path}`, ...queries.map((query) => `  CLIENT ${query}`)].join('\n').toLowerCase())
    const [, ...calls] = await collector.spans()
    assert.deepEqual(new Set(calls.map(({ attributes }) => attributes['db.system.name'])), new Set(['postgresql']))
    assert.doesNotMatch(JSON.stringify(calls), /secret/)
  }
  collector.reset()
  assert.equal((await app.inject('/twice')).body, '23505')
  assert.equal(await queriesIn(collector), 'SERVER GET /twice\n  CLIENT INSERT users ERROR error.type=23505')
})

test('Prisma with its own instrumentation: its spans are in the request’s trace', { timeout: 120_000 }, async (t) => {
  // `prisma generate` needs no engine, but checks that its file exists. Any program will do.
  const made = await runProgram(t, [process.execPath, 'node_modules/prisma/build/index.js', 'generate', '--schema', 'schema.prisma'], { cwd: here, env: { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' } })
  assert.equal(made.code, 0, made.text)
  const folder = mkdtempSync(join(here, 'sqlite-'))
  t.after(() => rmSync(folder, { recursive: true }))

  const { app, collector } = await start(t, async (app) => {
    setUpPrisma({}, require, { register: () => {} }) // start() has already registered light-trace, with a collector
    const { PrismaClient } = require('./generated')
    const prisma = new PrismaClient({ adapter: new PrismaLibSql({ url: `file:${join(folder, 'users.db')}` }) })
    app.addHook('onClose', () => prisma.$disconnect())
    await prisma.$executeRawUnsafe('CREATE TABLE User (id INTEGER PRIMARY KEY, name TEXT NOT NULL)')
    app.get('/users', async () => {
      await prisma.user.create({ data: { id: 1, name: 'secret' } })
      return prisma.user.findMany({ where: { name: 'secret' } })
    })
  })
  collector.reset()
  assert.deepEqual((await app.inject('/users')).json(), [{ id: 1, name: 'secret' }])
  const spans = await collector.spans()
  const operation = `
  INTERNAL prisma:client:operation
    INTERNAL prisma:client:serialize
    INTERNAL prisma:client:compile
    CLIENT prisma:client:db_query`
  assert.equal(await collector.tree(), `SERVER GET /users${operation}${operation}`)
  const operations = spans.filter(({ name }) => name === 'prisma:client:operation')
  assert.deepEqual(operations.map(({ attributes, parentSpanId }) => [attributes.name, parentSpanId]), [['User.create', spans[0].spanId], ['User.findMany', spans[0].spanId]])
  assert.deepEqual(new Set(spans.map(({ traceId }) => traceId)), new Set([spans[0].traceId]))
  assert.ok(spans.some(({ name, attributes }) => name === 'prisma:client:db_query' && /^SELECT/.test(attributes['db.query.text'])))
  assert.doesNotMatch(JSON.stringify(spans), /secret/)
})

async function start (t, setUp) {
  const collector = createCollector()
  const app = fastify()
  t.after(() => app.close())
  await app.register(lightTrace, { spanProcessors: [collector] })
  await setUp(app)
  await app.ready()
  return { app, collector }
}

async function startPostgresql (t) {
  const db = await PGlite.create()
  const server = new PGLiteSocketServer({ db, host: '127.0.0.1', port: 0, maxConnections: 4 })
  await server.start()
  t.after(async () => { await server.stop(); await db.close() })
  return `postgres://postgres@${server.getServerConn()}/postgres`
}
