'use strict'

// N+1 queries of real libraries with real servers. Each is found, and the same work with a single query is not reported.
// Feature: repeated-calls

const { execFileSync } = require('node:child_process')
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs')
const path = require('node:path')
const tap = require('tap')
const lightTrace = require('../..')
const { tracedApp } = require('../support/traced-app')
const { clients } = require('../support/serving')

const { test } = tap
tap.setTimeout(120_000) // Prisma generates its client

const IDS = Array.from({ length: 12 }, (_, i) => i + 1)
const redisPort = Number(process.env.SERVICES_REDIS_PORT)
const address = { host: '127.0.0.1', port: Number(process.env.SERVICES_POSTGRESQL_PORT), user: 'postgres', database: 'postgres' }
const users = 'n1_users'
const nodeMajor = Number(process.versions.node.split('.')[0])

// Returns what the request's span reports about repeated calls, for the loop and for the same work with one query.
async function found (t, loop, one, trace = {}) {
  const { origin, collector } = await tracedApp(t, {
    trace,
    routes (app) {
      app.get('/loop', async () => { await loop(); return 'ok' })
      app.get('/one', async () => { await one(); return 'ok' })
    }
  })
  const said = []
  for (const path of ['/loop', '/one']) {
    const response = await fetch(origin + path)
    if (response.status !== 200) throw new Error(await response.text())
    await response.text()
    const { attributes } = (await collector.spans()).find(({ kind, name }) => kind === 'SERVER' && name.endsWith(path))
    said.push([attributes['light_trace.repeated.shape'], attributes['light_trace.repeated.count']])
  }
  return said
}

async function each (work) {
  for (const id of IDS) await work(id)
}

async function pgPool (t) {
  const { Pool } = require('pg')
  const pool = new Pool({ ...address, max: 2 })
  t.teardown(() => pool.end())
  await pool.query(`CREATE TABLE IF NOT EXISTS ${users} (id int primary key, name text)`)
  for (const id of IDS) await pool.query(`INSERT INTO ${users} VALUES ($1, $2) ON CONFLICT DO NOTHING`, [id, 'name'])
  return lightTrace.traceClient(pool)
}

const nPlusOne = [[`SELECT ${users}`, IDS.length], [undefined, undefined]]

test('pg: queries in a loop are found, also in a transaction', async (t) => {
  const pool = await pgPool(t)
  const one = (id) => pool.query(`SELECT name FROM ${users} WHERE id = $1`, [id])
  t.same(await found(t, () => each(one), () => pool.query(`SELECT name FROM ${users} WHERE id = ANY($1)`, [IDS])), nPlusOne)
  t.same(await found(t, async () => {
    const client = await pool.connect()
    await client.query('BEGIN')
    await each((id) => client.query(`SELECT name FROM ${users} WHERE id = $1`, [id]))
    await client.query('COMMIT')
    client.release()
  }, () => pool.query('SELECT 1')), nPlusOne)
})

test('kysely: queries in a loop are found', async (t) => {
  const { Kysely, PostgresDialect } = await import('kysely')
  const db = new Kysely({ dialect: new PostgresDialect({ pool: await pgPool(t) }) })
  const query = () => db.selectFrom(users).select('name')
  t.same(await found(t, () => each((id) => query().where('id', '=', id).execute()), () => query().where('id', 'in', IDS).execute()), nPlusOne)
})

test('drizzle: queries in a loop are found', async (t) => {
  const { drizzle } = require('drizzle-orm/node-postgres')
  const { pgTable, integer, text } = require('drizzle-orm/pg-core')
  const { eq, inArray } = require('drizzle-orm')
  const table = pgTable(users, { id: integer('id'), name: text('name') })
  const db = drizzle({ client: await pgPool(t) })
  t.same(await found(t,
    () => each((id) => db.select().from(table).where(eq(table.id, id))),
    () => db.select().from(table).where(inArray(table.id, IDS))), nPlusOne)
})

