'use strict'

// Real requests to a light-trace app over real sockets. The spans go to real collectors of other authors and are read back field by field.
// Fields that differ from run to run (ids, ports, times) are compared with what the client or the handler saw.

const { test } = require('tap')
const http = require('node:http')
const { once } = require('node:events')
const { hostname } = require('node:os')
const { randomBytes } = require('node:crypto')
const { tracingChannel } = require('node:diagnostics_channel')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { version } = require('../../package.json')
const { collectors } = require('../support/collectors')

const redisGet = tracingChannel('node-redis:command')
const CALLER = 'b7ad6b7169203331'
const LONG = 'grüße 🚀 '.repeat(1000)
const CLOCKS_DIFFER_NS = 1_000_000_000n // between our anchored clock and Date.now(); detects only a wrong epoch or unit

for (const collector of collectors) {
  for (const compression of ['none', 'gzip']) {
    const into = `into ${collector.name}, compression ${compression}`

    test(`a request with a caller, a child span, attributes and an event gets ${into}`, async (t) => {
      const { app, get, spansOf } = await tracedApp(t, collector, compression)
      const seen = {}
      app.get('/users/:id', async (request) => {
        request.trace.span.setAttributes({ 'user.id': request.params.id, long: LONG, int: -3, double: 0.25, yes: true, list: ['a', 'b'] })
        request.trace.span.addEvent('cache.miss', { key: 'k', tries: 2 })
        seen.spanId = request.trace.spanId
        return request.trace.withSpan('load user', { attributes: { rows: 1 } }, async (span) => {
          seen.childId = span.spanContext().spanId
          return { id: request.params.id }
        })
      })
      const traceId = randomBytes(16).toString('hex')
      const answer = await get('/users/7?tab=1&sig=secret', { traceparent: `00-${traceId}-${CALLER}-01`, tracestate: 'vendor=1' })
      t.equal(answer.statusCode, 200)

      const [server, child, ...others] = await spansOf(traceId, 2)
      t.same(others, [])
      isWhole(t, server, {
        traceId,
        traceState: 'vendor=1',
        flags: 0x301, // sampled by the caller; the parent is known to be remote
        spanId: seen.spanId,
        parentSpanId: CALLER,
        name: 'GET /users/:id',
        attributes: {
          ...requestAttributes(answer, '/users/7', 200),
          'http.route': '/users/:id',
          'url.query': 'tab=1&sig=REDACTED',
          'user.id': '7',
          long: LONG,
          int: -3,
          double: 0.25,
          yes: true,
          list: ['a', 'b']
        },
        events: [{ name: 'cache.miss', attributes: { key: 'k', tries: 2 } }]
      })
      isWhole(t, child, {
        traceId,
        traceState: 'vendor=1',
        flags: 0x101, // the parent is known not to be remote
        spanId: seen.childId,
        parentSpanId: seen.spanId,
        name: 'load user',
        kind: 'INTERNAL',
        attributes: { rows: 1 }
      })
      t.ok(server.start <= child.start && child.end <= server.end, 'the child lies within its parent')
    })

    test(`a request that fails gets ${into}`, async (t) => {
      const { app, get, spansOf } = await tracedApp(t, collector, compression)
      const seen = {}
      const error = new TypeError('no stock')
      app.get('/boom', async (request) => {
        Object.assign(seen, { traceId: request.trace.traceId, spanId: request.trace.spanId })
        throw error
      })
      const answer = await get('/boom')
      t.equal(answer.statusCode, 500)

      const [server] = await spansOf(seen.traceId, 1)
      isWhole(t, server, {
        ...seen,
        flags: 0x103, // sampled, with a random trace id that we made
        name: 'GET /boom',
        attributes: { ...requestAttributes(answer, '/boom', 500), 'http.route': '/boom', 'error.type': 'TypeError' },
        events: [{ name: 'exception', attributes: { 'exception.type': 'TypeError', 'exception.message': 'no stock', 'exception.stacktrace': error.stack } }],
        status: { code: 'ERROR', message: '' }
      })
    })

    test(`folded calls, with the parent's attributes about them, get ${into}`, async (t) => {
      const { app, get, spansOf } = await tracedApp(t, collector, compression, { outbound: { fold: { after: 2 } } })
      const seen = {}
      app.get('/users', async (request) => {
        seen.traceId = request.trace.traceId
        for (let i = 0; i < 50; i++) await redisGet.tracePromise(() => new Promise(setImmediate), { command: 'GET', args: ['GET', `user:${i}`], database: 2, serverAddress: 'redis.internal', serverPort: 6379 })
        return ''
      })
      await get('/users')
      const { folded } = app.lightTrace.stats().spans
      const spans = await spansOf(seen.traceId, 50 - folded + 2) // including the fold's span and the request's
      const [server] = spans.filter(({ kind }) => kind === 'SERVER')
      t.match(server.attributes, { 'light_trace.repeated.shape': 'redis GET', 'light_trace.repeated.count': 50 })
      const calls = spans.filter(({ kind }) => kind === 'CLIENT')
      const [fold, ...others] = calls.filter(({ attributes }) => 'light_trace.fold.count' in attributes)
      t.same(others, [])
      t.equal(calls.length - 1 + folded, 50)
      const { 'light_trace.fold.duration.sum': sum, 'light_trace.fold.duration.min': least, 'light_trace.fold.duration.max': most, ...attributes } = fold.attributes
      t.same(attributes, {
        'db.system.name': 'redis',
        'db.namespace': '2',
        'db.operation.name': 'GET',
        'db.query.text': 'GET',
        'server.address': 'redis.internal',
        'server.port': 6379,
        'light_trace.fold.count': folded
      })
      t.ok(least > 0 && least <= most && most <= sum)
      t.equal(fold.parentSpanId, server.spanId)
      t.ok(server.start <= fold.start && fold.start < fold.end && fold.end <= server.end)
    })

    test(`500 requests, one after the other, get ${into} once each`, async (t) => {
      const { app, get, spansOf } = await tracedApp(t, collector, compression)
      const ids = []
      app.get('/:n', async (request) => {
        ids.push(request.trace.spanId)
        request.trace.span.setAttribute('n', Number(request.params.n))
        return ''
      })
      const traceparent = `00-${randomBytes(16).toString('hex')}-${CALLER}-01`
      for (let n = 0; n < 500; n++) await get(`/${n}`, { traceparent })

      const spans = await spansOf(traceparent.slice(3, 35), 500)
      t.equal(spans.length, 500)
      t.same(new Set(spans.map((span) => span.spanId)), new Set(ids))
      t.same(spans.map((span) => span.attributes.n).sort((a, b) => a - b), Array.from(ids, (id, n) => n))
      t.match(app.lightTrace.stats().spans, { started: 500, ended: 500, accepted: 500, delivered: 500, rejected: 0, queued: 0, inFlight: 0 })
    })
  }
}

