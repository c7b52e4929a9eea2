'use strict'

// Traces the calls of an app's requests as CLIENT spans. It subscribes to diagnostics channels from the app's start to its end.
//
// A call descriptor defines the name and attributes of a call; calls.js creates its span:
//
//   { kind, name (call), attributes (call) -> flat list, shouldTrace? (call) -> false if it has no span,
//     errorCode? (error), started? (span, call, tracer, context), result? (span, call), ended? (span, call) }

const { knownMethods } = require('../http/conventions.js')
const { subscribe, onMessage } = require('../runtime/process-state.js')
const { setAttributes } = require('../span/attributes.js')
const { setImmediate } = require('../runtime/timers.js')
const { adapterOf, carrierOf, poolWaitOf } = require('./calls.js')
const { httpSubscribers } = require('./http.js')
const { undiciSubscribers } = require('./undici.js')

/** The call descriptors. They are loaded at the first traced call of a library, because there are many and an app uses few. */
const { hasCalls, calls: tables } = require('../features.js')

const LIBRARIES = [
  'mysql2:query', 'mysql2:execute',
  'node-redis:command', 'node-redis:batch',
  'ioredis:command', 'ioredis:batch',
  'mongoose:query', 'mongoose:aggregate', 'mongoose:model:save', 'mongoose:model:insertMany', 'mongoose:model:bulkWrite',
  'mssql:query', 'mssql:batch', 'mssql:prepared-statement:execute', 'mssql:execute', 'mssql:bulk',
  'pg:query',
  'graphql:execute',
  'plt:kafka:producer:sends'
]

// Subscribed to only if `outbound.channels` names them: one span per field or document is too many.
const ON_REQUEST = ['graphql:parse', 'graphql:validate', 'graphql:subscribe', 'graphql:resolve', 'mongoose:cursor:next']

// Channels whose calls are always published by Node's `tracePromise`.
const PROMISED = ['node-redis:command', 'node-redis:batch', 'ioredis:command', 'ioredis:batch']

const ATTRIBUTES_MAX = 1024 // of a user's channel; the span's own limit applies later

const OTHER_SUBSCRIBERS = [
  ['tracing:plt:kafka:consumer:receives:asyncStart', onMessage((call) => tables().recordKafkaMessage(call))],
  ['sqlite.db.query', onMessage((call) => tables().recordSqliteQuery(call))],
  // A request that waits for a connection of mysql2's pool continues when another request releases one, in that request's context.
  ...carrierOf('mysql2:pool:connect'),
  ...poolWaitOf('mysql2:pool:connect', 'mysql'),
  ...poolWaitOf('mssql:pool:acquire', 'microsoft.sql_server')
]

// Libraries that publish no channels and are traced only with `traceClient`, each with a library that loads it internally, or that is
// traced in its place. Which libraries are loaded is read from Node's module cache; nothing is patched.
const PACKAGE = /[\\/]node_modules[\\/](pg|knex|mongodb|postgres|mysql2|mongoose)[\\/]/
const USED_BY = { pg: 'knex', knex: 'mysql2', mongodb: 'mongoose', postgres: '' }
const settledKinds = new Set() // traced or reported already, so that no other application of the process reports them again

/** The outbound settings of one app, which subscribers read for each call of its requests. */
class Outbound {
  #callDescriptors = new Map() // channel -> call descriptor, or null until it is loaded from the tables
  #withDocuments

  constructor ({ outbound, disabled, knownMethods: override }, report) {
    this.http = outbound.http
    this.undici = outbound.undici
    this.libraries = outbound.libraries && !disabled && hasCalls
    this.propagateTo = outbound.propagateTo
    this.knownMethods = knownMethods(override)
    this.#withDocuments = outbound.graphqlDocuments
    /** @type {Report} */ this.report = report
    if (this.libraries) for (const channel of LIBRARIES) this.#callDescriptors.set(channel, null)
    for (const [name, options] of Object.entries(disabled ? {} : outbound.channels)) {
      const isBare = options.attributes === null && options.name === name
      const isKnown = hasCalls && (LIBRARIES.includes(name) || ON_REQUEST.includes(name))
      this.#callDescriptors.set(name, isKnown && isBare ? null : userDescriptor(name, options, report))
    }
  }

  /** The call descriptor of a TracingChannel; undefined if this app does not trace it. HOT */
  callDescriptorOf (channel) {
    let found = this.#callDescriptors.get(channel)
    if (found === null) {
      const { CALL_DESCRIPTORS, WITH_DOCUMENTS } = tables()
      found = (this.#withDocuments ? WITH_DOCUMENTS[channel] : undefined) ?? CALL_DESCRIPTORS[channel]
      this.#callDescriptors.set(channel, found)
    }
    return found
  }

  /** Called at the first request, when the application has loaded its libraries. */
  reportUntraced () {
    if (this.libraries) setImmediate(reportUntraced, this.report)
  }

  /** All subscribers that this app needs. */
  subscribers () {
    const subscribers = this.libraries ? [...OTHER_SUBSCRIBERS] : []
    for (const name of this.#callDescriptors.keys()) subscribers.push(...adapterOf(name, PROMISED.includes(name)))
    if (this.http) subscribers.push(...httpSubscribers)
    if (this.undici) subscribers.push(...undiciSubscribers)
    return subscribers
  }
}

/** @returns {string[]} the libraries that this call has logged, which the viewer's preload shows */
function reportUntraced (report) {
  const loaded = new Set(Object.keys(require.cache ?? {}).map((file) => PACKAGE.exec(file)?.[1]))
  const names = Object.keys(USED_BY).filter((name) => loaded.has(name) && !settledKinds.has(name) && !loaded.has(USED_BY[name]))
  for (const name of names) settledKinds.add(name)
  if (names.length > 0) {
    report.info(`the calls of ${names.join(', ')} are not traced: pass the client or pool to lightTrace.traceClient() once, see docs/outbound.md`)
  }
  return names
}

/** The call descriptor of a user's channel. Its name and attributes may be functions of the user's, which may throw. */
function userDescriptor (channel, { kind, name, attributes }, report) {
  const valueOf = (part, given, call) => {
    if (typeof given !== 'function') return given
    const what = `the function ${part} of outbound.channels['${channel}'] failed; what it should have returned is missing on the span`
    return report.attempt('LT_WARN_CALLBACK', what, () => given(call))
  }
  return {
    kind,
    name (call) {
      const given = valueOf('name', name, call)
      return typeof given === 'string' && given !== '' ? given : channel
    },
    attributes (call) {
      const list = []
      setAttributes(list, valueOf('attributes', attributes, call), ATTRIBUTES_MAX, Infinity)
      return list
    }
  }
}

// Unsubscribes for applications that were garbage collected without being closed.
const forgotten = new FinalizationRegistry((/** @type {() => void} */ unsubscribe) => unsubscribe())

/** Subscribes for the tracer's app, and returns the function that unsubscribes. */
function openOutbound (tracer) {
  tracer.outbound = new Outbound(tracer.settings, tracer.report)
  const unsubscribe = subscribe(tracer.outbound.subscribers())
  forgotten.register(tracer, unsubscribe)
  return unsubscribe
}

module.exports = { openOutbound, settledKinds, reportUntraced, LIBRARIES, ON_REQUEST }
