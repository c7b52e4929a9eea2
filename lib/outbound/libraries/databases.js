'use strict'

// Databases as data: where in a call's payload which part of the conventions is found. Most of them publish channels; the calls
// of pg and knex are from trace-client.js.
// https://opentelemetry.io/docs/specs/semconv/database/database-spans/

const { CallInfo } = require('../../http/conventions')
const { cut, sqlStateOf } = require('../../span/attributes')
const clock = require('../../runtime/timers')
const { KIND_CLIENT, kCall, activeContext, tracerIn, isSuppressed } = require('../calls')
const { sanitise, DIALECTS } = require('./statement')
const { recordedArguments, ruleOf } = require('./redis-keys')
const { read, text, label, pushServer, pushPeer, pushText, lengthOf } = require('./read')

const CACHED_MAX = 256
const CACHED_LENGTH_MAX = 1024
const SHARED_LENGTH_MAX = 255
const SHAPES_MAX = 64 // more queries than one request has
const RECENT_MAX = 32 // more commands, or operations and collections, than most apps use; compared one by one
const RECENT_FIELDS = ['command', 'operation', 'collection', 'database', 'serverAddress', 'serverPort']
const DAY_NS = 86400e9

const COMMAND_NAME = /^[a-z][a-z0-9._-]{0,63}$/i

/** Describes calls with SQL in a field of the payload. */
class SqlDescriptor {
  #shapes = []
  #cache
  #last = null
  #lastCall = null

  /** @param {boolean} isParametrised its values are apart, so the same statement comes again and is worth remembering */
  constructor (system, dialect, field, errorCode, isParametrised, startedAt = undefined) {
    this.kind = KIND_CLIENT
    this.hasShape = true
    this.system = system // db.system.name
    this.dialect = dialect
    this.field = field // that holds the statement
    this.errorCode = errorCode // of an error: db.response.status_code
    this.startedAt = startedAt // of a call that is reported after it has begun
    this.#cache = isParametrised ? new Map() : null
  }

  name (call) {
    return this.#statement(call).summary || text(call, 'database') || this.system
  }

  attributes (call) {
    const { text: queryText, summary } = this.#statement(call)
    const list = ['db.system.name', this.system]
    pushText(list, 'db.namespace', text(call, 'database'))
    pushText(list, 'db.query.summary', summary)
    pushText(list, 'db.query.text', queryText)
    pushServer(list, call)
    this.#last = this.#lastCall = null
    return list
  }

  /** The same object for the same summary and server, as long as it is among the last that came. HOT */
  shape (call) {
    const name = this.name(call)
    const database = read(call, 'database')
    const serverAddress = read(call, 'serverAddress')
    const serverPort = read(call, 'serverPort')
    const shapes = this.#shapes
    for (let i = 0; i < shapes.length; i++) {
      const seen = shapes[i]
      if (seen.label === name && seen.database === database && seen.serverAddress === serverAddress && seen.serverPort === serverPort) return seen
    }
    if (shapes.length === SHAPES_MAX) shapes.shift()
    const shape = { label: name, database, serverAddress, serverPort }
    shapes.push(shape)
    return shape
  }

  /** The statement as it may be recorded. It is asked for by `name` first and `attributes` next, and read once. */
  #statement (call) {
    if (this.#lastCall !== call) {
      this.#last = this.#sanitised(text(call, this.field))
      this.#lastCall = call
    }
    return this.#last
  }

  #sanitised (statement) {
    const cache = this.#cache
    if (cache === null || statement.length > CACHED_LENGTH_MAX) return sanitise(statement, this.dialect)
    let found = cache.get(statement)
    if (found === undefined) {
      found = sanitise(statement, this.dialect)
      if (cache.size === CACHED_MAX) cache.clear()
      cache.set(statement, found)
    }
    return found
  }
}

const nothing = () => ''

/**
 * Describes calls of a store whose payload names the operation.
 *
 * @typedef {object} StoreParts
 * @property {string} system db.system.name
 * @property {(call) => string} operation
 * @property {(call) => string} [target] the collection or stored procedure
 * @property {string} [targetKey] the target's attribute
 * @property {(call) => string} [namespace]
 * @property {(call) => number} [batchSize]
 * @property {(call, operation: string, rule) => string} [operands] what db.query.text has behind the operation
 * @property {(operation: string) => object} [operandRule] which of the operands may be recorded
 * @property {(error) => string} errorCode db.response.status_code
 * @property {(call) => boolean} [shouldTrace]
 * @property {boolean} [hasPeer] whether the server's address is the peer's
 */
class StoreDescriptor {
  #parts
  #known = new Map() // what it says of itself -> CallInfo
  #recent = []

  /** @param {StoreParts} parts */
  constructor (parts) {
    this.#parts = parts
    this.kind = KIND_CLIENT
    this.hasShape = true
    this.errorCode = parts.errorCode
    this.shouldTrace = parts.shouldTrace
    this.operands = parts.operands
    this.batchSize = parts.batchSize
  }

