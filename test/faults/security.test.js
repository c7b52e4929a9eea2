'use strict'

// What untrusted callers may send, and what must never leave. Tests the rows of the security notes and the class of each known advisory for
// similar software, against a whole app on a real socket.

const { test } = require('tap')
const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const util = require('node:util')
const { once } = require('node:events')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { collectorFor } = require('../support/collector')
const { startFakeCollector } = require('../support/fake-collector')
const { tracedApp } = require('../support/traced-app')

const TRACE_ID = '12345678901234567890123456789012'
const PARENT_ID = '1234567890123456'
const GOOD = `00-${TRACE_ID}-${PARENT_ID}-01`

const routes = (app) => {
  app.get('/', async (request) => {
    const { trace } = request
    return { baggage: trace.inject({}).baggage ?? '', traceparent: trace.traceparent, out: trace.inject({}) }
  })
  app.get('/found/:id', async () => 'ok')
}

// Sends raw bytes and reads until the server closes.
async function raw (port, text) {
  const socket = net.connect(port, '127.0.0.1')
  let answer = ''
  socket.setEncoding('latin1').on('data', (chunk) => { answer += chunk })
  socket.on('error', () => {})
  socket.end(text, 'latin1')
  await once(socket, 'close')
  return answer
}

function withHeaders (...lines) {
  return `GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`
}

async function answerTo (port, ...lines) {
  const answer = await raw(port, withHeaders(...lines))
  return { status: Number(answer.slice(9, 12)), ...JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) }
}

