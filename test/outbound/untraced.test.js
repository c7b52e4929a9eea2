'use strict'

// Alone in its process: no other file may have loaded the libraries that it looks for.
// Feature: trace-client

const path = require('node:path')
const { test } = require('tap')
const Fastify = require('fastify')
const { Writable } = require('node:stream')
const lightTrace = require('../..')

/** Returns what the first requests of an app log if these modules are loaded in its process. */
async function logOf (t, packages, { trace = {}, given = [] } = {}) {
  for (const name of packages) {
    const file = path.join(__dirname, 'node_modules', name, 'index.js')
    require.cache[file] = {}
    t.teardown(() => { delete require.cache[file] })
  }
  for (const client of given) lightTrace.traceClient(client)
  const lines = []
  const stream = new Writable({ write (chunk, encoding, done) { lines.push(JSON.parse(chunk)); done() } })
  const app = Fastify({ logger: { level: 'info', stream } })
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: 'none', registerGlobals: false, ...trace })
  app.get('/', async () => 'ok')
  for (let i = 0; i < 3; i++) await app.inject('/')
  await new Promise(setImmediate)
  return lines.filter(({ msg }) => msg.includes('traceClient')).map(({ level, msg }) => `${level} ${msg.slice(0, msg.indexOf(' are not'))}`)
}

const pool = { totalCount: 0, connect () {}, query () {} }

test('a library that is loaded and not traced is named once, at level info', async (t) => {
  t.same(await logOf(t, ['pg', 'postgres', 'fastify']), ['30 the calls of pg, postgres'])
  t.same(await logOf(t, ['pg']), [], 'and not again by another application')
})

test('nothing is logged for libraries with channels, for those that another library uses, or if libraries are off', async (t) => {
  t.same(await logOf(t, ['mysql2', 'knex', 'mongoose', 'mongodb']), [])
  t.same(await logOf(t, ['postgres'], { trace: { outbound: { libraries: false } } }), [])
})

test('untraced knex is named, and pg below it is not', async (t) => {
  t.same(await logOf(t, ['knex', 'pg']), ['30 the calls of knex'])
})

test('nothing is logged if a client was passed to traceClient', async (t) => {
  t.same(await logOf(t, ['pg'], { given: [pool] }), [])
})
