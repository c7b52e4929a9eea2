'use strict'

const http = require('node:http')
const https = require('node:https')
const http2 = require('node:http2')
const { once } = require('node:events')
const { test } = require('tap')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')
const { freePort } = require('../../scripts/free-port')
const { serving, clients } = require('../support/serving')
const { socketPath } = require('../support/socket-path')
const { runInChild } = require('../support/child')
const { startProxy } = require('../support/proxy')
const { upstream, carried } = require('../support/upstream')

const [major, minor] = process.versions.node.split('.').map(Number)
const canInject = major > 23 || (major === 22 && minor >= 12)
const publishesHttp2 = major > 22 || (major === 22 && minor >= 17)
const injection = { skip: canInject ? false : 'this Node publishes nothing before the headers are written' }

// Makes a call with node:http and reads the body.
function call (url, options = {}, send = (request) => request.end()) {
  return new Promise((resolve, reject) => {
    const request = http.request(url, options, (response) => {
      response.resume()
      response.on('end', () => resolve(response))
      response.on('error', reject)
    })
    request.on('error', reject)
    send(request)
  })
}

test('a call with node:http is one client span with all attributes that the conventions require', async (t) => {
  const { origin, port } = await upstream(t, (req, res, next) => { res.statusCode = 201; next() })
  const { go, collector } = await serving(t, () => call(`${origin}/items?id=7&sig=secret`, { method: 'POST' }))
  const [span] = await go()
  t.equal(await collector.tree(), 'SERVER GET /go\n  CLIENT POST')
  t.same(span.attributes, {
    'http.request.method': 'POST',
    'url.full': `${origin}/items?id=7&sig=REDACTED`,
    'server.address': '127.0.0.1',
    'server.port': port,
    'network.peer.address': '127.0.0.1',
    'network.peer.port': port,
    'network.protocol.version': '1.1',
    'http.response.status_code': 201
  })
  t.match(span, { kind: 'CLIENT', status: { code: 'UNSET' } })
})

test('the called service gets the client span as its parent, with trace state and baggage', injection, async (t) => {
  const { origin, seen } = await upstream(t)
  const { go } = await serving(t, () => call(origin))
  const [span] = await go({
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'v=1'
  })
  t.match(carried(seen[0]), { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: span.spanId, flags: '01' })
  t.equal(seen[0].tracestate, 'v=1')
})

