'use strict'

// The libraries that publish channels themselves: which channel means what. A row says how a call is named
// and described; channel-adapter.js does the rest.
//
//   row = { kind, wants (call), name (call), attributes (call) → flat list,
//           errorCode? (error), started? (span, call, tracer, context), result? (span, call), ended? (span, call) }

const { adapterOf } = require('./channel-adapter')
const { DATABASES } = require('./libraries/databases')
const { POSTGRESQL } = require('./libraries/postgresql')
const { GRAPHQL, GRAPHQL_ON_REQUEST } = require('./libraries/graphql')
const { KAFKA, kafkaSubscribers } = require('./libraries/kafka')
const { sqliteSubscribers } = require('./libraries/sqlite')
const { poolSubscribers } = require('./libraries/mysql-pool')

const LIBRARIES = new Map(Object.entries({ ...DATABASES, ...POSTGRESQL, ...GRAPHQL, ...KAFKA }))
// Known, but listened to only when `outbound.channels` names them: one span per field or document is too many.
const ON_REQUEST = new Map(Object.entries({ ...GRAPHQL_ON_REQUEST, 'mongoose:cursor:next': DATABASES['mongoose:query'] }))

/**
 * What an app wants to know of each channel.
 * @returns {Map<string, object>} channel → row
 */
function rowsFor ({ libraries, channels }, report) {
  const rows = new Map(libraries ? LIBRARIES : [])
  for (const [name, options] of Object.entries(channels)) {
    const known = LIBRARIES.get(name) ?? ON_REQUEST.get(name)
    const isBare = options.attributes === null && options.name === name
    rows.set(name, known !== undefined && isBare ? known : require('./libraries/user-row').userRow(name, options, report))
  }
  return rows
}

/** The subscribers behind these rows. */
function librarySubscribers (rows, libraries) {
  const subscribers = libraries ? [...kafkaSubscribers, ...sqliteSubscribers, ...poolSubscribers] : []
  for (const name of rows.keys()) subscribers.push(...adapterOf(name))
  return subscribers
}

module.exports = { rowsFor, librarySubscribers, LIBRARIES, ON_REQUEST }
