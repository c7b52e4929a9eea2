'use strict'

// `traceClient(client)`: traces clients that publish no channels, or publish too late. It changes only the client, never a prototype.
//
//   knex, MongoClient   emit events, from which spans are created
//   ioredis             publishes channels; we keep the context of commands that wait for the connection
//   pg                  has neither: we replace `query`, or the `connect` of a pool, through which every query gets its client
//   postgres            is a function, which cannot be replaced: we return a Proxy, and replace the `handler` of each query

const { AsyncResource } = require('node:async_hooks')
const { errorMonitor } = require('node:events')
const { optionInvalid, describeValue } = require('../config/checks.js')
const { guarded } = require('../runtime/process-state.js')
const { now } = require('../runtime/timers.js')
const { activeContext, tracerIn, placeOfCall, fail, PoolWait, recordWait } = require('../outbound/calls.js')
const { settledKinds } = require('../outbound/index.js')
const { DATABASES, KNEX, pgQuery, pgPreparedQuery, pgCallOf, pgChannel } = require('./libraries/databases.js')
const { read, text, label } = require('./libraries/read.js')

const kTraced = Symbol.for('light-trace.traced')

// Of one client. Calls whose end is never published must not stay in memory forever.
const PENDING_MAX = 10_000

/**
 * Traces the queries of a `Client` or `Pool` of pg, a `MongoClient`, a knex instance or a `sql` of postgres while a request or one of
 * your spans is active. For ioredis, commands that wait for the connection are traced in the context that sent them.
 * @template C
 * @param {C} client
 * @returns {C} the same object, or for postgres a `sql` that replaces it; a second call changes nothing
 * @throws {LightTraceError} LT_ERR_OPTION_INVALID for any other value
 */
function traceClient (client) {
  const tracing = tracingOf(client)
  if (tracing === null) {
    throw optionInvalid('traceClient(client)', 'a Client or a Pool of pg, a MongoClient, a knex instance, a client of ioredis or a sql of postgres', describeValue(client))
  }
  settledKinds.add(tracing.library)
  if (client[kTraced] === undefined) Object.defineProperty(client, kTraced, { value: tracing.trace(client) ?? true })
  return client[kTraced] === true ? client : client[kTraced]
}

/** How a client is traced; null if its kind is unknown. */
function tracingOf (client) {
  const has = (...methods) => methods.every((name) => typeof read(client, name) === 'function')
  if (typeof client === 'function' && has('on', 'raw') && read(read(client, 'client'), 'config') instanceof Object) return { library: 'knex', trace: traceKnex }
  if (typeof client === 'function' && has('unsafe', 'begin', 'reserve')) return { library: 'postgres', trace: tracePostgres }
  if (typeof client === 'object' && has('db', 'startSession', 'on')) return { library: 'mongodb', trace: traceMongoClient }
  if (has('sendCommand', 'connect') && typeof read(client, 'status') === 'string') return { library: 'ioredis', trace: traceIoredis }
  return has('query') ? { library: 'pg', trace: tracePg } : null
}

/** One call. It ends only once, and may end before it is started here. */
class Call {
  #span = null
  isOver = false

  constructor (callDescriptor, call) {
    this.callDescriptor = callDescriptor
    this.call = call // input of the call descriptor
  }

  start ({ tracer, context }) {
    if (!this.isOver) this.#span = tracer.startCall(this.callDescriptor, this.call, context)
  }

