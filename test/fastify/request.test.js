'use strict'

const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { startSink } = require('../support/otlp-sink')

test('a request arrives in a collector as one complete server span', async (t) => {
  const sink = await startSink(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { serviceName: 'shop', exporter: { url: sink.url } })
  app.get('/users/:id', async (request) => ({ id: request.params.id, traceparent: request.trace.traceparent }))
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })

  const response = await fetch(`${origin}/users/7?tab=1`, {
    headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'user-agent': 'test/1' }
  })
  const { traceparent } = await response.json()
  await app.lightTrace.flush()

  t.equal(sink.spans.length, 1)
  const [span] = sink.spans
  t.equal(`00-${span.traceId}-${span.spanId}-01`, traceparent)
  t.equal(span.parentSpanId, 'b7ad6b7169203331')
  t.equal(span.name, 'GET /users/:id')
  t.equal(span.kind, 'SERVER')
  t.equal(span.resource['service.name'], 'shop')
  t.equal(span.status.code, 'UNSET')
  t.ok(span.end > span.start)
  const { port } = new URL(origin)
  t.match(span.attributes, {
    'http.request.method': 'GET',
    'http.route': '/users/:id',
    'http.response.status_code': 200,
    'url.path': '/users/7',
    'url.query': 'tab=1',
    'url.scheme': 'http',
    'network.protocol.version': '1.1',
    'network.peer.address': '127.0.0.1',
    'client.address': '127.0.0.1',
    'server.address': '127.0.0.1',
    'server.port': Number(port),
    'user_agent.original': 'test/1'
  })
  t.match(app.lightTrace.stats().spans, { started: 1, ended: 1, accepted: 1, delivered: 1, queued: 0, inFlight: 0 })
})

test('the request is current in all of its work', async (t) => {
  const sink = await startSink(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: sink.url } })
  app.get('/', async (request) => {
    await new Promise((resolve) => setImmediate(resolve))
    return { same: lightTrace.current() === request.trace }
  })
  t.same((await app.inject('/')).json(), { same: true })
  t.equal(lightTrace.current(), undefined)
})
