'use strict'

const { once } = require('node:events')
const { Writable, PassThrough } = require('node:stream')
const { text } = require('node:stream/consumers')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { freePort } = require('../../scripts/free-port')
const { serving, clients } = require('../support/serving')
const { upstream, carried } = require('../support/upstream')

const onNode20 = process.versions.node.startsWith('20.')
const packages = onNode20 ? ['undici7'] : ['undici7', 'undici8']
const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

const read = async (url, options) => (await fetch(url, options)).text()

test('a fetch is one client span with all attributes that the conventions require', async (t) => {
  const { origin, port, seen } = await upstream(t)
  const { go, collector } = await serving(t, () => read(`${origin}/items?id=7&sig=secret`, { method: 'POST', body: 'x' }))
  const [span] = await go({ traceparent: PARENT, tracestate: 'v=1' })
  t.equal(await collector.tree(), 'SERVER GET /go\n  CLIENT POST')
  t.same(span.attributes, {
    'http.request.method': 'POST',
    'url.full': `${origin}/items?id=7&sig=REDACTED`,
    'server.address': '127.0.0.1',
    'server.port': port,
    'network.peer.address': '127.0.0.1',
    'network.peer.port': port,
    'network.protocol.version': '1.1',
    'http.response.status_code': 200
  })
  t.match(carried(seen[0]), { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: span.spanId, flags: '01' })
  t.equal(seen[0].tracestate, 'v=1')
})

test('each hop of a redirect has its own span', async (t) => {
  const { origin, seen } = await upstream(t, (req, res, next) => {
    if (req.url !== '/1') return next()
    res.writeHead(302, { location: '/2' })
    res.end()
  })
  const { go } = await serving(t, () => read(`${origin}/1`))
  const spans = await go()
  t.same(spans.map(({ attributes }) => attributes['http.response.status_code']), [302, 200])
  t.same(seen.map((headers) => carried(headers).spanId), spans.map(({ spanId }) => spanId))
})

test('a header that the user sets is never replaced', async (t) => {
  const { origin, seen } = await upstream(t)
  const own = '00-11111111111111111111111111111111-2222222222222222-00'
  const { go } = await serving(t, () => read(origin, { headers: { TraceParent: own, Baggage: 'a=1' } }))
  t.equal((await go({ traceparent: PARENT, tracestate: 'v=1' })).length, 1)
  t.equal(seen[0].traceparent, own)
  t.equal(seen[0].baggage, 'a=1')
  t.notOk('tracestate' in seen[0])
})

test('propagateTo, unsampled and ignored requests work as with node:http', async (t) => {
  const { origin, seen } = await upstream(t)
  const unsampled = PARENT.replace(/01$/, '00')
  const { go } = await serving(t, async () => { await read(`${origin}/yes`); await read(`${origin}/no`) },
    { trace: { outbound: { propagateTo: (url) => url.endsWith('/yes') } } })
  t.equal((await go()).length, 2)
  t.same(seen.map((headers) => 'traceparent' in headers), [true, false])
  t.equal((await go({ traceparent: unsampled })).length, 2, 'an unsampled request adds no span')
  t.match(seen[2].traceparent, /^00-0af7651916cd43dd8448eb211c80319c-(?!b7ad6b7169203331)[0-9a-f]{16}-00$/)

  const ignored = await serving(t, () => read(origin), { trace: { ignore: ['/go'] } })
  t.same(await ignored.go({ traceparent: PARENT }), [])
  t.equal(seen[4].traceparent, PARENT)
})

test('statuses, refused connections and timeouts are errors, and an abort is none', async (t) => {
  let hangs
  const { origin } = await upstream(t, (req, res) => {
    if (req.url === '/hang') return hangs()
    if (req.url === '/reset') return req.socket.resetAndDestroy()
    res.statusCode = Number(req.url.slice(1))
    res.end()
  })
  const closed = await freePort()
  const { go, collector } = await serving(t, async () => {
    await read(`${origin}/404`)
    await t.rejects(read(`http://127.0.0.1:${closed}`))
    await t.rejects(read(`${origin}/reset`))
    // AbortSignal.timeout() aborts with the first one.
    for (const reason of [new DOMException('too long', 'TimeoutError'), undefined]) {
      const controller = new AbortController()
      hangs = () => controller.abort(reason)
      await t.rejects(read(`${origin}/hang`, { signal: controller.signal }))
    }
  })
  await go()
  t.match(await collector.tree(), new RegExp(['SERVER GET /go', '  CLIENT GET ERROR error.type=404',
    '  CLIENT GET ERROR error.type=ECONNREFUSED', '  CLIENT GET ERROR error.type=(UND_ERR_SOCKET|ECONNRESET)',
    '  CLIENT GET ERROR error.type=TimeoutError', '  CLIENT GET$'].join('\n')))
})

