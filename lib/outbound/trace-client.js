'use strict'

// Clients that publish no channels, or too late: a MongoClient and a knex instance have events, pg has neither. `traceClient(pool)`
// makes spans of the queries of that one object: of pg its own `query`, or for a pool the `connect` by which every query gets its client. No prototype is touched.
//
// A pg that publishes `pg:query` is noticed at the first query, and left to its channel.

const { errorMonitor } = require('node:events')
const { optionInvalid, describeValue } = require('../config/errors')
const { now } = require('../span/clock')
const { activeContext, tracerIn, isSuppressed } = require('./calls')
const { fail } = require('./channels')
const { queryDescriptor, preparedDescriptor, channelSpoke } = require('./libraries/postgresql')
const { read, text } = require('./libraries/read')

const kTraced = Symbol.for('light-trace.traced')

/**
 * Traces the queries of a `Client` or `Pool` of pg, a `MongoClient` or a knex instance, wherever a request or a span of
 * yours is active; and has commands of ioredis that wait for the connection traced where they were sent.
 * @template C
 * @param {C} client
 * @returns {C} the same object; a second call changes nothing
 * @throws {LightTraceError} LT_ERR_OPTION_INVALID when it is none of these
 */
function traceClient (client) {
  const trace = tracerOf(client)
  if (trace === null) throw optionInvalid('traceClient(client)', 'a Client or a Pool of pg, a MongoClient, a knex instance or a client of ioredis', describeValue(client))
  if (client[kTraced] !== true) {
    trace(client)
    Object.defineProperty(client, kTraced, { value: true })
  }
  return client
}

function tracerOf (client) {
  if (isKnex(client)) return require('./trace-knex').traceKnex
  if (isMongoClient(client)) return require('./trace-mongodb').traceMongoClient
  if (isIoredis(client)) return traceIoredis
  return typeof read(client, 'query') === 'function' ? tracePg : null
}

function isKnex (client) {
  return typeof client === 'function' && typeof read(client, 'on') === 'function' && typeof read(client, 'raw') === 'function' &&
    read(read(client, 'client'), 'config') instanceof Object
}

/** A Redis or a Cluster. */
function isIoredis (client) {
  return typeof read(client, 'sendCommand') === 'function' && typeof read(client, 'status') === 'string' && typeof read(client, 'connect') === 'function'
}

function isMongoClient (client) {
  return client !== null && typeof client === 'object' && ['db', 'startSession', 'on'].every((name) => typeof read(client, name) === 'function')
}

function traceIoredis (client) {
  replace(client, 'sendCommand', require('./trace-ioredis').tracedSendCommand(client.sendCommand))
}

function tracePg (client) {
  if (typeof client.totalCount === 'number') replace(client, 'connect', tracedConnect(client.connect))
  else replace(client, 'query', tracedQuery(client.query))
}

/** On the object itself, out of sight, with the name and the length of what it stands for. */
function replace (client, name, value) {
  const original = client[name]
  Object.defineProperties(value, { name: { value: original.name }, length: { value: original.length } })
  Object.defineProperty(client, name, { value, configurable: true, writable: true, enumerable: false })
}

/** Hands out traced clients, each in the context of who waited for it: the queue of a pool loses that. */
function tracedConnect (connect) {
  return function (callback) {
    if (typeof callback !== 'function') {
      const result = Reflect.apply(connect, this, arguments)
      return typeof result?.then === 'function' ? result.then(traced) : result
    }
    const inContext = bound(callback)
    return Reflect.apply(connect, this, [function (error, client, ...rest) {
      return Reflect.apply(inContext, this, [error, traced(client), ...rest])
    }])
  }
}

function traced (client) {
  return typeof read(client, 'query') === 'function' && Object.isExtensible(client) ? traceClient(client) : client
}

function tracedQuery (query) {
  return function (config, values, callback) {
    const context = activeContext()
    const tracer = tracerIn(context)
    if (tracer === null || channelSpoke() || isSuppressed(context)) return Reflect.apply(query, this, arguments)
    const activeCall = new Query(this, config, values)
    const args = withEnd(activeCall, Array.from(arguments))
    const result = Reflect.apply(query, this, args)
    if (channelSpoke()) return result
    activeCall.start(tracer, context)
    if (typeof config?.submit === 'function') return result
    if (typeof result?.then !== 'function') return result
    // Not a branch of its own: a rejection that nobody handles must stay one, and one that is handled too.
    return result.then((value) => { activeCall.end(); return value }, (error) => { activeCall.end(error); throw error })
  }
}

/** One query. It is reported after pg has taken it, with the time at which it began. */
class Query {
  #span = null
  #callDescriptor
  #isOver = false

  constructor (client, config, values) {
    this.startedAt = now()
    this.text = typeof config === 'string' ? config : text(config, 'text') || text(read(config, 'cursor'), 'text')
    this.database = text(client, 'database')
    this.serverAddress = text(client, 'host')
    this.serverPort = read(client, 'port')
    // With the values apart the same text comes again and is worth remembering.
    this.#callDescriptor = Array.isArray(values) || Array.isArray(read(config, 'values')) ? preparedDescriptor : queryDescriptor
  }

  start (tracer, context) {
    if (this.#isOver) return
    this.#span = tracer.startCall(this.#callDescriptor, this, context)
  }

  end (...failure) {
    if (this.#isOver) return
    this.#isOver = true
    const span = this.#span
    if (span === null) return
    if (failure.length !== 0 && failure[0] !== null && failure[0] !== undefined && span.isRecording()) fail(span, this.#callDescriptor, failure[0])
    span.end()
  }
}

/** The arguments of a query, with its end noticed by whichever form it has. */
function withEnd (activeCall, args) {
  const [config] = args
  const at = args.findIndex((argument, index) => index > 0 && typeof argument === 'function')
  if (at !== -1) args[at] = ending(activeCall, args[at])
  if (typeof config?.submit === 'function') {
    watch(activeCall, config, at === -1)
  } else if (typeof read(config, 'callback') === 'function') {
    args[0] = Object.create(config, { callback: { value: ending(activeCall, config.callback), enumerable: true, writable: true, configurable: true } })
  }
  return args
}

/** A Query, a Cursor or a QueryStream that the user has made. */
function watch (activeCall, query, ownsCallback) {
  if (ownsCallback && typeof query.callback === 'function') query.callback = ending(activeCall, query.callback)
  if (typeof query.on !== 'function') return
  query.on('end', () => activeCall.end())
  query.on('close', () => activeCall.end())
  query.on(errorMonitor, (error) => activeCall.end(error))
}

function ending (activeCall, callback) {
  const inContext = bound(callback)
  return function (error, ...rest) {
    activeCall.end(error)
    return Reflect.apply(inContext, this, [error, ...rest])
  }
}

/** `callback` in the context that is active now: pg calls it in that of the connection. */
function bound (callback) {
  const context = activeContext()
  const tracer = tracerIn(context)
  if (tracer === null) return callback
  const { contextManager } = tracer
  return function (...args) {
    return contextManager.with(context, callback, this, ...args)
  }
}

module.exports = { traceClient }
