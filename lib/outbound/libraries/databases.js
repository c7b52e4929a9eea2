'use strict'

// Databases that publish channels, as data: where in a call's payload which part of the conventions is found.
// https://opentelemetry.io/docs/specs/semconv/database/database-spans/

const { CallInfo } = require('../../span/call-info')
const { cut } = require('../../span/attributes')
const { KIND_CLIENT } = require('../calls')
const { sanitise, DIALECTS } = require('./statement')
const { recordedArguments, ruleOf } = require('./redis-keys')
const { read, text, label, pushServer, pushPeer, pushText, lengthOf } = require('./read')

const CACHED_MAX = 256
const CACHED_LENGTH_MAX = 1024
const SHARED_LENGTH_MAX = 255
const RECENT_MAX = 32 // more commands, or operations and collections, than most apps use; compared one by one

const COMMAND_NAME = /^[a-z][a-z0-9._-]{0,63}$/i

/** SQL in a field of the payload. */
class SqlDescriptor {
  #cache
  #last = null
  #lastCall = null

  /**
   * @param {string} system db.system.name
   * @param {object} dialect
   * @param {string} field that holds the statement
   * @param {(error) => string} errorCode db.response.status_code
   * @param {boolean} isParametrised its values are apart, so the same statement comes again
   */
  constructor (system, dialect, field, errorCode, isParametrised) {
    this.kind = KIND_CLIENT
    this.system = system
    this.dialect = dialect
    this.field = field
    this.errorCode = errorCode
    this.#cache = isParametrised ? new Map() : null
  }

  shouldTrace () { return true }

  name (call) {
    const { summary } = this.#statement(call)
    if (summary !== '') return summary
    return text(call, 'database') || this.system
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

  /** Asked for the name first and the attributes next, and read once. */
  #statement (call) {
    if (this.#lastCall !== call) {
      this.#last = this.#sanitised(text(call, this.field))
      this.#lastCall = call
    }
    return this.#last
  }

  #sanitised (statement) {
    const cache = statement.length > CACHED_LENGTH_MAX ? null : this.#cache
    let found = cache?.get(statement)
    if (found === undefined) {
      found = sanitise(statement, this.dialect)
      if (cache !== null) {
        if (cache.size === CACHED_MAX) cache.clear()
        cache.set(statement, found)
      }
    }
    return found
  }
}

/** A store whose payload names the operation. Each part is a function of the call, or undefined. */
class StoreDescriptor {
  #known = new Map() // what it says of itself → CallInfo
  #seen = []

  constructor ({ system, operation, collection, procedure, operands, operandRule, namespace, batchSize, errorCode, shouldTrace, pushPeer }) {
    this.kind = KIND_CLIENT
    this.system = system
    this.operation = operation
    this.collection = collection
    this.procedure = procedure
    this.operands = operands
    this.operandRule = operandRule
    this.namespace = namespace
    this.batchSize = batchSize
    this.errorCode = errorCode
    this.pushPeer = pushPeer
    this.shouldTrace = shouldTrace ?? (() => true)
  }

  /** What calls of one operation to one server share. HOT */
  info (call) {
    const found = this.#recent(call)
    if (found !== null) return found
    const operation = this.operation(call)
    const target = this.collection === undefined ? (this.procedure === undefined ? '' : this.procedure(call)) : this.collection(call)
    const namespace = this.namespace === undefined ? '' : this.namespace(call)
    const key = `${operation}\n${target}\n${namespace}\n${text(call, 'serverAddress')}\n${label(call, 'serverPort')}`
    const info = this.#known.get(key) ?? this.#add(key, call, operation, target, namespace)
    this.#remember(call, info)
    return info
  }

