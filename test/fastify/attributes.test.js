'use strict'

const http = require('node:http')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { picture } = require('../support/picture')
const { startSink } = require('../support/otlp-sink')
const { connect } = require('../support/raw-client')

const ok = (app) => app.get('/users/:id', async () => 'ok')

async function attributesOf (t, request, options = {}) {
  const { app, collector, port } = await tracedApp(t, { routes: ok, ...options })
  const client = (await connect(port)).send(request)
  await client.until('HTTP/1.1')
  await client.leave()
  const [{ name, attributes }] = await collector.spans()
  await app.close()
  return { name, attributes, port }
}

test('a span has exactly the required and recommended attributes of the conventions', async (t) => {
  const { collector, port } = await tracedApp(t, { routes: ok })
  const client = (await connect(port)).send(`GET /users/7?q=a%20b&x HTTP/1.1\r\nhost: shop.test:${port}\r\nuser-agent: test/1\r\n\r\n`)
  await client.until('ok')
  const peerPort = client.socket.localPort
  await client.leave()
  const [span] = await collector.spans()
  t.same(span.attributes, {
    'http.request.method': 'GET',
    'http.route': '/users/:id',
    'url.path': '/users/7',
    'url.query': 'q=a%20b&x',
    'url.scheme': 'http',
    'network.protocol.version': '1.1',
    'http.response.status_code': 200,
    'client.address': '127.0.0.1',
    'network.peer.address': '127.0.0.1',
    'network.peer.port': peerPort,
    'server.address': 'shop.test',
    'server.port': port,
    'user_agent.original': 'test/1'
  })
  t.equal(span.kind, 'SERVER')
  t.same(span.status, { code: 'UNSET', message: '' })
  t.same(span.events, [])
})

test('unknown values are left out', async (t) => {
  const { attributes } = await attributesOf(t, 'GET /nowhere? HTTP/1.1\r\nhost: a\r\n\r\n')
  for (const key of ['http.route', 'url.query', 'user_agent.original', 'error.type', 'http.request.method_original']) t.notOk(key in attributes, key)
})

const METHODS = http.METHODS.filter((method) => !['CONNECT'].includes(method))
test('unknown methods are _OTHER, and never in the name', async (t) => {
  const known = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', 'QUERY'])
  const { collector, port } = await tracedApp(t, {
    fastify: { routerOptions: { ignoreTrailingSlash: true } },
    routes (app) {
      for (const method of METHODS) {
        if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
      }
      app.route({ method: METHODS.filter((method) => app.supportedMethods.includes(method)), url: '/a/:b', handler: async () => 'ok' })
    }
  })
  for (const method of METHODS) {
    const client = (await connect(port)).send(`${method} /a/1 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`)
    await client.closed
  }
  const spans = await collector.spans()
  t.equal(spans.length, METHODS.length)
  spans.forEach(({ name, attributes }, i) => {
    const method = METHODS[i]
    if (known.has(method)) {
      t.match([name, attributes['http.request.method'], attributes['http.request.method_original']], [`${method} /a/:b`, method, undefined])
    } else {
      t.match([name, attributes['http.request.method'], attributes['http.request.method_original']], ['HTTP /a/:b', '_OTHER', method])
    }
  })
})

test('OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS replaces the list, case-sensitively', async (t) => {
  process.env.OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS = 'PROPFIND, get,POST'
  t.teardown(() => { delete process.env.OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS })
  const { collector, port } = await tracedApp(t, {
    routes (app) {
      if (!app.supportedMethods.includes('PROPFIND')) app.addHttpMethod('PROPFIND')
      app.route({ method: ['GET', 'POST', 'PROPFIND'], url: '/', handler: async () => 'ok' })
    }
  })
  for (const method of ['GET', 'POST', 'PROPFIND']) await (await connect(port)).send(`${method} / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`).closed
  t.same(await picture(collector), ['HTTP / 200', 'POST / 200', 'PROPFIND / 200'])
})