  /** What calls of one operation to one server share. HOT */
  info (call) {
    const found = this.#findRecent(call)
    if (found !== null) return found
    const parts = this.#parts
    const operation = parts.operation(call)
    const target = parts.target?.(call) ?? ''
    const namespace = parts.namespace?.(call) ?? ''
    const key = `${operation}\n${target}\n${namespace}\n${text(call, 'serverAddress')}\n${label(call, 'serverPort')}`
    const info = this.#known.get(key) ?? this.#add(key, call, operation, target, namespace)
    this.#remember(call, info)
    return info
  }

  // By the fields as they are, without making a text of them.
  #findRecent (call) {
    try {
      const { command, operation, collection, database, serverAddress, serverPort } = call
      const recent = this.#recent
      for (let i = 0; i < recent.length; i++) {
        const seen = recent[i]
        if (seen.command === command && seen.serverPort === serverPort && seen.serverAddress === serverAddress &&
          seen.database === database && seen.operation === operation && seen.collection === collection) {
          return seen.info
        }
      }
    } catch {
      // A field throws when it is read: `info` reads each by itself.
    }
    return null
  }

  #remember (call, info) {
    if (['procedure', 'table', 'batchMode'].some((field) => read(call, field) !== undefined)) return
    if (this.#recent.length === RECENT_MAX) this.#recent.shift()
    const seen = { info }
    for (const field of RECENT_FIELDS) seen[field] = read(call, field)
    this.#recent.push(seen)
  }

  #add (key, call, operation, target, namespace) {
    const { system, targetKey = 'db.collection.name', operandRule, hasPeer } = this.#parts
    const list = ['db.system.name', system]
    pushText(list, 'db.namespace', namespace)
    pushText(list, 'db.operation.name', operation)
    pushText(list, targetKey, target)
    pushServer(list, call)
    if (hasPeer) pushPeer(list, call)
    for (let i = 1; i < list.length; i += 2) if (typeof list[i] === 'string') list[i] = cut(list[i], SHARED_LENGTH_MAX)
    const name = [operation, target].filter((part) => part !== '').join(' ')
    const origin = this.operands === undefined ? '' : operation
    const info = new CallInfo(this.kind, cut(name, SHARED_LENGTH_MAX) || system, list, origin, 'db.query.text')
    if (origin !== '') info.operandRule = operandRule(operation)
    if (this.#known.size === CACHED_MAX) this.#known.clear()
    if (key.length <= CACHED_LENGTH_MAX) this.#known.set(key, info)
    return info
  }

  /** What `db.query.text` has behind the operation, which its origin is. HOT */
  target (call, info) {
    return this.operands(call, info.origin, info.operandRule)
  }

  attributes (call) {
    if (this.operands !== undefined) return null
    const batchSize = this.batchSize === undefined ? 0 : this.batchSize(call)
    return batchSize > 1 ? ['db.operation.batch.size', batchSize] : []
  }
}

const database = (call) => label(call, 'database')
// A command that the user has put together may begin with anything.
const command = (call) => COMMAND_NAME.exec(text(call, 'command'))?.[0].toUpperCase() ?? ''
/** @param {number} from where a command's arguments begin in `args` */
const redisArguments = (from) => (call, name, rule) => {
  try {
    const { args } = call
    return Array.isArray(args) ? recordedArguments(name, args, from, rule) : ''
  } catch {
    return ''
  }
}
const isAlone = (call) => text(call, 'batchMode') === ''
// Redis says what kind of error it is in the first word: WRONGTYPE, NOAUTH, ERR.
const redisError = (error) => /^[A-Z][A-Z0-9]{1,31}(?= )/.exec(text(error, 'message'))?.[0] ?? ''
const mysqlError = (error) => label(error, 'errno').replace(/^-.*/, '') // a negative one is the socket's
const mssqlError = (error) => label(error, 'number')
const mongoError = (error) => {
  const code = read(error, 'code')
  return typeof code === 'number' ? String(code) : ''
}

const redis = { system: 'redis', namespace: database, errorCode: redisError, hasPeer: true }
const redisCommand = (from) => ({ ...redis, operation: command, operands: redisArguments(from), operandRule: ruleOf })
// A pipeline is one span, not one for each of its commands.
const redisBatch = { ...redis, operation: (call) => text(call, 'batchMode'), batchSize: (call) => Number(label(call, 'batchSize')) || 0 }

const SQL_SERVER = 'microsoft.sql_server'
const mssql = (field, isParametrised) => new SqlDescriptor(SQL_SERVER, DIALECTS.mssql, field, mssqlError, isParametrised)
const mysql = (field, isParametrised) => new SqlDescriptor('mysql', DIALECTS.mysql, field, mysqlError, isParametrised)
const postgresql = (field, isParametrised, startedAt) =>
  new SqlDescriptor('postgresql', DIALECTS.postgresql, field, sqlStateOf, isParametrised, startedAt)

