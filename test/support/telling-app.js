'use strict'

// An application whose attributes all have marked values, and a collector that keeps the bytes that it receives.
//
//   const { bytes } = await native(t, { omitAttributes })      makes the app's requests, closes it, and returns the bytes that were sent
//
//   node test/support/telling-app.js '[{ "exporter": "console" }]'      runs one set of options after the other, with a line ==== after each
// Feature: logs, metrics, libraries

const http = require('node:http')
const { once } = require('node:events')
const diagnosticsChannel = require('node:diagnostics_channel')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { listenAnew } = require('./new-port')

const MARK = 'marked-'

/** The attributes that the application adds to those of the conventions, each with a marked value. */
const MARKED = {
  resource: { 'app.cell': 'marked-resource' },
  requestHeaders: ['x-tenant'],
  responseHeaders: ['x-cell'],
  baggage: ['app.baggage'],
  attributes: () => ({ 'app.user': 'marked-user' })
}

const ROUTE = { trace: { attributes: { 'app.route': 'marked-route' } } }

// Each key that the application's signals have as an attribute, except those that OpenTelemetry requires of a resource.
const KEYS = {
  ours: [
    'http.request.method', 'http.route', 'url.scheme', 'url.path', 'url.query', 'http.response.status_code', 'network.protocol.version',
    'network.peer.address', 'network.peer.port', 'client.address', 'server.address', 'server.port', 'user_agent.original', 'error.type',
    'http.request.header.x-tenant', 'http.response.header.x-cell', 'app.baggage', 'app.user', 'app.route',
    'exception.type', 'exception.message', 'exception.stacktrace', 'app.child',
    'url.full', 'db.system.name', 'db.query.text', 'db.query.summary', 'app.cell', 'host.name', 'process.pid'
  ],
  set: ['app.set', 'event.said', 'link.said'], // by the application, on a span
  logs: ['order', 'customer', 'req', 'app.bound', 'err.code', 'err.detail'],
  metrics: ['metric.tenant', 'meter.said']
}

const ALL = Object.values(KEYS).flat()
// The option's value that omits all of them: some by a prefix, and members of a record by their path.
const OMITTED = [
  'http.*', 'url.*', 'network.peer.*', 'network.protocol.version', 'client.address', 'server.*', 'user_agent.original', 'error.type', 'app.*',
  'exception.*', 'db.*', 'host.name', 'process.pid', 'event.*', 'link.*', 'order', 'customer.id', 'customer.list.email', 'req.*', 'err.*', 'metric.tenant', 'meter.said', 'basket.owner.email'
]

/** Returns the keys that occur in the bytes, as an attribute of OTLP or JSON or as a label of Prometheus. */
function keysIn (bytes, keys = ALL) {
  // In OTLP, a key follows the last byte of its length, which may be padded, and precedes the tag of the value.
  const formsOf = (key) => [`${String.fromCharCode(key.length)}${key}\x12`, `\0${key}\x12`, `"${key}"`, `${key}=`, `${key.replace(/\W/g, '_')}="`]
  return keys.filter((key) => formsOf(key).some((text) => bytes.includes(text)))
}

/**
 * @param {object} trace light-trace's options
 * @param {{ fastify?: object, last? (app): Promise<void> }} [more] Fastify's options, and a function that runs before the close
 * @returns {Promise<{ app, text: string }>} the closed application, and its metrics for Prometheus
 */
