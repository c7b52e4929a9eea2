'use strict'

// An app with request metrics, and a collector that decodes them.
// Feature: metrics

const Fastify = require('fastify')
const lightTrace = require('../..')
const { startMetricSink } = require('./metric-sink')

const DURATION = 'http.server.request.duration'

async function measuredApp (t, options = {}, routes = () => {}) {
  const sink = await startMetricSink(t)
  const app = Fastify({ ...options.fastify }) // a copy, because Fastify 5.0 changes its options object
  const { fastify, ...others } = options
  await app.register(lightTrace, { serviceName: 'shop', exporter: { url: sink.url }, metrics: true, ...others })
  app.get('/users/:id', async () => ({ ok: true }))
  app.get('/boom', async () => { throw new TypeError('boom') })
  app.get('/teapot', async (request, reply) => { throw Object.assign(new Error('short'), { statusCode: 418 }) })
  routes(app)
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(() => app.close())
  return { app, sink, origin, get: async (path, init) => { const response = await fetch(origin + path, init); await response.text(); return response } }
}

/** Returns the points of the duration metric by their attributes, as text. */
async function points (app, sink, name = DURATION) {
  await app.close()
  const metric = await sink.metric(name)
  return Object.fromEntries(metric.points.map((point) => [label(point.attributes), point]))
}

function label (attributes) {
  const { 'http.request.method': method, 'url.scheme': scheme, 'network.protocol.version': version, ...others } = attributes
  return [method, scheme, version, ...Object.entries(others).map(([key, value]) => `${key}=${value}`)].join(' ')
}

module.exports = { measuredApp, points, DURATION }
