'use strict'

const http = require('node:http')
const net = require('node:net')
const { once } = require('node:events')
const { Readable } = require('node:stream')
const { test } = require('tap')
const { measuredApp, points, DURATION } = require('../support/measured-app')
const { tellingLogger } = require('../support/telling-logger')
const { HTTP_DURATION } = require('../../lib/features/metrics/histograms')

test('every request has the attributes and buckets of the conventions', async (t) => {
  const { app, sink, get } = await measuredApp(t)
  for (let i = 0; i < 3; i++) await get(`/users/${i}`)
  await get('/boom')
  await get('/teapot')
  await get('/nowhere')
  await get('/users/1', { method: 'POST' })
  const found = await points(app, sink)
  t.same(Object.keys(found).sort(), [
    'GET http 1.1 http.response.status_code=200 http.route=/users/:id',
    'GET http 1.1 http.response.status_code=404',
    'GET http 1.1 http.response.status_code=418 http.route=/teapot',
    'GET http 1.1 http.response.status_code=500 http.route=/boom error.type=TypeError',
    'POST http 1.1 http.response.status_code=404'
  ].sort())
  const users = found['GET http 1.1 http.response.status_code=200 http.route=/users/:id']
  t.equal(users.count, 3)
  t.same(users.bounds, HTTP_DURATION)
  t.match(await sink.metric(DURATION), { unit: 's', kind: 'histogram', temporality: 'cumulative', description: 'Duration of HTTP server requests.', scope: { name: 'light-trace' }, resource: { 'service.name': 'shop' } })
})

test('a getter that throws in a request\'s attributes is logged once, and the request counts without them', async (t) => {
  const loggerInstance = tellingLogger()
  const attributes = () => ({ get tenant () { throw new Error('no tenant') } })
  const { app, sink, get } = await measuredApp(t, { fastify: { loggerInstance }, metrics: { attributes } })
  await get('/users/1')
  await get('/users/2')
  t.match(await points(app, sink), { 'GET http 1.1 http.response.status_code=200 http.route=/users/:id': { count: 2 } })
  t.same(loggerInstance.logged.map(([code]) => code), ['LT_WARN_CALLBACK'])
})

test('the value is the span\'s duration, and the exemplar has its ids', async (t) => {
  const { app, sink, get } = await measuredApp(t)
  await get('/users/1')
  const { 'GET http 1.1 http.response.status_code=200 http.route=/users/:id': point } = await points(app, sink)
  const [span] = sink.requests.flatMap(({ spans = [] }) => spans)
  t.ok(Math.abs(point.sum - Number(span.end - span.start) / 1e9) < 1e-6)
  t.match(point.exemplars, [{ traceId: span.traceId, spanId: span.spanId, value: point.sum }])
})

test('a status that is set after the headers were sent, even an invalid one, is not recorded', async (t) => {
  const lines = []
  const junk = [undefined, null, NaN, {}, '200', [200], 2 ** 32 + 200, -2]
  const { app, sink, get } = await measuredApp(t, { fastify: { logger: { stream: { write: (line) => { lines.push(line) } } } } }, (app) => app.get('/late/:at', (request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200)
    reply.raw.statusCode = junk[request.params.at]
    reply.raw.end('ok')
  }))
  for (const twice of [1, 2]) for (let i = 0; i < junk.length; i++) t.equal((await get(`/late/${i}`)).status, 200, `${i}, ${twice}`)
  const found = await points(app, sink)
  const statuses = sink.requests.flatMap(({ spans = [] }) => spans).map(({ attributes }) => attributes['http.response.status_code'])
  t.same(statuses, [...statuses.slice(0, 8), ...statuses.slice(0, 8)])
  t.same(statuses.slice(0, 8), Array(8).fill(200))
  t.same(Object.entries(found).map(([about, { count }]) => [about, count]), [
    ['GET http 1.1 http.response.status_code=200 http.route=/late/:at', 16]
  ])
  t.same((await sink.metric(DURATION)).points.length, 1)
  t.notMatch(lines.join(''), /LT_WARN_/)
})

test('behind a proxy, an invalid scheme makes no series', async (t) => {
  const { app, sink, get } = await measuredApp(t, { fastify: { trustProxy: true } })
  const schemes = Array.from({ length: 100 }, (_, i) => `s${i}`)
  for (const scheme of [...schemes, ...schemes]) await get('/users/1', { headers: { 'x-forwarded-proto': scheme } })
  const found = await points(app, sink)
  const of = (scheme) => `GET ${scheme} 1.1 http.response.status_code=200 http.route=/users/:id`
  t.equal(found[of('http')]?.count, 200)
  t.same(schemes.filter((scheme) => found[of(scheme)] !== undefined), [])
})

