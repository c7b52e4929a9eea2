'use strict'

// An app whose lines are exported to a collector on loopback, and kept as they were printed. No request is slow, as any may be on a
// busy machine.

const Fastify = require('fastify')
const lightTrace = require('../..')
const { startMetricSink } = require('./metric-sink')

/** @returns {Promise<{ app, sink, lines: string[], exported (): Promise<object[]> }>} `exported` flushes, and gives all records */
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

/** The identity that holds at every moment. */
function isAccounted ({ accepted, delivered, rejected, dropped, queued, inFlight }) {
  return accepted === delivered + rejected + Object.values(dropped).reduce((sum, count) => sum + count, 0) + queued + inFlight
}

module.exports = { loggingApp, isAccounted }