async function tracedApp (t, collector, compression, options = {}) {
  const app = Fastify()
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => {
    agent.destroy()
    return app.close()
  })
  await app.register(lightTrace, {
    serviceName: 'shop',
    resource: { 'deployment.environment.name': 'test' },
    exporter: { url: collector.tracesUrl, compression },
    slow: false, // on a busy machine, a failed request takes 20 ms, and its span says what it waited for
    ...options
  })
  return {
    app,
    async get (path, headers) {
      if (!app.server.listening) await app.listen({ port: 0, host: '127.0.0.1' })
      const request = http.get({ port: app.server.address().port, host: '127.0.0.1', path, headers: { 'user-agent': 'test/1', ...headers }, agent })
      const [response] = await once(request, 'response')
      const { localPort, remotePort } = response.socket
      response.resume()
      await once(response, 'end')
      return { statusCode: response.statusCode, localPort, remotePort }
    },
    /** Returns the spans from the collector, with a function that gives the expected form of a span. */
    async spansOf (traceId, count) {
      await app.lightTrace.flush()
      const spans = await collector.spansOf(traceId, count)
      for (const span of spans) span.expect = collector.expect
      return spans
    }
  }
}

function isWhole (t, { expect, ...span }, expected) {
  const { start, end } = span
  const now = BigInt(Date.now()) * 1_000_000n
  t.ok(start <= end && end < now + CLOCKS_DIFFER_NS && start > now - 60n * CLOCKS_DIFFER_NS, `from ${start} to ${end} is in the last minute`)
  const instance = span.resource['service.instance.id']
  t.match(instance, /^[0-9a-f]{8}-[0-9a-f-]{27}$/)
  const events = (expected.events ?? []).map((event, n) => ({ time: span.events[n]?.time ?? 0n, droppedAttributesCount: 0, ...event }))
  t.ok(events.every(({ time }) => start <= time && time <= end), 'events lie within their span')
  t.strictSame(span, expect({
    resource: {
      'service.name': 'shop',
      'service.version': version, // of the package.json that is nearest to the app, which is this package's
      'service.instance.id': instance,
      'telemetry.sdk.name': 'light-trace',
      'telemetry.sdk.language': 'nodejs',
      'telemetry.sdk.version': version,
      'process.pid': process.pid,
      'process.runtime.name': 'nodejs',
      'process.runtime.version': process.versions.node,
      'host.name': hostname(),
      'deployment.environment.name': 'test'
    },
    scope: { name: 'light-trace', version },
    schemaUrl: span.schemaUrl ?? '',
    traceState: '',
    parentSpanId: '',
    kind: 'SERVER',
    start,
    end,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    links: [],
    droppedLinksCount: 0,
    status: { code: 'UNSET', message: '' },
    ...expected,
    events
  }))
}

function requestAttributes ({ localPort, remotePort }, path, status) {
  return {
    'http.request.method': 'GET',
    'http.response.status_code': status,
    'url.path': path,
    'url.scheme': 'http',
    'network.protocol.version': '1.1',
    'network.peer.address': '127.0.0.1',
    'network.peer.port': localPort,
    'client.address': '127.0.0.1',
    'server.address': '127.0.0.1',
    'server.port': remotePort,
    'user_agent.original': 'test/1'
  }
}