  // By the fields as they are: what the calls of the last moment were about, without making a text of it.
  #recent (call) {
    try {
      const { command, operation, collection, database, serverAddress, serverPort } = call
      const recent = this.#seen
      for (let i = 0; i < recent.length; i++) {
        const seen = recent[i]
        if (seen.command === command && seen.serverPort === serverPort && seen.serverAddress === serverAddress &&
          seen.database === database && seen.operation === operation && seen.collection === collection) {
          return seen.info
        }
      }
    } catch {
      // A field throws when it is read: the way below reads each by itself.
    }
    return null
  }

  #remember (call, info) {
    if (this.procedure !== undefined || read(call, 'table') !== undefined || read(call, 'batchMode') !== undefined) return
    if (this.#seen.length === RECENT_MAX) this.#seen.shift()
    this.#seen.push({
      command: read(call, 'command'),
      operation: read(call, 'operation'),
      collection: read(call, 'collection'),
      database: read(call, 'database'),
      serverAddress: read(call, 'serverAddress'),
      serverPort: read(call, 'serverPort'),
      info
    })
  }

  #add (key, call, operation, target, namespace) {
    const list = ['db.system.name', this.system]
    pushText(list, 'db.namespace', namespace)
    pushText(list, 'db.operation.name', operation)
    pushText(list, this.collection === undefined ? 'db.stored_procedure.name' : 'db.collection.name', target)
    pushServer(list, call)
    if (this.pushPeer !== undefined) this.pushPeer(list, call)
    for (let i = 1; i < list.length; i += 2) if (typeof list[i] === 'string') list[i] = cut(list[i], SHARED_LENGTH_MAX)
    const name = [operation, target].filter((part) => part !== '').join(' ')
    const origin = this.operands === undefined ? '' : operation
    const info = new CallInfo(this.kind, cut(name, SHARED_LENGTH_MAX) || this.system, list, origin, 'db.query.text')
    if (origin !== '') info.operandRule = this.operandRule(operation)
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
// Whoever calls by hand may put anything in the command's place.
const command = (call) => {
  const name = text(call, 'command')
  return COMMAND_NAME.test(name) ? name.toUpperCase() : ''
}
/** @param {number} from where a command's arguments begin in `args` */
const redisArguments = (from) => (call, name, rule) => {
  try {
    const { args } = call
    return Array.isArray(args) ? recordedArguments(name, args, from, rule) : ''
  } catch {
    return ''
  }
}
const batchMode = (call) => text(call, 'batchMode')
// Not by `read`: one place that reads all fields of all libraries' objects is slower than this one.
const isAlone = (call) => {
  try {
    const { batchMode } = call
    return typeof batchMode !== 'string' || batchMode === ''
  } catch {
    return true
  }
}
const batchSize = (call) => Number(label(call, 'batchSize')) || 0
// Redis says what kind of error it is in the first word: WRONGTYPE, NOAUTH, ERR.
const redisError = (error) => /^[A-Z][A-Z0-9]{1,31}(?= )/.exec(text(error, 'message'))?.[0] ?? ''
const mysqlError = (error) => label(error, 'errno').replace(/^-.*/, '') // a negative one is the socket's
const mssqlError = (error) => label(error, 'number')
const mongoError = (error) => {
  const code = read(error, 'code')
  return typeof code === 'number' ? String(code) : ''
}

const redis = { system: 'redis', namespace: database, errorCode: redisError, pushPeer }
const redisBatch = { ...redis, operation: batchMode, batchSize }

const mssql = (field, isParametrised) => new SqlDescriptor('microsoft.sql_server', DIALECTS.mssql, field, mssqlError, isParametrised)
const mysql = (isParametrised) => new SqlDescriptor('mysql', DIALECTS.mysql, 'query', mysqlError, isParametrised)

const mongo = new StoreDescriptor({
  system: 'mongodb',
  operation: (call) => text(call, 'operation'),
  collection: (call) => text(call, 'collection'),
  namespace: database,
  batchSize: (call) => lengthOf(read(read(call, 'args'), 'ops')), // of bulkWrite: insertMany is one operation
  errorCode: mongoError
})

/** Channel → callDescriptor. What is in `query` has its values inlined; `execute` has them apart. */
const DATABASES = {
  'mysql2:query': mysql(false),
  'mysql2:execute': mysql(true),
  // A pipeline is one span, not one for each of its commands.
  'node-redis:command': new StoreDescriptor({ ...redis, operation: command, operands: redisArguments(1), operandRule: ruleOf, shouldTrace: isAlone }),
  'node-redis:batch': new StoreDescriptor(redisBatch),
  'ioredis:command': new StoreDescriptor({ ...redis, operation: command, operands: redisArguments(0), operandRule: ruleOf }),
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
  'mssql:execute': new StoreDescriptor({ system: 'microsoft.sql_server', operation: () => 'EXECUTE', procedure: (call) => text(call, 'procedure'), errorCode: mssqlError }),
  'mssql:bulk': new StoreDescriptor({ system: 'microsoft.sql_server', operation: () => 'BULK INSERT', collection: (call) => text(call, 'table'), errorCode: mssqlError })
}

module.exports = { DATABASES, SqlDescriptor, StoreDescriptor }
