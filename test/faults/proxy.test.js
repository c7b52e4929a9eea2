'use strict'

// A proxy between the exporter and the collector, of both kinds: forwarding and tunneling.

const { test } = require('tap')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { without } = require('../support/features')
const { makeCertificate } = require('../support/certificate')
const { startFakeCollector } = require('../support/fake-collector')
const { startExporter } = require('../support/chunk-writer')
const { startMetricSink } = require('../support/metric-sink')
const { listenAnew } = require('../support/new-port')
const { startProxy } = require('../support/proxy')
const { runInChild } = require('../support/child')
const { resolveOptions } = require('../../lib/config/options')

Math.random = () => 0

const ca = makeCertificate({ name: 'test authority', isCa: true })
const server = makeCertificate({ name: 'collector', issuer: ca })

const KINDS = [['http', undefined], ['https', server]]

// An exporter with the options that are resolved from the environment.
function through (t, proxyUrl, collector, more = {}) {
  const { exporter } = resolveOptions({ exporter: { url: collector.url, ...(collector.url.startsWith('https') && { ca: ca.cert }) } }, { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl })
  const { url, proxy, headers } = exporter
  return startExporter(t, { url, ...more, exporter: { proxy, headers, ca: exporter.ca, ...more.exporter } })
}

test('a proxy that repeats the rejected password is quoted without it', async (t) => {
  const collector = await startFakeCollector(t, { tls: server })
  for (const said of ['secretword', 'SecretWord', 'secret\0word', 'secret\x1bword', 'secret\x7fword', 'c2VjcmV0d29yZA==']) {
    const proxy = net.createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end(`HTTP/1.1 407 not ${said}\r\n\r\n`))
    })
    t.teardown(() => proxy.close())
    const { exporter, stats, write, logged } = through(t, `http://user:secretword@127.0.0.1:${await listenAnew(proxy)}`, collector, { closeTimeoutMs: 500 })
    write(1)
    await exporter.flush({ timeoutMs: 300 })
    t.match(stats.lastError, /the proxy answers '(\(not quoted|.*not \*+)/)
    t.notMatch(JSON.stringify([logged, stats.lastError]), /secret.*word|c2VjcmV0d29yZA/i)
    await exporter.close()
  }
})