  end (error = null) {
    if (this.isOver) return
    this.isOver = true
    if (error !== null && this.#span?.isRecording()) fail(this.#span, this.callDescriptor, error)
    this.#span?.end()
  }
}

/** The calls of a client that emits one event at the start of a call and another at its end, with the same id. */
function eventCalls (callDescriptor) {
  const calls = new Map() // id -> Call
  const end = (id, error = undefined) => {
    calls.get(id)?.end(error)
    calls.delete(id)
  }
  /** @param {() => object} describe creates the input of the call descriptor */
  const start = (id, describe) => {
    const place = placeOfCall(activeContext())
    if (place === null) return
    if (calls.size >= PENDING_MAX) end(calls.keys().next().value)
    const call = new Call(callDescriptor, describe())
    call.start(place)
    calls.set(id, call)
  }
  return { start, end }
}

// knex. Its events are emitted in the context of the code that awaits the query. Streams and the statements of a transaction emit only
// a start event, so they get no span.

function traceKnex (knex) {
  // If the dialect is a custom class, the last two names say its kind.
  const names = [text(knex.client.config, 'client'), text(knex.client, 'driverName'), text(knex.client, 'dialect')]
  const callDescriptor = KNEX[names.find((name) => Object.hasOwn(KNEX, name)) ?? 'other']
  watchTarn(read(knex.client, 'pool'), callDescriptor.system)
  if (names.includes('mysql2')) return // it publishes channels, from which its calls get spans
  const calls = eventCalls(callDescriptor)
  const idOf = (query) => text(query, '__knexQueryUid')
  knex.on('query', guarded((query) => {
    if (idOf(query) === '' || !('queryContext' in query)) return
    const settings = read(knex.client, 'connectionSettings')
    calls.start(idOf(query), () => ({
      sql: text(query, 'sql'),
      database: text(settings, 'database') || text(settings, 'filename'),
      serverAddress: text(settings, 'host') || text(settings, 'server'),
      serverPort: read(settings, 'port')
    }))
  }))
  knex.on('query-response', guarded((response, query) => calls.end(idOf(query))))
  knex.on('query-error', guarded((error, query) => calls.end(idOf(query), error ?? {})))
}

/** Records the waits for knex's pool. Its events are emitted in the context of the code that waits, with an id for each wait. */
function watchTarn (pool, system) {
  if (typeof pool?.on !== 'function') return
  const waits = new Map() // id -> PoolWait
  const end = guarded((id, error) => {
    waits.get(id)?.end(system, error)
    waits.delete(id)
  })
  pool.on('acquireRequest', guarded((id) => { if (waits.size < PENDING_MAX) waits.set(id, new PoolWait()) }))
  pool.on('acquireSuccess', (id) => end(id))
  pool.on('acquireFail', end)
}

// MongoDB, through the driver's command monitoring. `monitorCommands` must be set before the client connects.
// https://github.com/mongodb/specifications/blob/master/source/command-logging-and-monitoring/command-logging-and-monitoring.md

// Commands that manage the connection.
const NOT_TRACED = new Set(['hello', 'ismaster', 'isMaster', 'saslStart', 'saslContinue', 'authenticate', 'endSessions', 'ping'])

// The field that holds the statements of a command. Several statements are a batch; many documents in one insert are not.
const STATEMENTS = { update: 'updates', delete: 'deletes', bulkWrite: 'ops' }

const GIVEN_UP = { name: 'MongoWaitQueueTimeoutError' } // the driver emits the event before it creates this error

function traceMongoClient (client) {
  client.monitorCommands = true
  // Like mongoose's calls: operation, collection and database, but no document.
  const calls = eventCalls(DATABASES['mongoose:query'])
  const idOf = (event) => read(event, 'requestId')
  // The pool's events name the connection and the duration of the wait, but are emitted in an arbitrary context. The first command on the
  // connection is in the context that waited.
  const waits = new Map() // connection -> when the wait began
  const open = [] // unfinished PoolWaits: the pool serves them in order
  const connectionOf = (event) => `${label(event, 'address')} ${label(event, 'connectionId')}`
  client.on('connectionCheckOutStarted', guarded(() => { if (open.length < PENDING_MAX) open.push(new PoolWait()) }))
  client.on('connectionCheckedOut', guarded((event) => {
    const waitedMs = read(event, 'durationMS')
    if (open.shift()?.isOfThisTurn !== true && waitedMs > 0) waits.set(connectionOf(event), now() - waitedMs)
  }))
  // Only a timeout is emitted in the context of the code that waited. Other reasons are emitted in an arbitrary context.
  client.on('connectionCheckOutFailed', guarded((event) => {
    open.shift()
    if (read(event, 'reason') === 'timeout') recordWait(activeContext(), now() - read(event, 'durationMS'), 'mongodb', GIVEN_UP)
  }))
  client.on('connectionCheckedIn', guarded((event) => { if (waits.size > 0) waits.delete(connectionOf(event)) }))
  client.on('commandStarted', guarded((event) => {
    const waited = waits.size === 0 ? undefined : waits.get(connectionOf(event))
    if (waited !== undefined) {
      waits.delete(connectionOf(event))
      recordWait(activeContext(), waited, 'mongodb')
    }
    if (!NOT_TRACED.has(text(event, 'commandName'))) calls.start(idOf(event), () => mongoCallOf(event))
  }))
  client.on('commandSucceeded', guarded((event) => calls.end(idOf(event))))
  client.on('commandFailed', guarded((event) => calls.end(idOf(event), read(event, 'failure') ?? {})))
}

function mongoCallOf (event) {
  const operation = text(event, 'commandName')
  const command = read(event, 'command')
  const address = text(event, 'address')
  const colon = address.lastIndexOf(':')
  const hasPort = colon !== -1 && !address.startsWith('/')
  return {
    operation,
    // The collection is in the field named after the command. For `getMore`, that field is the cursor's id.
    collection: text(command, operation) || text(command, 'collection'),
    database: label(event, 'databaseName'),
    serverAddress: hasPort ? address.slice(0, colon).replaceAll(/[[\]]/g, '') : address,
    serverPort: hasPort ? address.slice(colon + 1) : undefined,
    args: { ops: read(command, STATEMENTS[operation]) }
  }
}

// ioredis. A command is published when it is written. If it waited for the connection, that is in the context that opened the connection.
// So we remember its own context in `sendCommand`, which ioredis calls again for each waiting command.

const waiting = new WeakMap() // command -> context of the code that sent it

function traceIoredis (client) {
  const { sendCommand } = client
  replace(client, 'sendCommand', function (command) {
    if (this.status === 'ready' && !waiting.has(command)) return Reflect.apply(sendCommand, this, arguments)
    const context = waiting.get(command)
    const tracer = tracerIn(context)
    if (tracer !== null) return tracer.contextManager.with(context, sendCommand, this, ...arguments)
    const sender = activeContext()
    if (sender !== undefined && command !== null && typeof command === 'object') waiting.set(command, sender)
    return Reflect.apply(sendCommand, this, arguments)
  })
}

// PostgreSQL. If pg publishes `pg:query`, we notice that at the first query and then use only the channel.

function tracePg (client) {
  if (typeof client.totalCount === 'number') replace(client, 'connect', tracedConnect(client.connect))
  else replace(client, 'query', tracedQuery(client.query))
}

/** Replaces a method on the object itself: not enumerable, and with the name and length of the original. */
function replace (client, name, value) {
  const original = client[name]
  Object.defineProperties(value, { name: { value: original.name }, length: { value: original.length } })
  Object.defineProperty(client, name, { value, configurable: true, writable: true, enumerable: false })
}

/** A `connect` that returns traced clients, in the context of the code that waited for them: the pool's queue loses that context. */
function tracedConnect (connect) {
  return function (callback) {
    const wait = new PoolWait()
    const over = (error = undefined) => wait.end('postgresql', error)
    if (typeof callback !== 'function') {
      const result = Reflect.apply(connect, this, arguments)
      if (typeof result?.then !== 'function') return result
      return result.then((client) => { over(); return traced(client) }, (error) => { over(error); throw error })
    }
    const inContext = AsyncResource.bind(callback)
    return Reflect.apply(connect, this, [function (error, client, ...rest) {
      over(error)
      return Reflect.apply(inContext, this, [error, traced(client), ...rest])
    }])
  }
}

function traced (client) {
  return typeof read(client, 'query') === 'function' && Object.isExtensible(client) ? traceClient(client) : client
}

function tracedQuery (query) {
  return function (config, values, callback) {
    if (pgChannel.hasSpoken) return Reflect.apply(query, this, arguments)
    const place = placeOfCall(activeContext())
    if (place === null) {
      return Reflect.apply(query, this, Array.from(arguments, (argument) => typeof argument === 'function' ? AsyncResource.bind(argument) : argument))
    }
    const isPrepared = Array.isArray(values) || Array.isArray(read(config, 'values'))
    const activeCall = new Call(isPrepared ? pgPreparedQuery : pgQuery, { startedAt: now(), ...pgCallOf({ query: config, client: this }) })
    const args = withEnd(activeCall, Array.from(arguments))
    const result = Reflect.apply(query, this, args)
    if (pgChannel.hasSpoken) return result
    activeCall.start(place) // after pg has accepted the query, but with its real start time
    if (typeof config?.submit === 'function' || typeof result?.then !== 'function') return result
    // Not a separate branch of the promise: an unhandled rejection must stay unhandled, and a handled one must stay handled.
    return result.then((value) => { activeCall.end(); return value }, (error) => { activeCall.end(error); throw error })
  }
}

/** Changes the arguments of a query so that its end is noticed. */
function withEnd (activeCall, args) {
  const [config] = args
  const at = args.findIndex((argument, index) => index > 0 && typeof argument === 'function')
  if (at !== -1) args[at] = ending(activeCall, args[at])
  if (typeof config?.submit === 'function') { // a Query, Cursor or QueryStream object of the user
    if (at === -1 && typeof config.callback === 'function') config.callback = ending(activeCall, config.callback)
    if (typeof config.on !== 'function') return args
    for (const event of ['end', 'close']) config.on(event, () => activeCall.end())
    config.on(errorMonitor, (error) => activeCall.end(error))
  } else if (typeof read(config, 'callback') === 'function') {
    args[0] = Object.create(config, { callback: { value: ending(activeCall, config.callback), enumerable: true, writable: true, configurable: true } })
  }
  return args
}

// pg calls the callback in the context that opened the connection.
function ending (activeCall, callback) {
  const inContext = AsyncResource.bind(callback)
  return function (error, ...rest) {
    activeCall.end(error)
    return Reflect.apply(inContext, this, [error, ...rest])
  }
}

// postgres. A query's own `handler` sends it, in the context of the code that awaits it. Its `resolve` or `reject` settles it.

function tracePostgres (sql) {
  const { database, host, port } = sql.options
  return postgresClient(sql, { database, serverAddress: [host].flat()[0], serverPort: [port].flat()[0] })
}

function postgresClient (sql, server) {
  const query = (made) => {
    if (typeof made?.handler === 'function' && typeof made.handle === 'function') made.handler = postgresHandler(made, made.handler, server)
    return made
  }
  // The callback of a transaction or a savepoint gets a client too.
  const inner = (fn) => typeof fn === 'function' ? (client) => fn(postgresClient(client, server)) : fn
  return new Proxy(sql, {
    apply: (target, self, args) => query(Reflect.apply(target, self, args)),
    get (target, key) {
      const value = target[key]
      if (typeof value !== 'function') return value
      if (key === 'unsafe' || key === 'file') return (...args) => query(value(...args))
      if (key === 'begin' || key === 'savepoint') return (...args) => value(...args.map(inner))
      return key === 'reserve' ? async () => postgresClient(await value(), server) : value
    }
  })
}

function postgresHandler (query, handler, server) {
  return function (...args) {
    const place = placeOfCall(activeContext())
    if (place !== null) watchPostgres(query, new Call(query.tagged ? pgPreparedQuery : pgQuery, { startedAt: now(), ...server }), place)
    return handler(...args)
  }
}

/** Creates the span when the query has ended, because postgres builds the query text only when it sends it. */
function watchPostgres (query, activeCall, place) {
  for (const name of ['resolve', 'reject']) {
    let settle = query[name]
    const settled = (value) => {
      activeCall.call.text = text(query, 'string')
      activeCall.start(place)
      activeCall.end(name === 'reject' ? value : null)
      return settle(value)
    }
    // A cursor sets a new function for each of its steps.
    Object.defineProperty(query, name, { get: () => settled, set: (next) => { settle = next }, enumerable: true, configurable: true })
  }
}

module.exports = { traceClient }
