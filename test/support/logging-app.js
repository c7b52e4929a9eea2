'use strict'

// An app that exports its log lines to a collector on loopback, and also keeps the printed lines. Slow-request detection is off, because on
// a busy machine any request may be slow.

const Fastify = require('fastify')
const lightTrace = require('../..')
const { startMetricSink } = require('./metric-sink')

/** @returns {Promise<{ app, sink, lines: string[], exported (): Promise<object[]> }>} `exported` flushes and returns all records */
async function loggingApp (t, { logger = {}, fastify = {}, trace = {}, logs = { export: true }, routes, sink } = {}) {
  sink ??= await startMetricSink(t)
  const lines = []
  const stream = { write: (line) => { lines.push(line) } }
  const app = Fastify({ logger: { level: 'info', stream, ...logger }, ...fastify })
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: sink.url }, registerGlobals: false, logs, slow: false, ...trace })
  await routes?.(app)
  await app.ready()
  const exported = async () => {
    await app.lightTrace.flush()
    return sink.records
  }
  return { app, sink, lines, exported }
}

/** The accounting equation, which always holds. */
function isAccounted ({ accepted, delivered, rejected, dropped, queued, inFlight }) {
  return accepted === delivered + rejected + Object.values(dropped).reduce((sum, count) => sum + count, 0) + queued + inFlight
}

module.exports = { loggingApp, isAccounted }