test('signatures in the query are redacted, everything else is unchanged', async (t) => {
  const { attributes } = await attributesOf(t, 'GET /users/7?a=%7E1&sig=secret&Signature=s%20s&SIG=kept&X-Amz-Signature=&X-Amz-Security-Token=t&X-Goog-Signature=g&AWSAccessKeyId=k&X-Amz-Credential=c&s%69g=hidden&sigh=kept&sig HTTP/1.1\r\nhost: a\r\n\r\n')
  t.equal(attributes['url.query'], 'a=%7E1&sig=REDACTED&Signature=REDACTED&SIG=kept&X-Amz-Signature=REDACTED&X-Amz-Security-Token=REDACTED&X-Goog-Signature=REDACTED&AWSAccessKeyId=REDACTED&X-Amz-Credential=REDACTED&s%69g=REDACTED&sigh=kept&sig')
})

const HOSTS = [
  ['shop.test', 'shop.test', 80], ['shop.test:8080', 'shop.test', 8080], ['127.0.0.1:3000', '127.0.0.1', 3000],
  ['[::1]', '::1', 80], ['[::1]:3000', '::1', 3000], ['[2001:db8::1]:443', '2001:db8::1', 443],
  ['shop.test:', 'shop.test', undefined], ['shop.test:99999', 'shop.test', undefined], ['shop.test:abc', 'shop.test', undefined],
  ['<script>', undefined, undefined], ['a b', undefined, undefined], ['x'.repeat(300), undefined, undefined]
]
for (const [host, address, port] of HOSTS) {
  test(`the Host ${host.slice(0, 30)}`, async (t) => {
    const { attributes } = await attributesOf(t, `GET /users/7 HTTP/1.1\r\nhost: ${host}\r\n\r\n`)
    t.equal(attributes['server.address'], address)
    t.equal(attributes['server.port'], port)
  })
}

test('trustProxy: client, host and scheme are those from the proxy', async (t) => {
  const head = 'GET /users/7 HTTP/1.1\r\nhost: inside:3000\r\nx-forwarded-for: 2001:db8::7, 10.0.0.1\r\nx-forwarded-host: shop.example:8443\r\nx-forwarded-proto: https\r\n\r\n'
  const { attributes } = await attributesOf(t, head, { fastify: { trustProxy: true } })
  t.match(attributes, {
    'client.address': '2001:db8::7', 'network.peer.address': '127.0.0.1', 'url.scheme': 'https', 'server.address': 'shop.example', 'server.port': 8443
  })
  const untrusted = await attributesOf(t, head)
  t.match(untrusted.attributes, { 'client.address': '127.0.0.1', 'url.scheme': 'http', 'server.address': 'inside', 'server.port': 3000 })
})

test('invalid forwarded headers do no harm', async (t) => {
  for (const headers of [
    'x-forwarded-for: \u0000', 'x-forwarded-for: <script>', `x-forwarded-for: ${'1,'.repeat(1000)}`, 'x-forwarded-host: a b', `x-forwarded-host: ${'h'.repeat(5000)}`,
    'x-forwarded-proto: javascript:alert(1)', 'x-forwarded-proto: ,,', 'x-forwarded-host: [', 'x-forwarded-for: ::ffff:127.0.0.1%eth0'
  ].filter((line) => !line.includes('\u0000'))) {
    const { attributes } = await attributesOf(t, `GET /users/7 HTTP/1.1\r\nhost: a\r\n${headers}\r\n\r\n`, { fastify: { trustProxy: true } })
    t.equal(attributes['http.response.status_code'], 200, headers.slice(0, 40))
    t.match(attributes['url.scheme'], /^[a-z][a-z0-9+.-]*$/)
    for (const key of ['client.address', 'server.address']) t.match(attributes[key] ?? '', /^[\w.:[\]-]{0,255}$/)
  }
})

test('values cached for a connection are used only while they are right', async (t) => {
  const { collector, port } = await tracedApp(t, { routes: ok, fastify: { trustProxy: true } })
  const client = await connect(port)
  const asked = [['a', 'one', '1.1.1.1'], ['a', 'one', '1.1.1.1'], ['b', 'one', '1.1.1.1'], ['b', 'two', '1.1.1.1'], ['b', 'two', '2.2.2.2']]
  for (let i = 0; i < asked.length; i++) {
    const [host, agent, forwarded] = asked[i]
    client.send(`GET /users/7 HTTP/1.1\r\nhost: ${host}\r\nuser-agent: ${agent}\r\nx-forwarded-for: ${forwarded}\r\n\r\n`)
    await client.until('\r\n\r\nok', i + 1)
  }
  await client.leave()
  const spans = await collector.spans()
  t.same(spans.map(({ attributes }) => [attributes['server.address'], attributes['user_agent.original'], attributes['client.address']]), asked)
})