// S01–S09, CVE-2026-23886, CVE-2024-38525
test('an invalid traceparent starts a new trace, and nothing of it is repeated', async (t) => {
  const { port, collector } = await tracedApp(t, { routes })
  const tail = `${TRACE_ID}-${PARENT_ID}`
  const bad = [
    GOOD.replace('12345678', 'ABCDEFAB'), `ff-${tail}-01`, `FF-${tail}-01`, `0g-${tail}-01`, `-1-${tail}-01`, '',
    `${GOOD}-extra`, `${GOOD}.`, `cc-${tail}-01.x`, `cc-${tail}-01x`, `cc-${tail}-1`, `00-${tail}-0A`,
    `00-${'0'.repeat(32)}-${PARENT_ID}-01`, `00-${TRACE_ID}-${'0'.repeat(16)}-01`, `00-${tail}-\u00e9\u00ff`,
    `00-${tail.replace('1234', '\u0080\u0081\u0082\u0083')}-01`, 'a'.repeat(12_000), '-'.repeat(12_000), ','.repeat(12_000), `${GOOD},${GOOD}`
  ]
  for (const value of bad) {
    const { status, traceparent } = await answerTo(port, `traceparent: ${value}`, 'tracestate: vendor=1')
    t.equal(status, 200)
    t.match(traceparent, /^00-[0-9a-f]{32}-[0-9a-f]{16}-03$/)
    t.notMatch(traceparent, TRACE_ID)
  }
  for (const span of await collector.spans()) {
    t.equal(span.parentSpanId, undefined)
    t.equal(span.traceState, '')
  }
  for (const value of [`01-${tail}-01`, `cc-${tail}-01-x`, `fe-${tail}-03`, ` \t${GOOD}\t `, `00-${tail}-ff`]) {
    t.match((await answerTo(port, `traceparent: ${value}`)).traceparent, new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-0[13]$`))
  }
})

// S13: inject() accepts any value
test('a header that is not a string counts as absent', async (t) => {
  const { app } = await tracedApp(t, { routes, listen: false })
  for (const value of [[GOOD, GOOD], 7, true]) {
    const answer = await app.inject({ url: '/', headers: { traceparent: value, tracestate: value, baggage: value } })
    t.equal(answer.statusCode, 200)
    t.notMatch(answer.json().traceparent, TRACE_ID)
  }
})

// S10, S11
test('a tracestate beyond its limits is dropped, and its traceparent kept', async (t) => {
  const { port } = await tracedApp(t, { routes })
  const bad = [
    Array.from({ length: 33 }, (_, i) => `k${i}=v`).join(','), `${','.repeat(10_000)}=`, `k=${'v'.repeat(8192)}`,
    `${'k'.repeat(257)}=v`, 'K=v', 'k=\u00e9', 'k=a=b', '=v', 'k', '@k=v'
  ]
  for (const value of bad) {
    const { status, out } = await answerTo(port, `traceparent: ${GOOD}`, `tracestate: ${value}`)
    t.equal(status, 200)
    t.match(out.traceparent, TRACE_ID)
    t.equal(out.tracestate, undefined, value.slice(0, 20))
  }
  t.match((await answerTo(port, `traceparent: ${GOOD}`, 'tracestate: a=1,a=2')).out.tracestate, /^a=/)
})

// S12, GHSA-8988-4f7v-96qf, CVE-2026-29181, CVE-2026-40894, the jaeger propagator's URIError
test('a baggage of any size and shape is limited, and changes no prototype', async (t) => {
  const { port } = await tracedApp(t, { routes })
  const many = Array.from({ length: 2000 }, (_, i) => `k${i}=v`).join(',')
  for (const value of [many, '%'.repeat(8000), 'a=%zz,b=%e0%a4,c=1', '__proto__=x,constructor=x,toString=x', '=;=;,,,;', 'a=1;'.repeat(3000)]) {
    const { status, baggage } = await answerTo(port, `traceparent: ${GOOD}`, `baggage: ${value}`)
    t.equal(status, 200)
    t.ok(baggage.length <= 8192)
    t.ok(baggage.split(',').length <= 180)
  }
  const lines = Array.from({ length: 80 }, (_, i) => `baggage: k${i}=${'v'.repeat(100)}`)
  t.ok((await answerTo(port, `traceparent: ${GOOD}`, ...lines)).baggage.length <= 8192)
  t.equal({}.x, undefined)
  t.equal(Object.prototype.polluted, undefined)
})

// CVE-2026-44902: an uncaught error for a malformed request target
test('no request target ends the process, and its span has a bounded name', async (t) => {
  const { port, collector } = await tracedApp(t, { routes })
  const targets = ['http://', 'http://[', '//', '///', '*', '/%', '/%zz', '/%00', '/?%', '/\u00e9\u00ff', '/found/%c0%af', 'http://a b/', ':', '/#', `/${'a'.repeat(9000)}`, '/found/\\..\\x']
  for (const target of targets) await raw(port, `GET ${target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`)
  await raw(port, 'OPTIONS * HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
  t.equal((await answerTo(port)).status, 200)
  const names = new Set((await collector.spans()).map(({ name }) => name))
  for (const name of names) t.match(name, /^(GET|OPTIONS)( \/(found\/:id)?)?$/)
})

// CVE-2023-45142, CVE-2023-47108: span names made by callers
test('callers cannot create span names', async (t) => {
  const { port, collector } = await tracedApp(t, { routes })
  for (let i = 0; i < 50; i++) {
    await raw(port, `GET /scan-${i} HTTP/1.1\r\nhost: h${i}.example\r\nuser-agent: agent-${i}\r\nconnection: close\r\n\r\n`)
    await raw(port, `PROPFIND /found/${i} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`)
  }
  const names = new Set((await collector.spans()).map(({ name }) => name))
  t.ok(names.size <= 3, [...names].join())
})

test('invalid hosts and forwarded headers cause no error and no false attribute', async (t) => {
  for (const trustProxy of [false, true]) {
    const { port, collector } = await tracedApp(t, { routes, fastify: { trustProxy } })
    const hosts = ['', '[', '[::1', 'a:b:c', 'a:99999999', '\u00e9.example', `${'h'.repeat(10_000)}`, 'evil\t.example', '%00', 'user:pass@host', '[::1%25eth0]']
    for (const host of hosts) {
      await raw(port, `GET / HTTP/1.1\r\nhost: ${host}\r\nx-forwarded-for: ${host}, 10.0.0.1\r\nx-forwarded-host: ${host}\r\nx-forwarded-proto: ${host}\r\nforwarded: for=${host}\r\nconnection: close\r\n\r\n`)
    }
    t.equal((await answerTo(port)).status, 200)
    for (const { attributes } of await collector.spans()) {
      t.ok(String(attributes['server.address'] ?? '').length <= 255)
      if (!trustProxy) t.equal(attributes['client.address'], '127.0.0.1')
    }
  }
})

// S14
test('callers who always set the sampled flag are limited by the rate', async (t) => {
  const { app, collector } = await tracedApp(t, { routes, trace: { limits: { sampledPerSecond: 10 } }, listen: false })
  const before = performance.now()
  for (let i = 0; i < 300; i++) await app.inject({ url: '/', headers: { traceparent: GOOD } })
  const seconds = (performance.now() - before) / 1000
  const sampled = (await collector.spans()).length
  t.ok(sampled <= 10 * (seconds + 1) + 1, `${sampled} in ${seconds} s`)
  t.ok(sampled >= 10)
  const { accepted, unsampled, ended } = app.lightTrace.stats().spans
  t.strictSame([accepted + unsampled, ended], [300, 300])
})

// S15, S16
test('untrusted callers choose neither ids nor sampling, and are linked', async (t) => {
  const { app, collector } = await tracedApp(t, { routes, trace: { trustIncoming: false }, listen: false })
  for (let i = 0; i < 3; i++) await app.inject({ url: '/', headers: { traceparent: GOOD.replace(/01$/, '00'), tracestate: 'a=1', baggage: 'a=1' } })
  const spans = await collector.spans()
  t.equal(spans.length, 3)
  t.equal(new Set(spans.map(({ traceId }) => traceId)).size, 3)
  for (const span of spans) {
    t.equal(span.parentSpanId, undefined)
    t.equal(span.traceState, '')
    t.match(span.links, [{ traceId: TRACE_ID, spanId: PARENT_ID }])
  }
})

test('the secrets of the exporter are in no log, error, span or dump', async (t) => {
  const SECRETS = ['hunter2', 'api-key-1234', 'query-key-5678', 'c2VydmljZTpodW50ZXIy']
  const lines = []
  const stream = { write: (line) => lines.push(line) }
  const warnings = []
  const onWarning = (warning) => warnings.push(util.inspect(warning))
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const collector = await startFakeCollector(t)
  collector.script = [{ status: 401 }, { status: 503 }, { resetAfterUpload: true }, { raw: 'garbage\r\n\r\n' }, { partialSuccess: { rejectedSpans: 1, errorMessage: 'no' } }]
  const url = collector.url.replace('http://', 'http://service:hunter2@') + '?key=query-key-5678'
  const app = Fastify({ logger: { level: 'trace', stream } })
  await app.register(lightTrace, { exporter: { url, headers: { 'x-api-key': 'api-key-1234' } } })
  app.get('/', async () => 'ok')
  for (let i = 0; i < 5; i++) {
    await app.inject('/')
    await new Promise((resolve) => setImmediate(resolve))
    await app.lightTrace.flush({ timeoutMs: 500 })
  }
  const dump = [
    ...lines, ...warnings, JSON.stringify(app.lightTrace.stats()),
    util.inspect(app.lightTrace, { depth: 20, showHidden: true }), util.inspect(app.lightTrace.tracer, { depth: 20, showHidden: true }),
    JSON.stringify(app.lightTrace.tracer.settings ?? {})
  ].join('\n')
  await app.close()
  t.ok(lines.some((line) => line.includes('LT_WARN_LOSS')), 'something was logged')
  for (const secret of SECRETS) t.notMatch(dump, secret)
  t.equal(collector.requests[0].headers['x-api-key'], 'api-key-1234')
  t.equal(collector.requests[0].headers.authorization, `Basic ${Buffer.from('service:hunter2').toString('base64')}`)
})

test('an error about an invalid secret does not repeat it', async (t) => {
  const wrong = [
    { url: 'ftp://service:hunter2@host/' }, { url: 'http://host', headers: { 'x-api-key': 'hunter2\r\nx: y' } },
    { url: 'http://host', headers: { 'hunter2\r\n': 'x' } }, { url: 'https://host', key: '-----BEGIN PRIVATE KEY-----\nhunter2\n' }
  ]
  for (const exporter of wrong) {
    const app = Fastify()
    const error = await app.register(lightTrace, { exporter }).then(() => null, (error) => error)
    t.match(error, { code: 'LT_ERR_OPTION_INVALID' })
    t.notMatch(util.inspect(error, { depth: 10 }), /hunter2\\?[rn]|service:hunter2/)
    await app.close().catch(() => {})
  }
})

test('a collector\'s message is logged as one harmless line', async (t) => {
  const lines = []
  const collector = await startFakeCollector(t)
  const hostile = '\u001b[31mfatal\u001b[0m\r\n{"level":60,"msg":"forged"}\u202e\u0000'
  collector.script = [
    { partialSuccess: { rejectedSpans: 1, errorMessage: hostile } },
    { status: 400, body: hostile, headers: { 'content-type': 'text/plain' } }
  ]
  const app = Fastify({ logger: { level: 'info', stream: { write: (line) => lines.push(line) } } })
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: collector.url } })
  for (let i = 0; i < 2; i++) {
    await app.inject('/')
    await new Promise((resolve) => setImmediate(resolve))
    await app.lightTrace.flush()
  }
  const logged = lines.map((line) => JSON.parse(line)).filter(({ code }) => code === 'LT_WARN_LOSS')
  t.equal(logged.length, 2)
  // eslint-disable-next-line no-control-regex
  for (const { msg } of logged) t.notMatch(msg, /[\u0000-\u001f\u007f-\u009f\u202e]/)
  t.notMatch(app.lightTrace.stats().lastError, /[\r\n]/)
})

test('attributes with the names of prototypes are ordinary attributes', async (t) => {
  const { collector, options } = await collectorFor(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { ...options, registerGlobals: false })
  app.get('/', async ({ trace }) => {
    trace.span.setAttributes(JSON.parse('{"__proto__":"x","constructor":"y"}'))
    trace.set('__proto__', { polluted: 1 })
    return 'ok'
  })
  await app.inject('/')
  await collector.spans()
  t.equal({}.polluted, undefined)
  t.equal(Object.prototype.x, undefined)
})

test('the package creates no code from strings', async (t) => {
  const lib = path.join(__dirname, '../../lib')
  const files = fs.readdirSync(lib, { recursive: true }).filter((file) => file.endsWith('.js'))
  t.ok(files.length > 80)
  for (const file of files) {
    t.notMatch(fs.readFileSync(path.join(lib, file), 'utf8'), /\beval\(|new Function|node:vm/, file)
  }
})
