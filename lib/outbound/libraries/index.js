'use strict'

// The libraries that publish channels themselves: which channel means what. A callDescriptor says how a call is named
// and described; channel-adapter.js does the rest.
//
//   callDescriptor = { kind, shouldTrace (call), name (call), attributes (call) -> flat list,
//           errorCode? (error), started? (span, call, tracer, context), result? (span, call), ended? (span, call) }
//
// Rows are many and an app uses few: their file is required when one of its channels speaks for the first
// time. That is when the library connects, for most; until then the channel's name is all there is.

const { guarded, bug } = require('../../runtime/subscriptions')
const { adapterOf } = require('../channels')
const { poolSubscribers } = require('./mysql-pool')

const databases = () => require('./databases').DATABASES
const postgresql = () => require('./postgresql').POSTGRESQL
const graphql = () => require('./graphql').GRAPHQL
const kafka = () => require('./kafka')
const sqlite = () => require('./sqlite')

/** Channel -> a function that gets its callDescriptor. */
const LIBRARIES = new Map([
  ...rowsOf(databases, [
    'mysql2:query', 'mysql2:execute',
    'node-redis:command', 'node-redis:batch',
    'ioredis:command', 'ioredis:batch',
    'mongoose:query', 'mongoose:aggregate', 'mongoose:model:save', 'mongoose:model:insertMany', 'mongoose:model:bulkWrite',
    'mssql:query', 'mssql:batch', 'mssql:prepared-statement:execute', 'mssql:execute', 'mssql:bulk'
  ]),
  ...rowsOf(postgresql, ['pg:query']),
  ...rowsOf(graphql, ['graphql:execute']),
  ...rowsOf(() => kafka().KAFKA, ['plt:kafka:producer:sends'])
])

// Known, but listened to only when `outbound.channels` names them: one span per field or document is too many.
const ON_REQUEST = new Map([
  ...rowsOf(graphql, ['graphql:parse', 'graphql:validate', 'graphql:subscribe', 'graphql:resolve']),
  ...rowsOf(databases, ['mongoose:cursor:next'])
])

// With `outbound.graphqlDocuments`.
const WITH_DOCUMENTS = new Map(rowsOf(() => require('./graphql').WITH_DOCUMENTS, ['graphql:execute', 'graphql:subscribe']))
const KNOWN = new Set([...LIBRARIES.values(), ...ON_REQUEST.values()])

// Whose every call is made by Node's `tracePromise`: see ../channels.js.
const PROMISED = new Set(['node-redis:command', 'node-redis:batch', 'ioredis:command', 'ioredis:batch'])

// What is no TracingChannel of calls.
const OTHER_SUBSCRIBERS = [
  ['tracing:plt:kafka:consumer:receives:asyncStart', guarded((call) => kafka().onReceive(call), bug)],
  ['sqlite.db.query', guarded((call) => sqlite().onQuery(call), bug)],
  ...poolSubscribers
]

function rowsOf (table, names) {
  return names.map((name) => [name, () => table()[name]])
}

/**
 * What an app shouldTrace to know of each channel.
 * @returns {Map<string, object | (() => object)>} channel -> callDescriptor, or a function that gets it
 */
function callDescriptorsFor ({ libraries, channels, graphqlDocuments }, report) {
  const callDescriptors = new Map(libraries ? LIBRARIES : [])
  for (const [name, options] of Object.entries(channels)) {
    const known = LIBRARIES.get(name) ?? ON_REQUEST.get(name)
    const isBare = options.attributes === null && options.name === name
    callDescriptors.set(name, known !== undefined && isBare ? known : require('./user-descriptor').userDescriptor(name, options, report))
  }
  if (graphqlDocuments) {
    for (const [name, get] of WITH_DOCUMENTS) if (KNOWN.has(callDescriptors.get(name))) callDescriptors.set(name, get)
  }
  return callDescriptors
}

/** The subscribers behind these callDescriptors. */
function librarySubscribers (callDescriptors, libraries) {
  const subscribers = libraries ? [...OTHER_SUBSCRIBERS] : []
  for (const [name, callDescriptor] of callDescriptors) subscribers.push(...adapterOf(name, typeof callDescriptor === 'function' ? callDescriptor : null, PROMISED.has(name)))
  return subscribers
}

module.exports = { callDescriptorsFor, librarySubscribers, LIBRARIES, ON_REQUEST }
