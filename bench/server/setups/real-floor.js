'use strict'

// What every tracer needs for a request with a logger and calls: a context that follows the request, a listener of its end, ids in its
// log lines (appended to the logger's bindings, which is the cheapest way), and listeners of the calls.

const diagnosticsChannel = require('node:diagnostics_channel')
const { AsyncLocalStorage } = require('node:async_hooks')
const { chindingsSym } = require('pino').symbols
const loggerOptions = require('./logger')
const { retainTickRecord } = require('../../../lib/runtime/timers')

const kRecord = Symbol('bench.record')
const IDS = ',"trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331","trace_flags":"01"'
const CALLS = { 'tracing:node-redis:command': ['start', 'asyncStart', 'error'], undici: ['request:create', 'request:headers', 'request:error'] }

module.exports = () => {
  retainTickRecord()
  const storage = new AsyncLocalStorage()
  for (const [name, events] of Object.entries(CALLS)) {
    for (const event of events) diagnosticsChannel.subscribe(`${name}:${event}`, () => {})
  }
  return {
    fastify: { logger: loggerOptions({ isSync: true }) },
    async register (app) {
      app.addHook('onRequest', (request, reply, done) => {
        const record = { isOpen: true }
        request[kRecord] = reply.raw[kRecord] = record
        reply.raw.on('close', onClose)
        request.log[chindingsSym] += IDS
        storage.enterWith(record)
        done()
      })
    }
  }
}

function onClose () {
  this[kRecord].isOpen = false
}
