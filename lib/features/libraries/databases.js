'use strict'

// Databases as data: which field of a call's payload gives which attribute. Most libraries publish channels; the calls of pg and knex
// come from trace-client.js.
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
const PLACES_MAX = 64 // combinations of server, database and collection for one operation; searched linearly
const DAY_NS = 86400e9

const COMMAND_NAME = /^[a-z][a-z0-9._-]{0,63}$/i

/** The base of all database descriptors. */
class DatabaseDescriptor {
  #infos = new Map() // operation -> the places where it is done, each with the CallInfo that its calls share

  constructor (system, errorCode) {
    this.kind = KIND_CLIENT
    this.system = system // db.system.name
    this.errorCode = errorCode // returns an error's db.response.status_code
  }

  /** The cached CallInfo of calls with the same operation, server, database and target, or null. HOT */
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
      // Reading a field threw. `add` reads each field separately.
    }
    return null
  }

  /**
   * @param {unknown} what summary of a query, or unchecked name of a command
   * @param {unknown} target unchecked collection or stored procedure
   * @param {object} call
   * @param {string} name
   * @param {string[]} own attributes after system and namespace
   * @param {{ hasPeer?: boolean, operandRule? (name): object }} [more] hasPeer: whether the server's address is the peer's;
   *   operandRule: which operands may be recorded, if the calls' text follows the name
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

/** Describes calls whose payload has SQL in a field. */
class SqlDescriptor extends DatabaseDescriptor {
  #cache
  #queryText = '' // passed from `info` to `attributes` of the same call

  /** @param {boolean} isParametrised values are separate from the statement, so statements repeat and are worth caching */
  constructor (system, dialect, field, errorCode, isParametrised, startedAt = undefined) {
    super(system, errorCode)
    this.dialect = dialect
    this.field = field // with the statement
    this.startedAt = startedAt // returns the start of a call that is reported after it began
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
 * Describes calls whose payload names the operation.
 *
 * @typedef {object} StoreParts
 * @property {string} system db.system.name
 * @property {(call) => unknown} [what] reads the field that names the operation; one function per library, so that V8 caches the lookup
 * @property {(what: unknown) => string} [operation] returns the operation's name, if the field may hold anything
 * @property {(call) => unknown} [target] reads the collection or stored procedure
 * @property {string} [targetKey] the attribute of the target
 * @property {(call) => number} [batchSize]
 * @property {(call, operation: string, rule) => string} [operands] the part of db.query.text after the operation
 * @property {(operation: string) => object} [operandRule] which operands may be recorded
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
    } catch {} // reading a field threw
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

  /** The part of `db.query.text` after the operation, which is in `info.origin`. HOT */
  target (call, info) { return this.operands(call, info.origin, info.operandRule) }

  attributes (call) {
    if (this.batchSize === undefined) return null
    const batchSize = this.batchSize(call)
    return batchSize > 1 ? ['db.operation.batch.size', batchSize] : null
  }
}

const textOf = (value) => typeof value === 'string' ? value : ''
const nothing = () => ''
// A command that the user assembled may begin with anything.
const commandName = (command) => COMMAND_NAME.exec(textOf(command))?.[0].toUpperCase() ?? ''
/** @param {number} from the index of a command's first argument in `args` */
const redisArguments = (from) => (call, name, rule) => {
  try {
    const { args } = call
    return Array.isArray(args) ? recordedArguments(name, args, from, rule) : ''
  } catch {
    return ''
  }
}
const isAlone = (call) => text(call, 'batchMode') === ''
// The commands with which ioredis opens a connection; to a cluster, at the first command. It uses INFO to check that the server is ready.
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
// The first word of a Redis error is its kind: WRONGTYPE, NOAUTH, ERR.
const redisError = (error) => /^[A-Z][A-Z0-9]{1,31}(?= )/.exec(text(error, 'message'))?.[0] ?? ''
const mysqlError = (error) => label(error, 'errno').replace(/^-.*/, '') // a negative number is a socket error
const mssqlError = (error) => label(error, 'number')
const mongoError = (error) => {
  const code = read(error, 'code')
  return typeof code === 'number' ? String(code) : ''
}

const redis = { system: 'redis', errorCode: redisError, hasPeer: true }
const redisCommand = (from) => ({ ...redis, what: (call) => call.command, operation: commandName, operands: redisArguments(from), operandRule: (name) => commands.get(name) })
// A pipeline gets one span, not one for each command.
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
  batchSize: (call) => lengthOf(read(read(call, 'args'), 'ops')), // for bulkWrite; insertMany is one operation
  errorCode: mongoError
})

// PostgreSQL with pg: `traceClient` reports queries after pg has accepted them.
const reportedAt = (call) => call.startedAt
const pgQuery = postgresql('text', false, reportedAt)
const pgPreparedQuery = postgresql('text', true, reportedAt)

/** Describes the calls of the channel that a future pg will publish. https://github.com/brianc/node-postgres/pull/3650 */
const pgChannel = {
  hasSpoken: false, // whether this version of pg publishes its queries
  kind: KIND_CLIENT,
  errorCode: sqlStateOf,
  shouldTrace: () => { pgChannel.hasSpoken = true },
  info: (call) => pgQuery.info(pgCallOf(call)),
  attributes: () => pgQuery.attributes()
}

/** The payload for the descriptors, from a client and its query: a string, an object or a Cursor. */
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

// node:sqlite publishes a query when it has ended (Node 26.8 and later), with its values in the text.
let sqliteEndedAt = 0 // when the query that is being published ended

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

/** Channel -> call descriptor. In mysql2, `query` has its values in the text; `execute` has them separately. */
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
  'mongoose:cursor:next': mongo, // only if `outbound.channels` names it
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

/** knex's name of a client -> call descriptor. */
const KNEX = {
  pg: postgresql('sql', true),
  pgnative: postgresql('sql', true),
  cockroachdb: new SqlDescriptor('cockroachdb', DIALECTS.postgresql, 'sql', sqlStateOf, true),
  mysql: mysql('sql', true),
  sqlite3: new SqlDescriptor('sqlite', DIALECTS.sqlite, 'sql', nothing, true),
  'better-sqlite3': new SqlDescriptor('sqlite', DIALECTS.sqlite, 'sql', nothing, true),
  mssql: mssql('sql', true),
  oracledb: new SqlDescriptor('oracle.db', DIALECTS.postgresql, 'sql', (error) => label(error, 'errorNum'), true),
  // For unknown dialects: text in single or double quotes is a value.
  other: new SqlDescriptor('other_sql', DIALECTS.mysql, 'sql', nothing, true)
}

module.exports = { DATABASES, KNEX, pgQuery, pgPreparedQuery, pgCallOf, pgChannel, recordSqliteQuery }