test('knex: queries in a loop are found', async (t) => {
  await pgPool(t)
  const knex = lightTrace.traceClient(require('knex')({ client: 'pg', connection: address }))
  t.teardown(() => knex.destroy())
  t.same(await found(t, () => each((id) => knex(users).where({ id })), () => knex(users).whereIn('id', IDS)), nPlusOne)
})

test('postgres: queries in a loop are found', async (t) => {
  await pgPool(t)
  const sql = lightTrace.traceClient(require('postgres')({ ...address, onnotice () {} }))
  t.teardown(() => sql.end())
  t.same(await found(t,
    () => each((id) => sql`SELECT name FROM ${sql(users)} WHERE id = ${id}`),
    () => sql`SELECT name FROM ${sql(users)} WHERE id IN ${sql(IDS)}`), nPlusOne)
})

test('TypeORM: queries in a loop are found, with its own pool', async (t) => {
  await pgPool(t)
  const { DataSource, EntitySchema, In } = require('typeorm')
  const entity = new EntitySchema({ name: users, tableName: users, columns: { id: { type: 'int', primary: true }, name: { type: 'text', nullable: true } } })
  const { host, port, user: username, database } = address
  const source = await new DataSource({ type: 'postgres', host, port, username, database, entities: [entity] }).initialize()
  t.teardown(() => source.destroy())
  lightTrace.traceClient(source.driver.master)
  const repository = source.getRepository(users)
  t.same(await found(t, () => each((id) => repository.findOneBy({ id })), () => repository.findBy({ id: In(IDS) })), nPlusOne)
})

test('Sequelize: queries in a loop are found, through its hook for connections', async (t) => {
  await pgPool(t)
  const { Sequelize, DataTypes } = require('sequelize')
  const sequelize = new Sequelize({ dialect: 'postgres', host: address.host, port: address.port, username: address.user, database: address.database, logging: false })
  t.teardown(() => sequelize.close())
  sequelize.addHook('afterConnect', (connection) => { lightTrace.traceClient(connection) })
  const User = sequelize.define(users, { id: { type: DataTypes.INTEGER, primaryKey: true }, name: DataTypes.TEXT }, { tableName: users, timestamps: false })
  await User.findByPk(1) // opens a connection, which queries the server's version
  t.same(await found(t, () => each((id) => User.findByPk(id)), () => User.findAll({ where: { id: IDS } })), nPlusOne)
})

test('MikroORM: queries in a loop are found, with the user\'s pool', { skip: nodeMajor < 22 && 'MikroORM 7 needs Node 22' }, async (t) => {
  const pool = await pgPool(t)
  const { MikroORM, EntitySchema, PostgreSqlDriver } = await import('@mikro-orm/postgresql')
  const { PostgresDialect } = await import('kysely')
  const schema = new EntitySchema({ name: 'User', tableName: users, properties: { id: { type: 'integer', primary: true }, name: { type: 'text', nullable: true } } })
  const orm = await MikroORM.init({ driver: PostgreSqlDriver, dbName: address.database, entities: [schema], driverOptions: new PostgresDialect({ pool }), ensureDatabase: false }) // not closed, since `close` would end the pool
  t.same(await found(t, () => { const em = orm.em.fork(); return each((id) => em.findOne('User', { id })) }, () => orm.em.fork().find('User', { id: { $in: IDS } })), nPlusOne)
})

test('Prisma: queries in a loop are found, with the pool of its driver adapter', async (t) => {
  const pool = await pgPool(t)
  const { PrismaPg } = require('@prisma/adapter-pg')
  const directory = mkdtempSync(path.join(path.dirname(require.resolve('prisma/package.json')), '../.prisma-')) // a folder in which Prisma's packages are found
  t.teardown(() => rmSync(directory, { recursive: true }))
  writeFileSync(path.join(directory, 'schema.prisma'), `
    generator client {
      provider = "prisma-client-js"
      output   = "./generated"
    }
    datasource db {
      provider = "postgresql"
    }
    model User {
      id   Int @id
      name String?
      @@map("${users}")
    }`)
  // The schema engine is only needed for migrations. Setting its path prevents a download.
  const env = { ...process.env, NODE_OPTIONS: '', PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true', CHECKPOINT_DISABLE: '1' }
  execFileSync(process.execPath, [path.join(path.dirname(require.resolve('prisma/package.json')), 'build/index.js'), 'generate', '--schema', 'schema.prisma'], { cwd: directory, env, stdio: 'pipe' })
  const { PrismaClient } = require(path.join(directory, 'generated'))
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool) })
  t.teardown(() => prisma.$disconnect())
  t.same(await found(t, () => each((id) => prisma.user.findUnique({ where: { id } })), () => prisma.user.findMany({ where: { id: { in: IDS } } })), [[`SELECT public.${users}`, IDS.length], [undefined, undefined]])
})