// T28
for (const [kind, tls] of KINDS) {
  test(`${kind}: spans go through the proxy over one kept connection`, async (t) => {
    const collector = await startFakeCollector(t, { tls })
    const proxy = await startProxy(t)
    const { exporter, stats, write } = through(t, proxy.url, collector)
    for (let i = 0; i < 3; i++) {
      write(10)
      await exporter.flush()
    }
    t.equal(stats.delivered, 30)
    t.equal(stats.exportsFailed, 0)
    t.equal(collector.requests.length, 3)
    t.equal(proxy.connections, 1)
    const { host } = new URL(collector.url)
    t.strictSame(proxy.seen.map(({ method, target }) => [method, target]), tls === undefined
      ? Array(3).fill(['POST', collector.url])
      : [['CONNECT', host]])
    t.equal(collector.requests[0].headers.host, host)
    t.notOk('proxy-authorization' in collector.requests[0].headers)
  })

  test(`${kind}: the proxy's user and password are sent only to the proxy, and never logged`, async (t) => {
    const collector = await startFakeCollector(t, { tls })
    const proxy = await startProxy(t, { auth: 'us er:p@ss' })
    const withUser = (user) => proxy.url.replace('http://', `http://${user}@`)
    const right = through(t, withUser('us%20er:p%40ss'), collector)
    right.write(1)
    await right.exporter.flush()
    t.equal(right.stats.delivered, 1)
    t.notOk('proxy-authorization' in collector.requests[0].headers)

    const wrong = through(t, withUser('user:secretword'), collector, { closeTimeoutMs: 500 })
    wrong.write(2)
    await wrong.exporter.flush({ timeoutMs: 300 })
    t.equal(wrong.exporter.queued + wrong.exporter.inFlight, 2, 'they wait')
    t.match(wrong.stats.lastError, /407/)
    t.match(wrong.stats.lastError, /user and password/)
    await wrong.exporter.close()
    t.equal(wrong.stats.dropped.shutdown_deadline, 2)
    t.equal(wrong.identity(), 0)
    t.notMatch(JSON.stringify([wrong.logged, wrong.stats.lastError]), /secretword|c2VjcmV0d29yZA/)
    t.match(JSON.stringify(wrong.logged), /through the proxy http:\/\/127\.0\.0\.1:\d+/)
  })

  test(`${kind}: an outage of the proxy loses nothing`, async (t) => {
    const collector = await startFakeCollector(t, { tls })
    const proxy = await startProxy(t)
    const { exporter, stats, write, identity, logged } = through(t, proxy.url, collector, { buffer: { flushDelayMs: 10 } })
    write(5)
    await exporter.flush()
    await proxy.down()
    write(5)
    await exporter.flush()
    t.match(stats.lastError, /ECONNREFUSED|ECONNRESET/)
    t.match(logged[0].message, /through the proxy/)
    await proxy.up()
    await collector.until(() => stats.delivered === 10)
    t.equal(identity(), 0)
    t.strictSame(collector.duplicates, [])
  })

  test(`${kind}: a proxy that does not answer, or answers 503, delays the spans`, async (t) => {
    const collector = await startFakeCollector(t, { tls })
    const proxy = await startProxy(t)
    const { stats, write, identity, exporter } = through(t, proxy.url, collector, { buffer: { flushDelayMs: 10 }, exporter: { timeoutMs: 200 } })
    proxy.isHanging = true
    write(5)
    await exporter.flush({ timeoutMs: 1000 })
    t.match(stats.lastError, /in time/)
    proxy.isHanging = false
    proxy.refuse = 503
    const before = stats.exportsFailed
    await collector.until(() => stats.exportsFailed > before + 1)
    t.match(stats.lastError, /503/)
    proxy.refuse = 0
    await collector.until(() => stats.delivered === 5)
    t.equal(identity(), 0)
  })

  test(`${kind}: a collector that is down behind the proxy counts as down`, async (t) => {
    const collector = await startFakeCollector(t, { tls })
    const proxy = await startProxy(t)
    const { stats, write, identity, exporter } = through(t, proxy.url, collector, { buffer: { flushDelayMs: 10 } })
    write(5)
    await exporter.flush()
    await collector.down()
    write(5)
    const before = stats.exportsFailed
    await collector.until(() => stats.exportsFailed > before)
    t.equal(exporter.queued + exporter.inFlight, 5)
    await collector.up()
    await collector.until(() => stats.delivered === 10)
    t.equal(identity(), 0)
  })
}

test('the collector\'s certificate is verified through the tunnel', async (t) => {
  const collector = await startFakeCollector(t, { tls: makeCertificate() })
  const proxy = await startProxy(t)
  const { exporter, stats, write } = through(t, proxy.url, collector)
  write(3)
  await exporter.flush()
  t.equal(collector.requests.length, 0)
  t.match(stats.lastError, /certificate|CERT/i)
  await exporter.close()
  t.equal(stats.dropped.shutdown_deadline, 3)
})

test('an answer of the proxy before the tunnel is open does not count as the collector\'s', async (t) => {
  const answers = ['SSH-2.0-OpenSSH_9\r\n\r\n', 'HTTP/1.1 200 OK\r\n\r\nhello', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}`, 'HTTP/1.1 301 Moved\r\nlocation: /\r\n\r\n', '']
  const collector = await startFakeCollector(t, { tls: server })
  for (const answer of answers) {
    const proxy = net.createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', () => socket.end(answer))
    })
    const { exporter, stats, write } = through(t, `http://127.0.0.1:${await listenAnew(proxy)}`, collector, { closeTimeoutMs: 300 })
    write(1)
    await exporter.close()
    t.strictSame({ ...stats.dropped }, { shutdown_deadline: 1 }, JSON.stringify(answer.slice(0, 40)))
    t.not(stats.lastError, null)
    proxy.close()
  }
  t.equal(collector.requests.length, 0)
})