async function markedApp (trace, { fastify = {}, last = async (_app) => {} } = {}) {
  const upstream = http.createServer((request, response) => response.end('ok')).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  const app = Fastify({ trustProxy: true, logger: { level: 'info', stream: { write () {} } }, ...fastify })
  await app.register(lightTrace, { serviceName: 'shop', registerGlobals: false, logs: { export: true }, metrics: { attributes: () => ({ 'metric.tenant': 'marked-tenant' }), activeRequests: true }, ...MARKED, ...trace })
  app.setErrorHandler((error, request, reply) => {
    request.log.child({ 'app.bound': 'marked-bound' }).error({ err: error, order: 'marked-order', customer: { id: 'marked-customer', list: [{ email: 'marked-email' }] } }, 'failed')
    return reply.code(500).send('failed')
  })
  app.get('/orders/:id', { config: ROUTE }, async (request, reply) => {
    reply.header('x-cell', 'marked-cell')
    const { span } = request.trace
    span.setAttribute('app.set', 'marked-set')
    span.setAttribute('basket', { owner: { email: 'marked-owner', is: 'here' } })
    span.addEvent('said', { 'event.said': 'marked-event' })
    span.addLink({ context: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 }, attributes: { 'link.said': 'marked-link' } })
    await request.trace.withSpan('step', { attributes: { 'app.child': 'marked-child' } }, async () => {})
    await call(upstream)
    await diagnosticsChannel.tracingChannel('mysql2:query').tracePromise(async () => [], { query: 'SELECT * FROM users', serverAddress: 'marked-database', serverPort: 7 })
    await diagnosticsChannel.tracingChannel('node-redis:command').tracePromise(async () => 'x', { command: 'GET', args: ['GET', 'marked-key'], serverAddress: '192.0.2.4', serverPort: 6379 })
    app.lightTrace.meterProvider.getMeter('own').createCounter('orders').add(1, { 'meter.said': 'marked-meter' })
    if (request.params.id.endsWith('bad')) throw Object.assign(new Error('marked-message'), { code: 'marked-code', detail: 'marked-detail' })
    return 'ok'
  })
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  for (const path of ['/orders/marked-path?by=marked-query', '/orders/marked-bad', '/orders/marked-path?by=marked-query']) await ask(origin + path)
  await last(app)
  const text = await app.lightTrace.metrics()
  await app.close()
  upstream.close()
  upstream.closeAllConnections()
  return { app, text }
}

async function call (upstream) {
  const response = await fetch(`http://127.0.0.1:${upstream.address().port}/marked-call?by=marked-call`)
  await response.text()
}

async function ask (url) {
  const headers = {
    host: 'marked-host.example:8443', 'user-agent': 'marked-agent', 'x-forwarded-for': '203.0.113.77', 'x-tenant': 'marked-tenant', baggage: 'app.baggage=marked-baggage'
  }
  const request = http.get(url, { headers })
  const [response] = await once(request, 'response')
  response.resume()
  await once(response, 'end')
}

/** Returns the metrics of the app, and the bytes that its collector received. */
async function native (t, trace, more) {
  const sink = await startRawSink(t)
  const { app, text } = await markedApp({ exporter: { url: sink.url }, ...trace }, more)
  return { app, text, bytes: sink.bytes }
}

/** A collector that keeps the raw bytes that it receives. */
async function startRawSink (t) {
  const sink = { url: '', pieces: [], get bytes () { return Buffer.concat(this.pieces) } }
  const server = http.createServer((request, response) => {
    request.on('data', (piece) => sink.pieces.push(piece))
    request.on('end', () => response.end())
  })
  sink.url = `http://127.0.0.1:${await listenAnew(server)}/v1/traces`
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return sink
}

/** Checks that no marked value is in the bytes, and no key except those of maps whose members are omitted. */
function omitsAll (t, bytes) {
  t.same(keysIn(bytes).filter((key) => key !== 'customer' && key !== 'req'), [])
  t.notOk(bytes.includes(MARK), 'nothing that is marked')
  t.notOk(bytes.includes('203.0.113.77'), 'no address')
}

module.exports = { markedApp, native, omitsAll, keysIn, KEYS, ALL, OMITTED, MARK }

if (require.main === module) runAll(JSON.parse(process.argv[2]))

async function runAll (traces) {
  for (const trace of traces) {
    await markedApp(trace)
    process.stdout.write('====\n')
  }
}