test('mysql2: queries and prepared statements in a loop are found', async (t) => {
  const pool = require('mysql2/promise').createPool({ host: '127.0.0.1', port: Number(process.env.SERVICES_MARIADB_PORT), user: 'root' })
  t.teardown(() => pool.end())
  await pool.query('CREATE DATABASE IF NOT EXISTS n1')
  await pool.query(`CREATE TABLE IF NOT EXISTS n1.${users} (id INT PRIMARY KEY, name VARCHAR(99))`)
  for (const id of IDS) await pool.query(`REPLACE INTO n1.${users} VALUES (?, ?)`, [id, 'name'])
  const named = [[`SELECT n1.${users}`, IDS.length], [undefined, undefined]]
  for (const method of ['query', 'execute']) {
    t.same(await found(t,
      () => each((id) => pool[method](`SELECT name FROM n1.${users} WHERE id = ?`, [id])),
      () => pool.query(`SELECT name FROM n1.${users} WHERE id IN (?)`, [IDS])), named)
  }
})

test('redis and ioredis: GET in a loop is found, and MGET, a pipeline and MULTI are not', async (t) => {
  const client = require('redis').createClient({ url: `redis://127.0.0.1:${redisPort}` })
  await client.connect()
  t.teardown(() => client.close())
  const named = [['redis GET', IDS.length], [undefined, undefined]]
  t.same(await found(t, () => each((id) => client.get(`k${id}`)), () => client.mGet(IDS.map((id) => `k${id}`))), named)
  const { Redis } = require('ioredis')
  const io = new Redis({ port: redisPort, host: '127.0.0.1' })
  t.teardown(() => io.disconnect())
  await io.ping()
  t.same(await found(t, () => each((id) => io.get(`k${id}`)), async () => {
    const commands = IDS.map((id) => ['get', `k${id}`])
    await io.pipeline(commands).exec()
    await io.multi(commands).exec()
  }), named)
})

test('a thousand GETs are a thousand in Redis and in its metric, and a few spans', async (t) => {
  const { createClient } = require('redis')
  const url = `redis://127.0.0.1:${redisPort}`
  const [client, watcher] = [createClient({ url }), createClient({ url })]
  await Promise.all([client.connect(), watcher.connect()])
  t.teardown(() => { client.destroy(); watcher.destroy() })
  let seen = 0
  const all = new Promise((resolve) => watcher.monitor((line) => { if (/"GET" "thousand/.test(line) && ++seen === 1000) resolve() }))
  const { app, origin, collector } = await tracedApp(t, {
    trace: { metrics: true, outbound: { fold: true } },
    routes: (app) => app.get('/go', async () => {
      for (let i = 0; i < 1000; i++) await client.get(`thousand${i}`)
      return 'ok'
    })
  })
  await (await fetch(`${origin}/go`)).text()
  await all
  const calls = clients(await collector.spans())
  const { folded } = app.lightTrace.stats().spans
  const folds = calls.filter(({ attributes }) => 'light_trace.fold.count' in attributes)
  t.equal(folds.length, 1)
  t.equal(folds[0].attributes['light_trace.fold.count'], folded)
  t.equal(calls.length - 1 + folded, 1000)
  t.ok(folded > 800, `${folded} folded`)
  const [metric] = (await collector.metrics()).filter(({ name }) => name === 'db.client.operation.duration')
  t.equal((metric.dataPoints ?? metric.points).reduce((sum, { count, value }) => sum + (count ?? value.count), 0), 1000)
})