for (const echo of ['us3r:p4ss/word', 'p4ss\\/word', 'p4ss%2Fword', 'Basic dXMzcjpwNHNzL3dvcmQ=', 'dXMzcjpwNHNzL3dvcmQ']) {
  test(`a proxy that repeats '${echo}' in its status line is quoted without it`, async (t) => {
    const proxy = net.createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', () => socket.end(`HTTP/1.1 407 no ${'x'.repeat(40)}${echo}\r\n\r\n`))
    })
    t.teardown(() => proxy.close())
    const collector = await startFakeCollector(t, { tls: server })
    const { exporter, stats, write, logged } = through(t, `http://us3r:p4ss%2fword@127.0.0.1:${await listenAnew(proxy)}`, collector, { closeTimeoutMs: 300 })
    write(1)
    await exporter.close()
    t.match(stats.lastError, /'(HTTP\/1.1 407 no x{40}\*+|\(not quoted)/)
    t.notMatch(stats.lastError + JSON.stringify(logged), /p4|dXMz/)
  })
}

function authorityFile (t) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'light-trace-'))
  t.teardown(() => fs.rmSync(dir, { recursive: true }))
  fs.writeFileSync(path.join(dir, 'ca.pem'), ca.cert)
  return path.join(dir, 'ca.pem')
}

// In a separate process, because NODE_EXTRA_CA_CERTS makes Node trust the proxy's CA and a variable makes it use proxies.
for (const [kind, tls] of KINDS) {
  test(`${kind}: an app behind a proxy with TLS sends its spans and closes normally`, async (t) => {
    const collector = await startFakeCollector(t, { tls })
    const proxy = await startProxy(t, { tls: server, auth: 'user:word' })
    const { code, said, stderr } = await runInChild(t, async ({ Fastify, lightTrace, say }) => {
      const app = Fastify()
      await app.register(lightTrace, { registerGlobals: false })
      app.get('/', async () => 'ok')
      await app.inject('/')
      await app.close()
      say(app.lightTrace.stats())
    }, {
      env: {
        NODE_EXTRA_CA_CERTS: authorityFile(t),
        NODE_USE_ENV_PROXY: '1',
        http_proxy: proxy.url.replace('https://', 'https://user:word@'),
        https_proxy: proxy.url.replace('https://', 'https://user:word@'),
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.url
      }
    }).exit
    t.equal(code, 0, stderr)
    t.match(said.at(-1), { spans: { accepted: 1, delivered: 1 }, lastError: null })
    t.equal(collector.requests.length, 1)
    t.equal(proxy.seen.length, 1)
  })
}

test('metrics use the proxy, too', { skip: without('metrics') }, async (t) => {
  const collector = await startMetricSink(t)
  const proxy = await startProxy(t)
  const { code, said } = await runInChild(t, async ({ Fastify, lightTrace, say }) => {
    const app = Fastify()
    await app.register(lightTrace, { registerGlobals: false, metrics: true })
    app.get('/', async () => 'ok')
    await app.inject('/')
    await app.close()
    say(app.lightTrace.stats())
  }, { env: { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxy.url, OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin } }).exit
  t.equal(code, 0)
  t.match(said[0], { spans: { delivered: 1 }, lastError: null })
  t.strictSame(proxy.seen.map(({ target }) => target).sort(), [`${collector.origin}/v1/metrics`, `${collector.origin}/v1/traces`])
  t.equal(collector.exports.length, 1)
})

test('an open tunnel does not keep a process alive', async (t) => {
  const collector = await startFakeCollector(t, { tls: server })
  const proxy = await startProxy(t)
  const { code, said } = await runInChild(t, async ({ Fastify, lightTrace, say }) => {
    const app = Fastify()
    await app.register(lightTrace, { registerGlobals: false })
    app.get('/', async () => 'ok')
    await app.inject('/')
    await app.lightTrace.flush()
    say(app.lightTrace.stats())
  }, { env: { NODE_EXTRA_CA_CERTS: authorityFile(t), NODE_USE_ENV_PROXY: '1', HTTPS_PROXY: proxy.url, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.url } }).exit
  t.equal(code, 0)
  t.match(said[0], { spans: { delivered: 1 } })
})
