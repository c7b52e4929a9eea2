'use strict'

// The commands of one MongoClient, by the driver's command monitoring. Connections tell of their commands from when
// `monitorCommands` is set: it must be before the client connects.
// https://github.com/mongodb/specifications/blob/master/source/command-logging-and-monitoring/command-logging-and-monitoring.md

const { activeContext, tracerIn, isSuppressed } = require('./calls')
const { fail } = require('./channels')
const { PendingSpans, listener } = require('./pending-spans')
const { DATABASES } = require('./libraries/databases')
const { read, text, label } = require('./libraries/read')

// mongoose's own descriptor: operation, collection and database, and no document.
const callDescriptor = DATABASES['mongoose:query']

// Of the connection, not of anybody's.
const NOT_TRACED = new Set(['hello', 'ismaster', 'isMaster', 'saslStart', 'saslContinue', 'authenticate', 'endSessions', 'ping'])

// Where the statements of one command stand. Several of them are a batch; many documents of one insert are not.
const STATEMENTS = { update: 'updates', delete: 'deletes', bulkWrite: 'ops' }

function traceMongoClient (client) {
  client.monitorCommands = true
  const pending = new PendingSpans()
  client.on('commandStarted', listener((event) => {
    if (NOT_TRACED.has(text(event, 'commandName'))) return
    const context = activeContext()
    const tracer = tracerIn(context)
    if (tracer === null || !tracer.outbound?.libraries || isSuppressed(context)) return
    pending.add(read(event, 'requestId'), tracer.startCall(callDescriptor, callOf(event), context))
  }))
  client.on('commandSucceeded', listener((event) => { pending.take(read(event, 'requestId'))?.end() }))
  client.on('commandFailed', listener((event) => {
    const span = pending.take(read(event, 'requestId'))
    if (span === undefined) return
    if (span.isRecording()) fail(span, callDescriptor, read(event, 'failure'))
    span.end()
  }))
}

function callOf (event) {
  const operation = text(event, 'commandName')
  const command = read(event, 'command')
  const address = text(event, 'address')
  const colon = address.lastIndexOf(':')
  const hasPort = colon !== -1 && !address.startsWith('/')
  return {
    operation,
    // The command's own field names it; a cursor's `getMore` has its id there.
    collection: text(command, operation) || text(command, 'collection'),
    database: label(event, 'databaseName'),
    serverAddress: hasPort ? address.slice(0, colon).replaceAll(/[[\]]/g, '') : address,
    serverPort: hasPort ? address.slice(colon + 1) : undefined,
    args: { ops: read(command, STATEMENTS[operation]) }
  }
}

module.exports = { traceMongoClient }
