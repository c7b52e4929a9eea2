'use strict'

// The queries of one knex instance, by the events that knex documents: `query`, `query-response` and `query-error`. They
// come in the context of who awaits the query, and are told apart by the id that knex gives each.
//
// A driver that publishes channels has spans of its own below knex: then knex gets none. Streams and the statements of
// a transaction have an event at their start alone, and no span.

const { activeContext, tracerIn, isSuppressed } = require('./calls')
const { fail } = require('./channels')
const { PendingSpans, listener } = require('./pending-spans')
const { SqlDescriptor } = require('./libraries/databases')
const { sqlState } = require('./libraries/postgresql')
const { DIALECTS } = require('./libraries/statement')
const { read, text, label } = require('./libraries/read')

const errno = (error) => label(error, 'errno').replace(/^-.*/, '')
const none = () => ''

const postgresql = new SqlDescriptor('postgresql', DIALECTS.postgresql, 'sql', sqlState, true)
const sqlite = new SqlDescriptor('sqlite', DIALECTS.sqlite, 'sql', none, true)

// Where nothing is known of the dialect: quotes of either kind are values.
const sql = new SqlDescriptor('other_sql', DIALECTS.mysql, 'sql', none, true)

// knex's name of its client → who describes its queries. mysql2 publishes channels.
const DESCRIPTORS = {
  pg: postgresql,
  pgnative: postgresql,
  cockroachdb: new SqlDescriptor('cockroachdb', DIALECTS.postgresql, 'sql', sqlState, true),
  mysql: new SqlDescriptor('mysql', DIALECTS.mysql, 'sql', errno, true),
  sqlite3: sqlite,
  'better-sqlite3': sqlite,
  mssql: new SqlDescriptor('microsoft.sql_server', DIALECTS.mssql, 'sql', (error) => label(error, 'number'), true),
  oracledb: new SqlDescriptor('oracle.db', DIALECTS.postgresql, 'sql', (error) => label(error, 'errorNum'), true)
}

function traceKnex (knex) {
  // A dialect of somebody's own is a class, and says what it is in these.
  const names = [text(knex.client.config, 'client'), text(knex.client, 'driverName'), text(knex.client, 'dialect')]
  if (names.includes('mysql2')) return
  const callDescriptor = DESCRIPTORS[names.find((name) => Object.hasOwn(DESCRIPTORS, name))] ?? sql
  const pending = new PendingSpans()

  knex.on('query', listener((query) => {
    const id = text(query, '__knexQueryUid')
    if (id === '' || !('queryContext' in query)) return
    const context = activeContext()
    const tracer = tracerIn(context)
    if (tracer === null || !tracer.outbound?.libraries || isSuppressed(context)) return
    pending.add(id, tracer.startCall(callDescriptor, callOf(query, read(knex.client, 'connectionSettings')), context))
  }))
  knex.on('query-response', listener((response, query) => { pending.take(text(query, '__knexQueryUid'))?.end() }))
  knex.on('query-error', listener((error, query) => {
    const span = pending.take(text(query, '__knexQueryUid'))
    if (span === undefined) return
    if (span.isRecording()) fail(span, callDescriptor, error)
    span.end()
  }))
}

function callOf (query, settings) {
  return {
    sql: text(query, 'sql'),
    database: text(settings, 'database') || text(settings, 'filename'),
    serverAddress: text(settings, 'host') || text(settings, 'server'),
    serverPort: read(settings, 'port')
  }
}

module.exports = { traceKnex }
