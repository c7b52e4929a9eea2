'use strict'

// PostgreSQL by pg: the callDescriptors of traceClient, and of the channel that pg is about to publish
// (https://github.com/brianc/node-postgres/pull/3650).

const { SqlDescriptor } = require('./databases')
const { DIALECTS } = require('./statement')
const { read, text } = require('./read')

/** SQLSTATE. Only the server's errors have a severity; a socket's code may look like one (EPIPE). */
function sqlState (error) {
  const code = text(error, 'code')
  return text(error, 'severity') !== '' && /^[0-9A-Z]{5}$/.test(code) ? code : ''
}

const queryDescriptor = new SqlDescriptor('postgresql', DIALECTS.postgresql, 'text', sqlState, false)
const preparedDescriptor = new SqlDescriptor('postgresql', DIALECTS.postgresql, 'text', sqlState, true)

let hasSpoken = false

/** The channel's payload is in two objects; the callDescriptor above reads one. */
const channelRow = {
  kind: queryDescriptor.kind,
  errorCode: sqlState,
  shouldTrace () {
    hasSpoken = true
    return true
  },
  name: (call) => queryDescriptor.name(flat(call)),
  attributes: (call) => queryDescriptor.attributes(flat(call))
}

function flat (call) {
  const query = read(call, 'query')
  const client = read(call, 'client')
  return {
    text: typeof query === 'string' ? query : text(query, 'text'),
    database: text(client, 'database'),
    serverAddress: text(client, 'host'),
    serverPort: read(client, 'port')
  }
}

/** Whether this pg publishes its queries itself. */
function channelSpoke () {
  return hasSpoken
}

// Queries that are reported after they have begun: see trace-client.js.
queryDescriptor.startedAt = preparedDescriptor.startedAt = (call) => call.startedAt

module.exports = { sqlState, POSTGRESQL: { 'pg:query': channelRow }, queryDescriptor, preparedDescriptor, channelSpoke }