test('requests that are unsampled, ignored or switched off count, without exemplars', async (t) => {
  const { app, sink, get } = await measuredApp(t, { sampler: 0, ignore: ['/ignored'] }, (app) => {
    app.get('/ignored', async () => 'x')
    app.get('/off', { config: { trace: false } }, async () => 'x')
    app.get('/off-and-broken', { config: { trace: false } }, async () => { throw new RangeError('x') })
    app.get('/not-measured', { config: { trace: { metrics: false } } }, async () => 'x')
  })
  for (const path of ['/users/1', '/ignored', '/off', '/off-and-broken', '/boom', '/not-measured']) await get(path)
  const found = await points(app, sink)
  t.same(Object.keys(found).sort(), [
    'GET http 1.1 http.response.status_code=200 http.route=/ignored',
    'GET http 1.1 http.response.status_code=200 http.route=/off',
    'GET http 1.1 http.response.status_code=200 http.route=/users/:id',
    'GET http 1.1 http.response.status_code=500 http.route=/boom error.type=TypeError',
    'GET http 1.1 http.response.status_code=500 http.route=/off-and-broken error.type=RangeError'
  ])
  t.ok(Object.values(found).every(({ count, exemplars, sum }) => count === 1 && exemplars.length === 0 && sum > 0))
})

test('callers cannot create series: unknown methods are _OTHER, and hosts are not attributes', async (t) => {
  const { app, sink, origin } = await measuredApp(t)
  for (const [method, host] of [['PROPFIND', 'a'], ['PURGE', 'b'], ['GET', 'c'], ['GET', 'd']]) {
    const request = http.request(`${origin}/nowhere`, { method, headers: { host } }).end()
    const [response] = await once(request, 'response')
    response.resume()
    await once(response, 'end')
  }
  const found = await points(app, sink)
  t.same(Object.entries(found).map(([label, { count }]) => [label, count]).sort(), [
    ['GET http 1.1 http.response.status_code=404', 2], ['_OTHER http 1.1 http.response.status_code=404', 2]
  ])
})

test('a client that leaves before the answer has error.type=aborted and no status', async (t) => {
  let entered
  const inHandler = new Promise((resolve) => { entered = resolve })
  const { app, sink, origin } = await measuredApp(t, {}, (app) => {
    app.get('/slow', (request, reply) => {
      entered()
      request.raw.on('close', () => reply.send('late'))
    })
  })
  const request = http.get(`${origin}/slow`)
  request.on('error', () => {})
  await inHandler
  request.destroy()
  t.ok('GET http 1.1 http.route=/slow error.type=aborted' in await points(app, sink))
})

test('a span that the application ends early does not end the request', async (t) => {
  const { app, sink, get } = await measuredApp(t, {}, (app) => {
    app.get('/early', async (request) => {
      request.trace.span.end()
      throw new SyntaxError('after all')
    })
  })
  await get('/early')
  t.ok('GET http 1.1 http.response.status_code=500 http.route=/early error.type=SyntaxError' in await points(app, sink))
})

test('an accepted upgrade does not count as a request', async (t) => {
  const { app, sink, origin, get } = await measuredApp(t, {}, (app) => {
    app.register(require('@fastify/websocket'))
    app.register(async (app) => { app.get('/ws', { websocket: true }, (socket) => socket.close()) })
  })
  await get('/users/1')
  const { WebSocket } = require('ws')
  const socket = new WebSocket(origin.replace('http', 'ws') + '/ws')
  await once(socket, 'close')
  t.same(Object.keys(await points(app, sink)), ['GET http 1.1 http.response.status_code=200 http.route=/users/:id'])
})

test('streams count like other requests', async (t) => {
  const { app, sink, get } = await measuredApp(t, {}, (app) => {
    app.get('/stream', (request, reply) => reply.send(Readable.from(['a', 'b'])))
    app.get('/events', (request, reply) => {
      reply.hijack()
      reply.raw.writeHead(200, { 'content-type': 'text/event-stream' })
      reply.raw.end('data: 1\n\n')
    })
  })
  for (const path of ['/stream', '/events']) await get(path)
  t.equal(Object.keys(await points(app, sink)).length, 2)
})

test('active requests go up before the handler and down at the end', async (t) => {
  const { app, sink, get } = await measuredApp(t, { metrics: { activeRequests: true }, sampler: 0.5 }, (app) => {
    app.get('/active', async () => app.lightTrace.metrics())
    app.get('/off', { config: { trace: false } }, async () => app.lightTrace.metrics())
  })
  for (const path of ['/active', '/off', '/active']) {
    const response = await fetch(`${app.listeningOrigin}${path}`)
    t.match(await response.text(), /http_server_active_requests\{http_request_method="GET",url_scheme="http"\} 1\n/, path)
  }
  await get('/boom')
  const found = await points(app, sink, 'http.server.active_requests')
  t.same(Object.values(found).map(({ value }) => value), [0])
})

