'use strict'

// Databases as data: where in a call's payload which part of the conventions is found. Most of them publish channels; the calls
// of pg and knex are from trace-client.js.
// https://opentelemetry.io/docs/specs/semconv/database/database-spans/

const { CallInfo } = require('../../http/conventions.js')
const { cut, sqlStateOf } = require('../../span/attributes.js')
const clock = require('../../runtime/timers.js')
const { KIND_CLIENT, kCall, activeContext, placeOfCall } = require('../../outbound/calls.js')
const { sanitise, DIALECTS } = require('./statement.js')
const { recordedArguments, commands } = require('./redis-keys.js')
const { read, text, label, pushServer, pushPeer, pushText, lengthOf } = require('./read.js')

const CACHED_MAX = 256
const CACHED_LENGTH_MAX = 1024
const SHARED_LENGTH_MAX = 255
const PLACES_MAX = 64 // servers, databases and collections of one operation; compared one by one
const DAY_NS = 86400e9

const COMMAND_NAME = /^[a-z][a-z0-9._-]{0,63}$/i

/** What the descriptors of all databases have. */
class DatabaseDescriptor {
  #infos = new Map() // what is done -> where, and what its calls share

  constructor (system, errorCode) {
    this.kind = KIND_CLIENT
    this.system = system // db.system.name
    this.errorCode = errorCode // of an error: db.response.status_code
  }

  /** What calls share that do the same to one server: the same object, as long as it is among the last that came. HOT */
  find (what, target, call) {
    const places = this.#infos.get(what)
    if (places === undefined) return null
    try {
      const { database, serverAddress, serverPort } = call
      for (let i = 0; i < places.length; i++) {
        const seen = places[i]
        if (seen.serverPort === serverPort && seen.serverAddress === serverAddress && seen.database === database && seen.target === target) {
          return seen.info
        }
      }
    } catch {
      // A field throws when it is read: `add` reads each by itself.
    }
    return null
  }

  /**
   * @param {unknown} what summary of a query, or raw name of a command
   * @param {unknown} target collection or stored procedure, raw
   * @param {object} call
   * @param {string} name
   * @param {string[]} own attributes behind system and namespace
   * @param {{ hasPeer?: boolean, operandRule? (name): object }} [more] whether the server's address is the peer's; where the calls'
   *   text is behind the name, which of the operands may be recorded
   */
  add (what, target, call, name, own, { hasPeer = false, operandRule } = {}) {
    const list = ['db.system.name', this.system]
    const database = label(call, 'database')
    pushText(list, 'db.namespace', database)
    list.push(...own)
    pushServer(list, call)
    if (hasPeer) pushPeer(list, call)
    for (let i = 1; i < list.length; i += 2) if (typeof list[i] === 'string') list[i] = cut(list[i], SHARED_LENGTH_MAX)
    const info = new CallInfo(this.kind, cut(name, SHARED_LENGTH_MAX) || this.system, list, operandRule === undefined ? '' : name, 'db.query.text', true)
    if (operandRule !== undefined) info.operandRule = operandRule(name)
    if (typeof what === 'string' && what.length > CACHED_LENGTH_MAX) return info
    const infos = this.#infos
    const places = infos.get(what) ?? []
    if (places.length === PLACES_MAX) places.shift()
    places.push({ target, database: read(call, 'database'), serverAddress: read(call, 'serverAddress'), serverPort: read(call, 'serverPort'), info })
    if (places.length === 1 && infos.size === CACHED_MAX) infos.delete(infos.keys().next().value)
    infos.set(what, places)
    return info
  }
}

/** Describes calls with SQL in a field of the payload. */
class SqlDescriptor extends DatabaseDescriptor {
  #cache
  #queryText = '' // of the call that `info` was asked for, until `attributes` is

  /** @param {boolean} isParametrised its values are apart, so the same statement comes again and is worth remembering */
  constructor (system, dialect, field, errorCode, isParametrised, startedAt = undefined) {
    super(system, errorCode)
    this.dialect = dialect
    this.field = field // that holds the statement
    this.startedAt = startedAt // of a call that is reported after it has begun
    this.#cache = isParametrised ? new Map() : null
  }