test('the span ends at the headers: an unread body does not keep it open', async (t) => {
  const { origin } = await upstream(t, (req, res) => { res.write('x'.repeat(100_000)) })
  let response
  const { go } = await serving(t, async () => { response = await fetch(origin) })
  t.match(await go(), [{ attributes: { 'http.response.status_code': 200 } }])
  await response.body.cancel()
})

test('a 103 does not count as the answer', async (t) => {
  const { origin } = await upstream(t, (req, res) => { res.writeEarlyHints({ link: '</a.css>; rel=preload; as=style' }, () => res.end('x')) })
  const { go } = await serving(t, () => read(origin))
  t.match(await go(), [{ attributes: { 'http.response.status_code': 200 } }])
})

test('exports never appear, and start no trace', async (t) => {
  const { startSink } = require('../support/otlp-sink')
  const { origin } = await upstream(t)
  const sink = await startSink(t)
  const { app, origin: own } = await tracedApp(t, {
    trace: { spanProcessors: undefined, exporter: { url: sink.url } },
    routes: (app) => app.get('/go', async () => { await read(origin); await app.lightTrace.flush(); await read(origin); return 'ok' })
  })
  await read(`${own}/go`)
  await app.lightTrace.flush()
  t.same(sink.spans.map(({ kind }) => kind).sort(), ['CLIENT', 'CLIENT', 'SERVER'])
  for (const { headers } of sink.requests) t.match(headers.traceparent ?? '-00', /-00$/)
})