test('each request has its own host, even if hosts alternate on a connection', async (t) => {
  const { collector, port } = await tracedApp(t, { routes: ok })
  const client = await connect(port)
  const hosts = Array.from({ length: 600 }, (_, i) => i % 50 === 0 ? `${'h'.repeat(240)}.${i}` : `tenant${i % 300}.test`)
  for (let i = 0; i < hosts.length; i++) {
    client.send(`GET /users/7 HTTP/1.1\r\nhost: ${hosts[i]}:80${i % 2}\r\n\r\n`)
    await client.until('\r\n\r\nok', i + 1)
  }
  await client.leave()
  const spans = await collector.spans()
  t.same(spans.map(({ attributes }) => [attributes['server.address'], attributes['server.port']]), hosts.map((host, i) => [host, 800 + i % 2]))
})

// Fastify 5.0 has these among its top-level options.
const routerOptions = (options) => require('fastify/package.json').version.startsWith('5.0.') ? options : { routerOptions: options }

// F11
test('the route is the registered pattern with its prefix, whatever selects it', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    fastify: routerOptions({ ignoreTrailingSlash: true }),
    routes: (app) => app.register(async (shop) => {
      for (const version of ['1.0.0', '2.0.0']) shop.get('/versioned', { constraints: { version } }, async () => version)
      shop.get('/hosted', { constraints: { host: 'shop.test' } }, async () => 'ok')
      shop.get('/:id(^\\d+$)', async () => 'ok')
      shop.get('/files/*', async () => 'ok')
    }, { prefix: '/shop' })
  })
  const requests = [['/shop/versioned', { 'accept-version': '2.x' }], ['/shop/hosted/', { host: 'shop.test' }], ['/shop/7'], ['/shop/files/a/b/c']]
  for (const [url, headers] of requests) t.equal((await app.inject({ url, headers })).statusCode, 200, url)
  t.strictSame((await collector.spans()).map(({ attributes }) => attributes['http.route']), ['/shop/versioned', '/shop/hosted', '/shop/:id(^\\d+$)', '/shop/files/*'])
})

// F11
test('rewriteUrl: the recorded path is the client\'s', async (t) => {
  const { name, attributes } = await attributesOf(t, 'GET /old/7?q=1 HTTP/1.1\r\nhost: a\r\n\r\n', { fastify: { rewriteUrl: (request) => request.url.replace('/old', '/users') } })
  t.equal(name, 'GET /users/:id')
  t.match(attributes, { 'url.path': '/old/7', 'url.query': 'q=1', 'http.route': '/users/:id' })
})

test('targets that are not a path are recorded', async (t) => {
  const routes = (app) => {
    ok(app)
    app.options('*', async () => 'ok')
  }
  const absolute = await attributesOf(t, 'GET http://other.test/users/7?q=1 HTTP/1.1\r\nhost: a\r\n\r\n', { routes })
  t.match(absolute.attributes, { 'url.path': '/users/7', 'url.query': 'q=1' })
  const asterisk = await attributesOf(t, 'OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n', { routes })
  t.equal(asterisk.attributes['url.path'], '*')
})

test('an IPv6 client is recorded', async (t) => {
  let app
  try {
    app = await tracedApp(t, { routes: ok, listen: { host: '::1' } })
  } catch (error) {
    if (error.code !== 'EADDRNOTAVAIL' && error.code !== 'EAFNOSUPPORT') throw error
    t.comment('no IPv6 here')
    return
  }
  await (await fetch(`http://[::1]:${app.port}/users/7`)).text()
  const [{ attributes }] = await app.collector.spans()
  t.match(attributes, { 'client.address': '::1', 'network.peer.address': '::1', 'server.address': '::1', 'server.port': app.port })
})

test('a user agent that is the name of an attribute duplicates no attribute', async (t) => {
  const sink = await startSink(t)
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { spanProcessors: undefined, exporter: { url: sink.url } },
    routes: (app) => app.get('/', async ({ trace }) => { trace.span.setAttribute('http.response.status_code', 299); return 'ok' })
  })
  await app.inject({ url: '/', headers: { 'user-agent': 'http.response.status_code' } })
  await app.lightTrace.flush()
  const [{ attributes }] = await sink.waitFor(1) // fails if an attribute occurs twice
  t.match(attributes, { 'user_agent.original': 'http.response.status_code', 'http.response.status_code': 299 })
})