test('body sizes are recorded if known', async (t) => {
  const { app, sink, get } = await measuredApp(t, { metrics: { bodySizes: true } }, (app) => {
    app.post('/echo', async (request) => request.body)
  })
  await get('/echo', { method: 'POST', body: JSON.stringify({ a: 'b'.repeat(100) }), headers: { 'content-type': 'application/json' } })
  await get('/users/1')
  await app.close()
  const received = await sink.metric('http.server.request.body.size')
  t.same(received.points.map(({ attributes, sum }) => [attributes['http.route'], sum]), [['/echo', 108], ['/users/:id', 0]])
  const sent = await sink.metric('http.server.response.body.size')
  t.same(sent.points.map(({ attributes, sum }) => [attributes['http.route'], sum]), [['/echo', 108], ['/users/:id', 11]])
})

test('attributes of the application are added, and invalid ones left out', async (t) => {
  const { app, sink, get } = await measuredApp(t, {
    metrics: {
      attributes (request, reply) {
        if (request.params.id === 'throw') throw new Error('mine')
        if (request.params.id === 'number') return 7
        return { tenant: request.headers['x-tenant'], 'http.route': 'mine', plan: reply.getHeader('x-plan'), bad: {} }
      }
    }
  })
  for (const tenant of ['a', 'b', 'a']) await get('/users/1', { headers: { 'x-tenant': tenant } })
  await get('/users/throw')
  await get('/users/number')
  const found = await points(app, sink)
  t.same(Object.entries(found).map(([label, { count }]) => [label.replace('GET http 1.1 http.response.status_code=200 ', ''), count]), [
    ['http.route=/users/:id', 2], ['http.route=/users/:id tenant=a', 2], ['http.route=/users/:id tenant=b', 1]
  ].sort(([a], [b]) => Object.keys(found).findIndex((key) => key.endsWith(a)) - Object.keys(found).findIndex((key) => key.endsWith(b))))
})

test('an attribute whose key is the value of another one is kept', async (t) => {
  const { app } = await measuredApp(t, { metrics: { exporter: 'none', attributes: (request) => ({ ...request.query }) } })
  await app.inject('/users/1?tenant=plan&plan=gold&http=GET&GET=1')
  t.match(await app.lightTrace.metrics(), /_count\{GET="1",.*http="GET",.*plan="gold",tenant="plan"/)
})

test('a thousand values of three attributes stay within the limit, and every request counts', async (t) => {
  let number = 0
  const { app, sink } = await measuredApp(t, { metrics: { attributes: () => ({ user: number++ }) } })
  for (let i = 0; i < 2100; i++) await app.inject('/users/1')
  t.same(app.lightTrace.stats().metrics.overflowed, [DURATION])
  const found = await points(app, sink)
  t.equal(Object.keys(found).length, 2000)
  t.equal(Object.values(found).reduce((sum, { count }) => sum + count, 0), 2100)
})

test('a route under two constraints is one series', async (t) => {
  const { app, sink, origin } = await measuredApp(t, {}, (app) => {
    for (const version of ['1.0.0', '2.0.0']) app.get('/same', { constraints: { version } }, async () => version)
  })
  for (const version of ['1.x', '2.x']) await (await fetch(`${origin}/same`, { headers: { 'accept-version': version } })).text()
  const found = await points(app, sink)
  t.equal(found['GET http 1.1 http.response.status_code=200 http.route=/same'].count, 2)
})

test('HTTP/1.0, injected and pipelined requests count', async (t) => {
  const { app, sink, origin } = await measuredApp(t)
  const socket = net.connect(new URL(origin).port, '127.0.0.1')
  socket.write('GET /users/1 HTTP/1.1\r\nhost: a\r\n\r\nGET /users/2 HTTP/1.1\r\nhost: a\r\n\r\nGET /users/3 HTTP/1.0\r\n\r\n')
  socket.resume()
  await once(socket, 'close')
  await app.inject('/users/4')
  const found = await points(app, sink)
  t.equal(found['GET http 1.1 http.response.status_code=200 http.route=/users/:id'].count, 3)
  t.equal(found['GET http 1.0 http.response.status_code=200 http.route=/users/:id'].count, 1)
})

test('an ended request is not kept, even on an open connection', async (t) => {
  const { gc } = require('../support/bytes-in-use')
  const requests = []
  const { origin } = await measuredApp(t, {}, (app) => {
    app.get('/kept', async (request) => {
      requests.push(new WeakRef(request.raw))
      return 'x'
    })
    app.get('/off', { config: { trace: false } }, async (request) => {
      requests.push(new WeakRef(request.raw))
      return 'x'
    })
  })
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  for (let i = 0; i < 20; i++) {
    const [response] = await once(http.get(`${origin}${i % 2 === 0 ? '/kept' : '/off'}`, { agent }), 'response')
    response.resume()
    await once(response, 'end')
  }
  for (let turn = 0; turn < 50 && requests.filter((ref) => ref.deref() !== undefined).length > 2; turn++) {
    await new Promise((resolve) => setImmediate(resolve))
    gc()
  }
  t.ok(requests.filter((ref) => ref.deref() !== undefined).length <= 2, 'except those that Node itself keeps')
})