const mongo = new StoreDescriptor({
  system: 'mongodb',
  operation: (call) => text(call, 'operation'),
  target: (call) => text(call, 'collection'),
  namespace: database,
  batchSize: (call) => lengthOf(read(read(call, 'args'), 'ops')), // of bulkWrite: insertMany is one operation
  errorCode: mongoError
})

// PostgreSQL by pg: the queries that `traceClient` reports when pg has taken them.
const reportedAt = (call) => call.startedAt
const pgQuery = postgresql('text', false, reportedAt)
const pgPreparedQuery = postgresql('text', true, reportedAt)

let hasPgChannelSpoken = false

/** Describes the calls of the channel that pg is about to publish. https://github.com/brianc/node-postgres/pull/3650 */
const pgChannel = {
  kind: KIND_CLIENT,
  errorCode: sqlStateOf,
  shouldTrace: () => { hasPgChannelSpoken = true },
  name: (call) => pgQuery.name(pgCallOf(call)),
  attributes: (call) => pgQuery.attributes(pgCallOf(call)),
  hasShape: true,
  shape: (call) => pgQuery.shape(pgCallOf(call))
}

/** What the descriptors read of a query, which may be a text, an object or a Cursor, and its client. */
function pgCallOf (call) {
  const query = read(call, 'query')
  const client = read(call, 'client')
  return {
    text: typeof query === 'string' ? query : text(query, 'text') || text(read(query, 'cursor'), 'text'),
    database: text(client, 'database'),
    serverAddress: text(client, 'host'),
    serverPort: read(client, 'port')
  }
}

/** Whether this pg publishes its queries itself. */
function pgChannelSpoke () {
  return hasPgChannelSpoken
}

// node:sqlite publishes a query when it is over (Node 26.8 and later), with its values written into the text.
let sqliteEndedAt = 0 // of the query that is being published

const sqliteQuery = new SqlDescriptor('sqlite', DIALECTS.sqlite, 'sql', nothing, false, (call) => {
  const nanos = Number(read(call, 'duration'))
  return nanos > 0 && nanos < DAY_NS ? sqliteEndedAt - nanos / 1e6 : sqliteEndedAt
})

/** Records a query that node:sqlite has published. */
function recordSqliteQuery (call) {
  if (call === null || typeof call !== 'object' || call[kCall] !== undefined) return
  const context = activeContext()
  const tracer = tracerIn(context)
  if (!tracer?.outbound?.libraries || isSuppressed(context)) return
  Reflect.set(call, kCall, null)
  sqliteEndedAt = clock.now()
  tracer.startCall(sqliteQuery, call, context)?.end(sqliteEndedAt)
}

/** Channel -> call descriptor. What is in `query` has its values inlined; `execute` has them apart. */
const DATABASES = {
  'mysql2:query': mysql('query', false),
  'mysql2:execute': mysql('query', true),
  'node-redis:command': new StoreDescriptor({ ...redisCommand(1), shouldTrace: isAlone }),
  'node-redis:batch': new StoreDescriptor(redisBatch),
  'ioredis:command': new StoreDescriptor(redisCommand(0)),
  'ioredis:batch': new StoreDescriptor(redisBatch),
  'mongoose:query': mongo,
  'mongoose:aggregate': mongo,
  'mongoose:model:save': mongo,
  'mongoose:model:insertMany': mongo,
  'mongoose:model:bulkWrite': mongo,
  'mongoose:cursor:next': mongo, // on request
  'mssql:query': mssql('command', false),
  'mssql:batch': mssql('command', false),
  'mssql:prepared-statement:execute': mssql('statement', true),
  'mssql:execute': new StoreDescriptor({
    system: SQL_SERVER,
    operation: () => 'EXECUTE',
    target: (call) => text(call, 'procedure'),
    targetKey: 'db.stored_procedure.name',
    errorCode: mssqlError
  }),
  'mssql:bulk': new StoreDescriptor({ system: SQL_SERVER, operation: () => 'BULK INSERT', target: (call) => text(call, 'table'), errorCode: mssqlError }),
  'pg:query': pgChannel
}

/** knex's name of its client -> call descriptor. */
const KNEX = {
  pg: postgresql('sql', true),
  pgnative: postgresql('sql', true),
  cockroachdb: new SqlDescriptor('cockroachdb', DIALECTS.postgresql, 'sql', sqlStateOf, true),
  mysql: mysql('sql', true),
  sqlite3: new SqlDescriptor('sqlite', DIALECTS.sqlite, 'sql', nothing, true),
  'better-sqlite3': new SqlDescriptor('sqlite', DIALECTS.sqlite, 'sql', nothing, true),
  mssql: mssql('sql', true),
  oracledb: new SqlDescriptor('oracle.db', DIALECTS.postgresql, 'sql', (error) => label(error, 'errorNum'), true),
  // Where nothing is known of the dialect: quotes of either kind are values.
  other: new SqlDescriptor('other_sql', DIALECTS.mysql, 'sql', nothing, true)
}

module.exports = { DATABASES, KNEX, pgQuery, pgPreparedQuery, pgCallOf, pgChannelSpoke, recordSqliteQuery }
