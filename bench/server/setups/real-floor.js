'use strict'

// What no tracer of a request with a logger and calls can do without: a context that follows it, a listener of its end,
// ids in its log lines, and somebody who listens to the calls.

const diagnosticsChannel = require('node:diagnostics_channel')
const { AsyncLocalStorage } = require('node:async_hooks')
const { retainTickRecord } = require('../../../lib/runtime/timers')

const kRecord = Symbol('bench.record')
const CALLS = 'tracing:node-redis:command:start'

module.exports = () => {
  retainTickRecord()
  const storage = new AsyncLocalStorage()
  diagnosticsChannel.subscribe(CALLS, () => {})
  return {
    fastify: { logger: { level: 'info', file: '/dev/null', mixin: () => storage.getStore()?.ids ?? {} } },
    async register (app) {
      app.addHook('onRequest', (request, reply, done) => {
        const record = { isOpen: true, ids: { trace_id: '0af7651916cd43dd8448eb211c80319c', span_id: 'b7ad6b7169203331', trace_flags: '01' } }
        request[kRecord] = reply.raw[kRecord] = record
        reply.raw.on('close', onClose)
        storage.enterWith(record)
        done()
      })
    }
  }
}

function onClose () {
  this[kRecord].isOpen = false
}