  // HOT
  info (call) {
    const { summary, text: queryText } = this.#sanitised(text(call, this.field))
    this.#queryText = queryText
    return this.find(summary, undefined, call) ??
      this.add(summary, undefined, call, summary || text(call, 'database'), summary === '' ? [] : ['db.query.summary', summary])
  }

  attributes () {
    const queryText = this.#queryText
    return queryText === '' ? null : ['db.query.text', queryText]
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

/**
 * Describes calls of a store whose payload names the operation.
 *
 * @typedef {object} StoreParts
 * @property {string} system db.system.name
 * @property {(call) => unknown} [what] reads what names the operation; by a place of its own V8 finds a field at once
 * @property {(what: unknown) => string} [operation] the operation's name, where that field may hold anything
 * @property {(call) => unknown} [target] reads the collection or stored procedure
 * @property {string} [targetKey] the target's attribute
 * @property {(call) => number} [batchSize]
 * @property {(call, operation: string, rule) => string} [operands] what db.query.text has behind the operation
 * @property {(operation: string) => object} [operandRule] which of the operands may be recorded
 * @property {(error) => string} errorCode db.response.status_code
 * @property {(call) => boolean} [shouldTrace]
 * @property {boolean} [hasPeer] whether the server's address is the peer's
 */
class StoreDescriptor extends DatabaseDescriptor {
  #parts

  /** @param {StoreParts} parts */
  constructor (parts) {
    super(parts.system, parts.errorCode)
    this.#parts = { what: nothing, target: nothing, ...parts }
    this.shouldTrace = parts.shouldTrace
    this.operands = parts.operands
    this.batchSize = parts.batchSize
  }

  // HOT
  info (call) {
    const parts = this.#parts
    let what
    let target
    try {
      what = parts.what(call)
      target = parts.target(call)
    } catch {} // a field throws when it is read
    return this.find(what, target, call) ?? this.#made(what, target, call)
  }

  #made (what, target, call) {
    const { operation = textOf, targetKey = 'db.collection.name' } = this.#parts
    const [done, to] = [operation(what), textOf(target)]
    const own = []
    pushText(own, 'db.operation.name', done)
    pushText(own, targetKey, to)
    return this.add(what, target, call, done === '' || to === '' ? done + to : `${done} ${to}`, own, this.#parts)
  }

  /** What `db.query.text` has behind the operation, which its origin is. HOT */
  target (call, info) { return this.operands(call, info.origin, info.operandRule) }

  attributes (call) {
    if (this.batchSize === undefined) return null
    const batchSize = this.batchSize(call)
    return batchSize > 1 ? ['db.operation.batch.size', batchSize] : null
  }
}

const textOf = (value) => typeof value === 'string' ? value : ''
const nothing = () => ''
// A command that the user has put together may begin with anything.
const commandName = (command) => COMMAND_NAME.exec(textOf(command))?.[0].toUpperCase() ?? ''
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
// By what ioredis opens a connection, to a cluster at the first command. INFO is its check whether the server is ready.
const OPENING = new Set(['hello', 'info', 'readonly', 'client setinfo', 'client setname', 'cluster slots', 'cluster shards'])
const WITH_SUBCOMMANDS = new Set(['client', 'cluster'])
const isOfUser = ({ command, args }) => {
  try {
    const name = command.toLowerCase()
    if (name === 'info' && args.length > 0) return true
    return !OPENING.has(WITH_SUBCOMMANDS.has(name) ? `${name} ${args[0]}`.toLowerCase() : name)
  } catch {
    return true
  }
}
// Redis says what kind of error it is in the first word: WRONGTYPE, NOAUTH, ERR.
const redisError = (error) => /^[A-Z][A-Z0-9]{1,31}(?= )/.exec(text(error, 'message'))?.[0] ?? ''
const mysqlError = (error) => label(error, 'errno').replace(/^-.*/, '') // a negative one is the socket's
const mssqlError = (error) => label(error, 'number')
const mongoError = (error) => {
  const code = read(error, 'code')
  return typeof code === 'number' ? String(code) : ''
}

const redis = { system: 'redis', errorCode: redisError, hasPeer: true }
const redisCommand = (from) => ({ ...redis, what: (call) => call.command, operation: commandName, operands: redisArguments(from), operandRule: (name) => commands.get(name) })
// A pipeline is one span, not one for each of its commands.
const redisBatch = { ...redis, what: (call) => call.batchMode, batchSize: (call) => Number(label(call, 'batchSize')) || 0 }

const SQL_SERVER = 'microsoft.sql_server'
const mssql = (field, isParametrised) => new SqlDescriptor(SQL_SERVER, DIALECTS.mssql, field, mssqlError, isParametrised)
const mysql = (field, isParametrised) => new SqlDescriptor('mysql', DIALECTS.mysql, field, mysqlError, isParametrised)
const postgresql = (field, isParametrised, startedAt) =>
  new SqlDescriptor('postgresql', DIALECTS.postgresql, field, sqlStateOf, isParametrised, startedAt)

const mongo = new StoreDescriptor({
  system: 'mongodb',
  what: (call) => call.operation,
  target: (call) => call.collection,
  batchSize: (call) => lengthOf(read(read(call, 'args'), 'ops')), // of bulkWrite: insertMany is one operation
  errorCode: mongoError
})

// PostgreSQL by pg: the queries that `traceClient` reports when pg has taken them.
const reportedAt = (call) => call.startedAt
const pgQuery = postgresql('text', false, reportedAt)
const pgPreparedQuery = postgresql('text', true, reportedAt)

/** Describes the calls of the channel that pg is about to publish. https://github.com/brianc/node-postgres/pull/3650 */
const pgChannel = {
  hasSpoken: false, // this pg publishes its queries itself
  kind: KIND_CLIENT,
  errorCode: sqlStateOf,
  shouldTrace: () => { pgChannel.hasSpoken = true },
  info: (call) => pgQuery.info(pgCallOf(call)),
  attributes: () => pgQuery.attributes()
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

// node:sqlite publishes a query when it is over (Node 26.8 and later), with its values written into the text.
let sqliteEndedAt = 0 // of the query that is being published

const sqliteQuery = new SqlDescriptor('sqlite', DIALECTS.sqlite, 'sql', nothing, false, (call) => {
  const nanos = Number(read(call, 'duration'))
  return nanos > 0 && nanos < DAY_NS ? sqliteEndedAt - nanos / 1e6 : sqliteEndedAt
})

/** Records a query that node:sqlite has published. */
function recordSqliteQuery (call) {
  if (call === null || typeof call !== 'object' || call[kCall] !== undefined) return
  const place = placeOfCall(activeContext())
  if (place === null) return
  Reflect.set(call, kCall, null)
  sqliteEndedAt = clock.now()
  place.tracer.startCall(sqliteQuery, call, place.context)?.end(sqliteEndedAt)
}

/** Channel -> call descriptor. What is in `query` has its values inlined; `execute` has them apart. */
const DATABASES = {
  'mysql2:query': mysql('query', false),
  'mysql2:execute': mysql('query', true),
  'node-redis:command': new StoreDescriptor({ ...redisCommand(1), shouldTrace: isAlone }),
  'node-redis:batch': new StoreDescriptor(redisBatch),
  'ioredis:command': new StoreDescriptor({ ...redisCommand(0), shouldTrace: isOfUser }),
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
    target: (call) => call.procedure,
    targetKey: 'db.stored_procedure.name',
    errorCode: mssqlError
  }),
  'mssql:bulk': new StoreDescriptor({ system: SQL_SERVER, operation: () => 'BULK INSERT', target: (call) => call.table, errorCode: mssqlError }),
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

module.exports = { DATABASES, KNEX, pgQuery, pgPreparedQuery, pgCallOf, pgChannel, recordSqliteQuery }