test('an unsampled request passes its trace on with a new id and records nothing', injection, async (t) => {
  const { origin, seen } = await upstream(t)
  const { go, app } = await serving(t, () => call(origin))
  t.same(await go({ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00' }), [])
  const { traceId, spanId, flags } = carried(seen[0])
  t.equal(traceId, '0af7651916cd43dd8448eb211c80319c')
  t.not(spanId, 'b7ad6b7169203331')
  t.equal(flags, '00')
  t.match(app.lightTrace.stats().spans, { started: 2, ended: 2, unsampled: 2 })
})

test('an ignored request passes incoming headers on, without a span', injection, async (t) => {
  const { origin, seen } = await upstream(t)
  const { go } = await serving(t, () => call(origin), { trace: { ignore: ['/go'] } })
  t.same(await go({ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }), [])
  t.equal(seen[0].traceparent, '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')
  await go()
  t.notOk('traceparent' in seen[1], 'and nothing without incoming headers')
})

test('a header that the user sets is never replaced', async (t) => {
  const { origin, seen } = await upstream(t)
  const own = '00-11111111111111111111111111111111-2222222222222222-00'
  const { go } = await serving(t, () => call(origin, { headers: { TraceParent: own, baggage: 'a=1' } }))
  t.equal((await go()).length, 1)
  t.equal(seen[0].traceparent, own)
  t.equal(seen[0].baggage, 'a=1')
  t.notOk('tracestate' in seen[0])
})

test('propagateTo decides which hosts get headers, and sends none if it fails', async (t) => {
  const { origin, seen } = await upstream(t)
  const asked = []
  const propagateTo = (url) => {
    asked.push(url)
    if (url.endsWith('/throws')) throw new Error('broken')
    return url.endsWith('/yes')
  }
  const { go } = await serving(t, async () => {
    for (const path of ['/yes', '/no', '/throws']) await call(origin + path)
  }, { trace: { outbound: { propagateTo } } })
  t.equal((await go()).length, 3)
  if (canInject) t.same(asked, [`${origin}/yes`, `${origin}/no`, `${origin}/throws`])
  t.same(seen.map((headers) => 'traceparent' in headers), [canInject, false, false])
})

test('a status of 400 or more is an error of the called service', async (t) => {
  const { origin } = await upstream(t, (req, res) => { res.statusCode = Number(req.url.slice(1)); res.end() })
  const { go, collector } = await serving(t, async () => {
    for (const path of ['/399', '/404', '/503']) await call(origin + path)
  })
  await go()
  t.equal(await collector.tree(), 'SERVER GET /go\n  CLIENT GET\n  CLIENT GET ERROR error.type=404\n  CLIENT GET ERROR error.type=503')
})

test('a call without an answer is an error with its reason', async (t) => {
  const { origin } = await upstream(t, (req) => { if (req.url === '/reset') req.socket.resetAndDestroy() })
  const closed = await freePort()
  const { go } = await serving(t, async () => {
    await t.rejects(call(`http://127.0.0.1:${closed}`))
    await t.rejects(call(`${origin}/reset`))
    await t.rejects(call('http://no-such-host.invalid/'))
    await t.rejects(new Promise((resolve, reject) => https.get(origin.replace('http:', 'https:')).on('error', reject)))
  })
  const spans = await go()
  t.same(spans.map(({ attributes }) => attributes['error.type']).slice(0, 2), ['ECONNREFUSED', 'ECONNRESET'])
  t.match(spans[2].attributes['error.type'], /^(ENOTFOUND|EAI_AGAIN)$/)
  t.match(spans[3], { status: { code: 'ERROR' }, attributes: { 'error.type': /./, 'url.full': /^https:/ } })
  for (const { attributes } of spans) t.notOk('http.response.status_code' in attributes)
})

test('a call that its caller aborts is no error', async (t) => {
  const { origin } = await upstream(t, () => {})
  const { go } = await serving(t, async () => {
    const controller = new AbortController()
    await t.rejects(call(origin, { signal: controller.signal }, (request) => {
      request.end()
      request.once('socket', (socket) => socket.once('connect', () => setImmediate(() => controller.abort())))
    }))
  })
  const spans = await go()
  t.equal(spans.length, 1)
  t.match(spans[0], { status: { code: 'UNSET' } })
  t.notOk('error.type' in spans[0].attributes)
})

test('a call that a library over node:http cancels for its caller is no error either', async (t) => {
  const { origin } = await upstream(t, () => {})
  const { go } = await serving(t, async () => {
    await t.rejects(call(origin, {}, (request) => { // as axios and got do
      request.end()
      const canceled = Object.assign(new Error('canceled'), { name: 'CanceledError', code: 'ERR_CANCELED' })
      request.once('socket', (socket) => socket.once('connect', () => setImmediate(() => request.destroy(canceled))))
    }))
  })
  const spans = await go()
  t.equal(spans.length, 1)
  t.match(spans[0], { status: { code: 'UNSET' } })
  t.notOk('error.type' in spans[0].attributes)
})

test('array headers, Expect and flushed headers are sent unchanged', async (t) => {
  const { origin, port, seen } = await upstream(t, (req, res, next) => { req.resume(); next() })
  const { go } = await serving(t, async () => {
    await call(origin, { headers: ['host', `127.0.0.1:${port}`, 'x-a', '1'] })
    await call(origin, { method: 'PUT', headers: { expect: '100-continue' } }, (request) => request.on('continue', () => request.end('x')))
    await call(origin, { method: 'PUT' }, (request) => { request.flushHeaders(); request.end('x') })
  })
  const spans = await go()
  t.same(spans.map(({ name }) => name), ['GET', 'PUT', 'PUT'])
  for (const { attributes } of spans) t.match(attributes, { 'url.full': `${origin}/`, 'server.port': port, 'http.response.status_code': 200 })
  t.same(seen.map((headers) => 'traceparent' in headers), [false, false, canInject])
})

test('an upgrade ends with 101, and a tunnel with its status', async (t) => {
  const { server, origin, port } = await upstream(t)
  server.on('upgrade', (req, socket) => { socket.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n') })
  server.on('connect', (req, socket) => { socket.end('HTTP/1.1 200 OK\r\n\r\n') })
  const { go, collector } = await serving(t, async () => {
    const upgraded = http.get(origin, { headers: { connection: 'upgrade', upgrade: 'x' } })
    const [, socket] = await once(upgraded, 'upgrade')
    socket.destroy()
    const tunnel = http.request({ port, host: '127.0.0.1', method: 'CONNECT', path: 'example.com:443' }).end()
    const [, tunnelled] = await once(tunnel, 'connect')
    tunnelled.destroy()
  })
  const spans = await go()
  t.equal(await collector.tree(), 'SERVER GET /go\n  CLIENT GET\n  CLIENT CONNECT')
  t.same(spans.map(({ attributes }) => attributes['http.response.status_code']), [101, 200])
})

test('a Unix socket is recorded as the server\'s address', async (t) => {
  const path = socketPath(t)
  const { seen } = await upstream(t, undefined, { path })
  const { go } = await serving(t, () => call('http://localhost/x', { socketPath: path }))
  const [span] = await go()
  t.match(span.attributes, { 'server.address': path, 'url.full': 'http://localhost/x', 'http.response.status_code': 200 })
  t.notOk('server.port' in span.attributes)
  t.equal('traceparent' in seen[0], canInject)
})

test('requests that share a connection, or wait for one, have the right parent', async (t) => {
  const { origin, seen } = await upstream(t)
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const { origin: own, collector } = await tracedApp(t, {
    routes: (app) => app.get('/go/:id', async ({ params }) => { await call(`${origin}/${params.id}`, { agent }); return 'ok' })
  })
  await Promise.all(Array.from({ length: 8 }, (_, id) => fetch(`${own}/go/${id}`).then((response) => response.text())))
  const spans = await collector.spans()
  t.equal(seen.length, 8)
  for (const client of clients(spans)) {
    const server = spans.find(({ spanId }) => spanId === client.parentSpanId)
    t.equal(new URL(client.attributes['url.full']).pathname, server.attributes['url.path'].slice('/go'.length))
  }
})

test('a non-standard method is _OTHER', async (t) => {
  const { origin } = await upstream(t)
  const { go } = await serving(t, () => call(origin, { method: 'MKCOL' }))
  const [span] = await go()
  t.match(span, { name: 'HTTP', attributes: { 'http.request.method': '_OTHER', 'http.request.method_original': 'MKCOL' } })
})

test('credentials of a URL are not recorded', async (t) => {
  const { origin } = await upstream(t)
  const { go } = await serving(t, async () => {
    await call(origin.replace('//', '//user:pass@'))
    await call(origin, { path: 'http://user:pa@ss@example.com/x?y=a@b' })
  })
  const spans = await go()
  t.same(spans.map(({ attributes }) => attributes['url.full']), [`${origin}/`, 'http://REDACTED:REDACTED@example.com/x?y=a@b'])
})

test('a Host header of another server does not change the recorded server', async (t) => {
  const { origin } = await upstream(t)
  const { go } = await serving(t, () => call(origin, { headers: { host: 'shop.example' } }))
  const [span] = await go()
  t.equal(span.attributes['server.address'], '127.0.0.1')
})

test('another subscriber that throws does not keep our span from ending', async (t) => {
  const diagnosticsChannel = require('node:diagnostics_channel')
  const broken = () => { throw new Error('not ours') }
  const { origin } = await upstream(t)
  const name = 'http.client.response.finish'
  const caught = []
  const onUncaught = (error) => caught.push(error.message)
  process.on('uncaughtException', onUncaught)
  t.teardown(() => process.off('uncaughtException', onUncaught))
  diagnosticsChannel.subscribe(name, broken)
  t.teardown(() => diagnosticsChannel.unsubscribe(name, broken))
  const { go } = await serving(t, () => call(origin))
  t.match(await go(), [{ attributes: { 'http.response.status_code': 200 } }])
  t.same(caught, ['not ours'])
})

test('no channel has a subscriber after the last app has closed', async (t) => {
  const diagnosticsChannel = require('node:diagnostics_channel')
  const names = ['http.client.response.finish', 'http.client.request.error', 'undici:request:create', 'undici:request:headers']
  const listened = () => names.filter((name) => diagnosticsChannel.hasSubscribers(name))
  const first = await tracedApp(t, { listen: false })
  const second = await tracedApp(t, { listen: false, trace: { outbound: { undici: false } } })
  t.same(listened(), names)
  await first.app.close()
  t.same(listened(), names.slice(0, 2))
  await second.app.close()
  t.same(listened(), [])
})

test('work without a request is traced once a span is started for it', async (t) => {
  const { origin, seen } = await upstream(t)
  const { app, collector } = await tracedApp(t, { listen: false })
  const { tracer } = app.lightTrace
  if (typeof tracer.startActiveSpan !== 'function') return t.skip('tracer.startActiveSpan does not exist yet')
  await tracer.startActiveSpan('nightly', async (span) => {
    await call(origin)
    span.end()
  })
  t.equal(await collector.tree(), 'INTERNAL nightly\n  CLIENT GET')
  t.equal('traceparent' in seen[0], canInject)
})

test('each app traces the calls of its own requests', async (t) => {
  const { origin } = await upstream(t)
  const routes = (app) => app.get('/go', async () => { await call(origin); return 'ok' })
  const first = await tracedApp(t, { routes })
  const second = await tracedApp(t, { routes, trace: { outbound: { http: false } } })
  await Promise.all([first, second].map((each) => fetch(`${each.origin}/go`).then((response) => response.text())))
  t.equal(await first.collector.tree(), 'SERVER GET /go\n  CLIENT GET')
  t.equal(await second.collector.tree(), 'SERVER GET /go')
})

test('HTTP/2 calls are client spans if Node publishes them', { skip: publishesHttp2 ? false : 'not published by this Node' }, async (t) => {
  const server = http2.createServer((req, res) => {
    if (req.url === '/reset') return res.stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR)
    res.statusCode = req.url === '/missing' ? 404 : 200
    res.end('x')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const session = http2.connect(`http://127.0.0.1:${server.address().port}`)
  t.teardown(() => session.close())
  const get = async (path) => {
    const stream = session.request({ ':path': path })
    stream.resume()
    await once(stream, 'close')
  }
  const { go, collector } = await serving(t, async () => {
    await get('/ok')
    await get('/missing')
    await get('/reset').catch(() => {})
  })
  const [ok] = await go()
  const { port } = server.address()
  t.match(ok.attributes, { 'url.full': `http://127.0.0.1:${port}/ok`, 'server.port': port, 'network.protocol.version': '2', 'http.response.status_code': 200 })
  t.match(await collector.tree(), /^SERVER GET \/go\n {2}CLIENT GET\n {2}CLIENT GET ERROR error.type=404\n {2}CLIENT GET ERROR error.type=ERR_HTTP2_STREAM_ERROR$/)
})

for (const [what, call] of Object.entries({
  'node:http, with the whole URL as its path': (port, url) => new Promise((resolve, reject) => {
    http.get({ host: '127.0.0.1', port, path: url, headers: { host: 'shop.internal:8080' } }, (response) => response.resume().on('end', resolve)).on('error', reject)
  }),
  'undici, with the whole URL as its path': async (port, url) => {
    const client = new (require('undici7').Client)(`http://127.0.0.1:${port}`)
    await (await client.request({ path: url, method: 'GET' })).body.text()
    await client.close()
  },
  ...(Number(process.versions.node.split('.')[0]) >= 22 && {
    'undici 8\'s ProxyAgent': async (port, url) => {
      const { ProxyAgent, request } = require('undici8')
      const dispatcher = new ProxyAgent({ uri: `http://127.0.0.1:${port}`, proxyTunnel: false })
      await (await request(url, { dispatcher })).body.text()
      await dispatcher.close()
    }
  })
})) {
  test(`through a proxy, the recorded server is the called one: ${what}`, async (t) => {
    const { port } = await upstream(t)
    const { go } = await serving(t, () => call(port, 'http://shop.internal:8080/items?id=7'))
    t.match(await go(), [{
      attributes: {
        'url.full': 'http://shop.internal:8080/items?id=7', 'server.address': 'shop.internal', 'server.port': 8080, 'network.peer.address': '127.0.0.1', 'network.peer.port': port
      }
    }])
  })
}

const hasEnvProxy = process.allowedNodeEnvironmentFlags.has('--use-env-proxy') ? false : 'this Node uses no proxy of the environment'

// Node 26's fetch sends the full URL to the proxy, earlier versions open a tunnel. node:http sends the full URL in all versions.
test('through the environment\'s proxy, the recorded server is the called one: fetch and node:http', { skip: hasEnvProxy || without('testing') }, async (t) => {
  const { port } = await upstream(t)
  const proxy = await startProxy(t)
  const { said, stderr } = await runInChild(t, async ({ Fastify, lightTrace, root, say }, url) => {
    const { createCollector } = require(`${root}/lib/features/testing/testing.js`)
    const collector = createCollector()
    const app = Fastify()
    await app.register(lightTrace, { spanProcessors: [collector] })
    app.get('/', async () => {
      await (await fetch(`${url}?by=fetch`)).text()
      await new Promise((resolve, reject) => { require('node:http').get(`${url}?by=http`, (response) => response.resume().on('end', resolve)).on('error', reject) })
    })
    await app.inject('/')
    say((await collector.spans()).filter(({ name }) => name === 'GET').map(({ attributes }) => attributes))
    await app.close()
  }, { args: [`http://localhost:${port}/items`], env: { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxy.url } }).exit
  const expected = (by) => ({
    'url.full': `http://localhost:${port}/items?by=${by}`, 'server.address': 'localhost', 'server.port': port, 'network.peer.address': '127.0.0.1', 'network.peer.port': Number(new URL(proxy.url).port)
  })
  t.match(said, [[expected('fetch'), expected('http')]], stderr)
  const target = proxy.seen.map((request) => `${request.method} ${request.target}`)
  t.match(target, [Number(process.versions.node.split('.')[0]) >= 26 ? `GET http://localhost:${port}/items?by=fetch` : `CONNECT localhost:${port}`, `GET http://localhost:${port}/items?by=http`])
})