for (const name of packages) {
  test(`${name}: request, stream, pipeline and Client are traced alike`, async (t) => {
    const { origin, seen } = await upstream(t)
    const undici = require(name)
    const agent = new undici.Agent()
    const client = new undici.Client(origin)
    t.teardown(() => Promise.all([agent.destroy(), client.destroy()]))
    const { go } = await serving(t, async () => {
      await (await undici.request(`${origin}/request`, { dispatcher: agent })).body.text()
      await undici.stream(`${origin}/stream`, { dispatcher: agent }, () => new Writable({ write: (chunk, encoding, done) => done() }))
      await text(new PassThrough().end('x').pipe(undici.pipeline(`${origin}/pipeline`, { method: 'PUT', dispatcher: agent }, ({ body }) => body)))
      await (await client.request({ path: '/client', method: 'GET', headers: ['x-a', '1'] })).body.text()
      await (await undici.fetch(`${origin}/fetch`, { dispatcher: agent })).text()
    })
    const spans = await go()
    t.same(spans.map(({ attributes }) => new URL(attributes['url.full']).pathname), ['/request', '/stream', '/pipeline', '/client', '/fetch'])
    t.same(seen.map((headers) => carried(headers).spanId), spans.map(({ spanId }) => spanId))
  })

  test(`${name}: requests that wait in a bounded pool have the right parent`, async (t) => {
    const { origin, seen } = await upstream(t)
    const undici = require(name)
    const pool = new undici.Pool(origin, { connections: 2 })
    t.teardown(() => pool.destroy())
    const { origin: own, collector } = await tracedApp(t, {
      routes: (app) => app.get('/go/:id', async ({ params }) => {
        await (await pool.request({ path: `/${params.id}`, method: 'GET' })).body.text()
        return 'ok'
      })
    })
    await Promise.all(Array.from({ length: 12 }, (_, id) => read(`${own}/go/${id}`)))
    const spans = await collector.spans()
    t.equal(clients(spans).length, 12)
    for (const client of clients(spans)) {
      const server = spans.find(({ spanId }) => spanId === client.parentSpanId)
      t.equal(new URL(client.attributes['url.full']).pathname, server.attributes['url.path'].slice('/go'.length))
    }
    t.equal(new Set(seen.map((headers) => carried(headers).traceId)).size, 12)
  })

  test(`${name}: each attempt of the retry interceptor is a span`, async (t) => {
    let attempts = 0
    const { origin } = await upstream(t, (req, res, next) => {
      if (++attempts === 3) return next()
      res.statusCode = 503
      res.end()
    })
    const undici = require(name)
    const agent = new undici.Agent().compose(undici.interceptors.retry({ minTimeout: 1, maxTimeout: 1 }))
    t.teardown(() => agent.destroy())
    const { go } = await serving(t, async () => { await (await undici.request(origin, { dispatcher: agent })).body.text() })
    t.same((await go()).map(({ attributes }) => attributes['http.response.status_code']), [503, 503, 200])
  })

  test(`${name}: spans of a tunnel and an upgrade end`, async (t) => {
    const { server, origin } = await upstream(t)
    server.on('upgrade', (req, socket) => { socket.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n') })
    server.on('connect', (req, socket) => { socket.end('HTTP/1.1 200 OK\r\n\r\n') })
    const undici = require(name)
    const client = new undici.Client(origin)
    t.teardown(() => client.destroy())
    const { go } = await serving(t, async () => {
      (await client.upgrade({ path: '/', protocol: 'x' })).socket.destroy()
      ;(await client.connect({ path: 'example.com:443' })).socket.destroy()
    })
    const spans = await go()
    t.same(spans.map(({ name, attributes }) => [name, attributes['http.response.status_code']]), [['GET', 101], ['CONNECT', 200]])
    t.equal(spans[1].attributes['url.full'], 'http://example.com:443')
  })

  test(`${name}: a lower-case method is non-standard`, async (t) => {
    const { origin } = await upstream(t, (req, res) => res.end())
    const undici = require(name)
    const agent = new undici.Agent()
    t.teardown(() => agent.destroy())
    const { go } = await serving(t, async () => { await (await undici.request(origin, { method: 'REPORT', dispatcher: agent })).body.text() })
    t.match(await go(), [{ name: 'HTTP', attributes: { 'http.request.method': '_OTHER', 'http.request.method_original': 'REPORT' } }])
  })
}

test('a WebSocket handshake is a span with an end', { skip: typeof WebSocket === 'undefined' ? 'no WebSocket in this Node' : false }, async (t) => {
  const { createHash } = require('node:crypto')
  const { server, origin } = await upstream(t)
  server.on('upgrade', (req, socket) => {
    const accept = createHash('sha1').update(req.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64')
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`)
    socket.once('data', () => socket.destroy()) // at the client's close frame
  })
  const { go, collector } = await serving(t, async () => {
    const socket = new WebSocket(origin.replace('http:', 'ws:'))
    await once(socket, 'open')
    socket.close()
    await once(socket, 'close')
  })
  await go()
  t.equal(await collector.tree(), 'SERVER GET /go\n  CLIENT GET')
})

test('baggage with only Sentry\'s members is completed, and other baggage is unchanged', async (t) => {
  const { origin, seen } = await upstream(t)
  const long = `sentry-release=${'x'.repeat(8100)}`
  const sent = ['sentry-trace_id=1, sentry-release=2', 'sentry-trace_id=1,mine=2', long, '']
  for (const propagators of ['tracecontext,baggage', 'baggage,tracecontext']) {
    seen.length = 0
    process.env.OTEL_PROPAGATORS = propagators
    t.teardown(() => { delete process.env.OTEL_PROPAGATORS })
    const { go } = await serving(t, async () => { for (const baggage of sent) await read(origin, { headers: { baggage } }) })
    await go({ baggage: `user=alice,sentry-trace_id=9,more=${'y'.repeat(100)}` })
    const [completed, ...others] = seen.map(({ baggage }) => baggage)
    t.equal(completed, `sentry-trace_id=1, sentry-release=2,user=alice,more=${'y'.repeat(100)}`, propagators)
    t.same(others, ['sentry-trace_id=1,mine=2', `${long},user=alice`, ''])
  }
})
