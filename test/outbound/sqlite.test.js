'use strict'

// A real node:sqlite database, on a Node that publishes its queries (26.8 and later).
// Feature: libraries

const diagnosticsChannel = require('node:diagnostics_channel')
const { test } = require('tap')
const { serving } = require('../support/serving')

const sqlite = sqliteThatPublishes()
const skip = sqlite === null ? 'this Node\'s sqlite publishes nothing' : false

test('each query of node:sqlite is a span, without its values', { skip }, async (t) => {
  const database = new sqlite.DatabaseSync(':memory:')
  t.teardown(() => database.close())
  database.exec('create table users (id integer, name text)')
  const { go } = await serving(t, () => {
    database.prepare('insert into users values (?, ?)').run(1, 'secret')
    t.same(database.prepare('select name from users where id = :id').all({ id: 1 }).map(({ name }) => name), ['secret'])
  })
  const spans = await go()
  t.same(spans.map(({ name, attributes }) => [name, attributes]), [
    ['INSERT users', {
      'db.system.name': 'sqlite',
      'db.query.summary': 'INSERT users',
      'db.query.text': 'insert into users values (?, ?)'
    }],
    ['SELECT users', {
      'db.system.name': 'sqlite',
      'db.query.summary': 'SELECT users',
      'db.query.text': 'select name from users where id = ?'
    }]
  ])
})

test('a node:sqlite query outside of a request has no span, and a failed one does not affect the next', { skip }, async (t) => {
  const database = new sqlite.DatabaseSync(':memory:')
  t.teardown(() => database.close())
  const { go } = await serving(t, () => {
    t.throws(() => database.exec('select * from nowhere'), { code: 'ERR_SQLITE_ERROR' })
    database.exec('create table users (id integer)')
  })
  database.exec('create table outside (id integer)')
  t.same((await go()).map(({ name }) => name), ['CREATE TABLE users'])
})

test('the span of a node:sqlite query starts with the query, not when it is published', { skip }, async (t) => {
  const database = new sqlite.DatabaseSync(':memory:')
  t.teardown(() => database.close())
  const { go } = await serving(t, () => {
    database.exec('with recursive n (i) as (select 1 union all select i + 1 from n where i < 300000) select max(i) from n')
  })
  const [span] = await go()
  t.ok(span.endTime > span.startTime, 'it has a duration')
})

function sqliteThatPublishes () {
  let sqlite
  try {
    sqlite = require('node:sqlite')
  } catch {
    return null
  }
  let published = false
  const seen = () => { published = true }
  diagnosticsChannel.subscribe('sqlite.db.query', seen)
  const database = new sqlite.DatabaseSync(':memory:')
  database.exec('select 1')
  database.close()
  diagnosticsChannel.unsubscribe('sqlite.db.query', seen)
  return published ? sqlite : null
}
