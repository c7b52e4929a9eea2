'use strict'

const fs = require('node:fs')
const path = require('node:path')
const util = require('node:util')
const { test } = require('tap')
const zlib = require('node:zlib')
const { resolveOptions } = require('../../lib/config/options')

const tls = path.join(__dirname, '../fixtures/tls')
const certFile = path.join(tls, 'cert.pem')
const keyFile = path.join(tls, 'key.pem')
const otherKeyFile = path.join(tls, 'other-key.pem')

const fromEnvironment = (environment) => settled({}, environment)
const fromCode = (exporter, environment) => settled({ exporter }, environment)

function settled (options, environment = {}) {
  const { exporter, warnings } = resolveOptions(options, environment)
  return { exporter, url: exporter.url, headers: { ...exporter.headers }, codes: warnings.map(({ code }) => code), logged: warnings.map(({ message }) => message).join('\n') }
}

test('the endpoint follows the rules of OpenTelemetry\'s OTLP exporter', (t) => {
  const rules = [
    [{}, 'http://localhost:4318/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }, 'http://collector:4318/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/' }, 'http://collector:4318/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector/base' }, 'https://collector/base/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector/base/' }, 'https://collector/base/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector/?key=1' }, 'https://collector/v1/traces?key=1'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: ' http://collector:1 ' }, 'http://collector:1/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'HTTP://[::1]:4318' }, 'http://[::1]:4318/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://bücher.example' }, 'http://xn--bcher-kva.example/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318' }, 'http://collector:4318/'],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/x' }, 'http://collector:4318/x'],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://a/x', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://b' }, 'http://a/x'],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://b' }, 'http://b/v1/traces']
  ]
  for (const [environment, url] of rules) {
    const settings = fromEnvironment(environment)
    t.equal(settings.url, url)
    t.same(settings.codes, [])
  }
  t.end()
})

test('a URL from code is used unchanged, and gets the usual path if it has none', (t) => {
  const rules = [
    ['http://collector:4318', 'http://collector:4318/v1/traces'],
    ['http://collector:4318/', 'http://collector:4318/'],
    ['http://collector:4318/x?y=z', 'http://collector:4318/x?y=z'],
    [new URL('http://collector:4318'), 'http://collector:4318/v1/traces'],
    [new URL('http://collector:4318/x'), 'http://collector:4318/x']
  ]
  for (const [given, url] of rules) t.equal(fromCode({ url: given }, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://other' }).url, url)
  t.equal(fromCode({ compression: 'gzip' }, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://other' }).url, 'http://other/v1/traces')
  t.end()
})

test('metrics and logs are sent to the URL from code, each to its own path', (t) => {
  for (const [url, base] of [['http://a', 'http://a'], ['http://b/x/v1/traces', 'http://b/x'], ['http://c/own', 'http://c']]) {
    const { metrics, exportedLogs } = resolveOptions({ exporter: { url }, metrics: true, logs: { export: true } }, {})
    t.same([metrics.exporter.url, exportedLogs.exporter.url], [`${base}/v1/metrics`, `${base}/v1/logs`])
  }
  t.end()
})

test('a variable names one collector, and is ignored if it contains a comma', (t) => {
  for (const name of ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']) {
    for (const list of ['http://a:4318,http://b:4318', 'http://a,http://b', 'http://a/x, http://b', 'http://a,', ',', 'https://user:hunter2@a/x,https://b/?key=hunter2']) {
      const { url, codes, logged } = fromEnvironment({ [name]: list })
      t.same([url, codes], ['http://localhost:4318/v1/traces', ['LT_WARN_ENV']], list)
      t.match(logged, `${name} is ignored: it must be a URL such as 'http://localhost:4318', with http: or https: and no comma`)
      t.notMatch(logged, 'hunter2')
    }
  }
  t.equal(fromCode({ url: 'http://a/x?y=1,2' }).url, 'http://a/x?y=1,2', 'in code it is one URL, whatever it contains')
  t.end()
})

// P05
test('an invalid endpoint is logged once, without its secrets, and the default applies', (t) => {
  const endpoints = ['foo', ':4318', 'localhost:4318', 'ftp://collector', 'http://', 'http://:4318', 'http://a:99999', 'http://[::1', 'http://user:hunter2@', 'ftp://user:hunter2@x', 'ftp://x/?key=hunter2', 'unix:///x', `http://${'a'.repeat(9000)}`]
  for (const endpoint of endpoints) {
    const { url, codes, logged } = fromEnvironment({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })
    t.equal(url, 'http://localhost:4318/v1/traces', endpoint.slice(0, 40))
    t.same(codes, ['LT_WARN_ENV'])
    t.match(logged, 'OTEL_EXPORTER_OTLP_ENDPOINT')
    t.notMatch(logged, 'hunter2')
  }
  t.equal(fromEnvironment({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'foo', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://b' }).url, 'http://b/v1/traces')
  for (const url of [...endpoints, 5, null]) t.throws(() => fromCode({ url }), { code: 'LT_ERR_OPTION_INVALID', message: /^(?!.*hunter2).*`exporter.url`/ })
  t.end()
})

test('user and password of the URL become a header, and appear nowhere', (t) => {
  const authorization = `Basic ${Buffer.from('us er:hunter2').toString('base64')}`
  const from = [
    fromEnvironment({ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://us%20er:hunter2@collector/?api_key=hunter3', OTEL_EXPORTER_OTLP_HEADERS: 'x-token=hunter4' }),
    fromCode({ url: 'https://us%20er:hunter2@collector/v1/traces?api_key=hunter3', headers: { 'X-Token': 'hunter4' } })
  ]
  for (const { exporter, headers, codes } of from) {
    t.equal(exporter.url, 'https://collector/v1/traces?api_key=hunter3')
    t.same(headers, { authorization, 'x-token': 'hunter4' })
    t.same(codes, [])
    const settings = { exporter }
    const seen = [util.inspect(settings, { depth: 9, showHidden: true, getters: true }), JSON.stringify(settings), JSON.stringify({ ...exporter }), exporter.printableUrl]
    t.notMatch(seen.join(), /hunter|Basic/)
    t.equal(exporter.printableUrl, 'https://collector/v1/traces')
  }
  t.equal(fromCode({ url: 'https://a:b@c', headers: { Authorization: 'Bearer x' } }).headers.authorization, 'Bearer x')
  const broken = fromCode({ url: 'https://a:%zz@c' })
  t.same(broken.codes, ['LT_WARN_ENDPOINT'])
  t.same(broken.headers, {})
  t.equal(broken.url, 'https://c/v1/traces')
  t.end()
})

test('headers, like attributes, may be a Map, Headers or another list of pairs', (t) => {
  const headers = { 'x-token': 'hunter4', 'x-scope-orgid': 'tenant' }
  for (const given of [headers, new Map(Object.entries(headers)), new Headers(headers), new URLSearchParams(headers)]) {
    t.same(fromCode({ url: 'https://collector', headers: given }).headers, headers, given.constructor.name)
  }
  t.throws(() => fromCode({ url: 'https://collector', headers: new Map([[Symbol('x'), 'hunter4']]) }), { code: 'LT_ERR_OPTION_INVALID', message: /^((?!hunter4).)*$/ })
  t.match(resolveOptions({ resource: new Map([['team', 'a']]) }, {}).resource.attributes, { team: 'a' })
  t.end()
})

test('an exporter that gets no spans, because a provider creates them, is logged', (t) => {
  const tracerProvider = { getTracer () {} }
  const codes = (options) => settled({ tracerProvider, ...options }).codes
  t.same(codes({ exporter: { url: 'http://localhost:1' } }), ['LT_WARN_EXPORTER'])
  t.same(codes({ exporter: 'console' }), ['LT_WARN_EXPORTER'])
  t.same(codes({ exporter: { url: 'http://localhost:1' }, metrics: true }), [], 'it exports the metrics')
  t.same(codes({ exporter: 'none' }), [])
  t.same(codes({}), [])
  const spanProcessors = [{ onStart () {}, onEnd () {}, forceFlush () {}, shutdown () {} }]
  t.same(codes({ spanProcessors, exporter: { url: 'http://localhost:1' } }), ['LT_WARN_EXPORTER'])
  t.same(codes({ tracerProvider: undefined, spanProcessors, exporter: { url: 'http://localhost:1' } }), [], 'it is used next to processors')
  t.same(codes({ tracerProvider: undefined, spanProcessors, exporter: { url: 'http://localhost:4317' } }), ['LT_WARN_PROTOCOL'], 'and is checked as usual')
  t.end()
})

test('headers that look like credentials are sent over plain HTTP to another machine only with insecureHeaders', (t) => {
  const credentials = { authorization: 'a', 'api-key': 'b', 'x-honeycomb-team': 'c', 'dd-api-key': 'd', 'lightstep-access-token': 'e' }
  const headers = { ...credentials, 'x-scope-orgid': 'tenant' }

  const refused = fromCode({ url: 'http://collector:4318', headers })
  t.same(refused.headers, { 'x-scope-orgid': 'tenant' })
  t.same(refused.codes, ['LT_WARN_INSECURE_HEADERS'])
  t.match(refused.logged, /authorization, api-key.*insecureHeaders/)
  t.same(fromCode({ url: 'http://u:p@127.0.0.1.example.com' }).headers, {})
  t.same(fromCode({ url: 'http://u:p@[::ffff:7f1:2]' }).headers, {})

  for (const host of ['localhost', 'app.localhost', '127.0.0.1', '127.1.2.3', '2130706433', '[::1]', '[::ffff:127.0.0.1]']) {
    const settings = fromCode({ url: `http://${host}:4318`, headers })
    t.same(settings.headers, headers, host)
    t.same(settings.codes, [])
  }
  t.same(fromCode({ url: 'https://collector', headers }).headers, headers)

  const asked = [
    fromCode({ url: 'http://collector', headers, insecureHeaders: true }),
    fromEnvironment({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector', OTEL_EXPORTER_OTLP_INSECURE: 'true', OTEL_EXPORTER_OTLP_HEADERS: Object.entries(headers).map((pair) => pair.join('=')).join() })
  ]
  for (const settings of asked) {
    t.same(settings.headers, headers)
    t.same(settings.codes, ['LT_WARN_INSECURE_HEADERS'])
  }
  t.end()
})

// P07
test('header variables are percent-decoded pairs, and invalid ones are logged and skipped', (t) => {
  const env = (text) => fromEnvironment({ OTEL_EXPORTER_OTLP_HEADERS: text })
  const read = [
    ['a=b', { a: 'b' }],
    [' A = b , c=d,,', { a: 'b', c: 'd' }],
    ['a=b=c', { a: 'b=c' }],
    ['a=b%20c%2Cd', { a: 'b c,d' }],
    ['a=', { a: '' }],
    ['a=1,a=2', { a: '2' }],
    ['__proto__=x', JSON.parse('{ "__proto__": "x" }')]
  ]
  for (const [text, headers] of read) {
    const settings = env(text)
    t.same(Object.entries(settings.exporter.headers), Object.entries(headers), text)
    t.same(settings.codes, [])
  }

  const skipped = ['Authorization: Bearer hunter2=', '%zz=x', 'a=%zz', 'a=%0d%0aX: y', 'k\r\nX: y=1', 'a b=c', 'a', '=c', 'ü=x', 'a=%00', 'a=%F0%9F%98%80', 'content-type=x', 'Host=x', 'Content-Length=1', `a=${'x'.repeat(9000)}`]
  for (const pair of skipped) {
    const settings = env(`${pair},kept=1`)
    t.same(settings.headers, { kept: '1' }, pair.slice(0, 20))
    t.same(settings.codes, ['LT_WARN_ENV'], pair.slice(0, 20))
    t.notMatch(settings.logged, /[\r\n]/)
    t.notMatch(settings.logged, 'hunter2')
  }
  t.same(env('a=1,'.repeat(1e6 / 4)).headers, {})
  t.equal(Object.keys(env(Array.from({ length: 70 }, (_, index) => `h${index}=1`).join()).headers).length, 64)

  const specific = fromEnvironment({ OTEL_EXPORTER_OTLP_HEADERS: 'a=1,b=1', OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'B=2' })
  t.same(specific.headers, { a: '1', b: '2' })
  t.same(settled({ exporter: { headers: { B: '3', c: undefined } } }, { OTEL_EXPORTER_OTLP_HEADERS: 'a=1,b=1' }).headers, { a: '1', b: '3' })
  t.end()
})

test('invalid headers from code throw, and their values are not shown', (t) => {
  const wrong = [{ 'Authorization: hunter2': '' }, { a: 'hunter2\r\nb: c' }, { 'a b': 'hunter2' }, { a: ['hunter2'] }, { a: null }, { host: 'hunter2' }, 'hunter2', ['hunter2'], { a: 'hunter2\0' }]
  for (const headers of wrong) t.throws(() => fromCode({ headers }), { code: 'LT_ERR_OPTION_INVALID', message: /^(?!.*hunter2).*`exporter.headers/ })
  t.end()
})

test('a Node without zstd sends gzip instead, and logs it', (t) => {
  const { exporter, codes } = fromEnvironment({ OTEL_EXPORTER_OTLP_COMPRESSION: 'zstd' })
  const hasZstd = zlib.zstdCompress !== undefined
  t.equal(exporter.compression, hasZstd ? 'zstd' : 'gzip')
  t.same(codes, hasZstd ? [] : ['LT_WARN_COMPRESSION'])
  t.end()
})

test('compression and timeout come from the most specific variable, and 0 means no limit', (t) => {
  const rules = [
    [{ OTEL_EXPORTER_OTLP_COMPRESSION: 'GZIP' }, { compression: 'gzip' }],
    [{ OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip', OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'none' }, { compression: 'none' }],
    [{ OTEL_EXPORTER_OTLP_TIMEOUT: '500' }, { timeoutMs: 500 }],
    [{ OTEL_EXPORTER_OTLP_TIMEOUT: '500', OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '700' }, { timeoutMs: 700 }],
    [{ OTEL_EXPORTER_OTLP_TIMEOUT: '0' }, { timeoutMs: 2 ** 31 - 1 }],
    [{ OTEL_EXPORTER_OTLP_TIMEOUT: '99999999999' }, { timeoutMs: 2 ** 31 - 1 }],
    [{ OTEL_BSP_EXPORT_TIMEOUT: '500' }, { timeoutMs: 500 }],
    [{ OTEL_BSP_EXPORT_TIMEOUT: '30000' }, { timeoutMs: 10000 }],
    [{ OTEL_BSP_EXPORT_TIMEOUT: '30000', OTEL_EXPORTER_OTLP_TIMEOUT: '0' }, { timeoutMs: 30000 }]
  ]
  for (const [environment, expected] of rules) t.match(fromEnvironment(environment).exporter, expected)
  t.equal(fromCode({ timeoutMs: 0 }).exporter.timeoutMs, 2 ** 31 - 1)
  t.match(fromEnvironment({ OTEL_EXPORTER_OTLP_COMPRESSION: 'br' }), { codes: ['LT_WARN_ENV'], exporter: { compression: 'none' } })
  t.end()
})

test('an unsupported protocol is logged once, and port 4317 suggests 4318', (t) => {
  const logged = (environment, exporter) => {
    const { codes, logged, url } = settled(exporter === undefined ? {} : { exporter }, environment)
    return { codes, logged, url }
  }
  for (const protocol of ['grpc', 'GRPC', 'http/json']) {
    for (const name of ['OTEL_EXPORTER_OTLP_PROTOCOL', 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL']) {
      const { codes, logged: message, url } = logged({ [name]: protocol })
      t.same(codes, ['LT_WARN_PROTOCOL'])
      t.match(message, 'http/protobuf')
      t.notMatch(message, '4318')
      t.equal(url, 'http://localhost:4318/v1/traces')
    }
  }
  t.match(logged({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4317' }), { codes: ['LT_WARN_PROTOCOL'], logged: /grpc.*4318/ })
  t.match(logged({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4317' }), { codes: ['LT_WARN_PROTOCOL'], logged: '4318' })
  t.match(logged({}, { url: 'http://collector:4317' }), { codes: ['LT_WARN_PROTOCOL'], logged: '4318' })
  t.same(logged({ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }).codes, [])
  t.same(logged({ OTEL_EXPORTER_OTLP_PROTOCOL: 'thrift' }).codes, ['LT_WARN_ENV'])
  t.same(logged({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf' }).codes, [])
  t.same(logged({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, { url: 'http://127.0.0.1:4318' }).codes, [])
  t.end()
})

test('if something else exports the spans, nothing is logged about the exporter\'s variables', (t) => {
  const environment = { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_ENDPOINT: 'foo', OTEL_EXPORTER_OTLP_CERTIFICATE: '/nowhere' }
  const processor = { onStart () {}, onEnd () {} }
  for (const options of [{ spanProcessors: [processor] }, { tracerProvider: { getTracer () {} } }, { exporter: 'none' }, { exporter: 'console' }]) {
    t.same(settled(options, environment).codes, [])
  }
  t.same(settled({}, { ...environment, OTEL_TRACES_EXPORTER: 'none' }).codes, [])
  t.not(settled({ tracerProvider: false }, environment).codes.length, 0)
  t.end()
})

test('an endpoint at an address for the credentials of machines is logged', (t) => {
  for (const host of ['169.254.169.254', '2852039166', '[fd00:ec2::254]', '[fe80::1]', '[::ffff:169.254.169.254]', 'metadata.google.internal']) {
    t.same(fromCode({ url: `http://${host}/` }).codes, ['LT_WARN_ENDPOINT'], host)
  }
  for (const host of ['169.254.example.com', '10.0.0.1', '[fd00::1]']) t.same(fromCode({ url: `http://${host}/` }).codes, [], host)
  t.end()
})

test('certificates and keys are read once, from PEM or from a file, and appear nowhere', (t) => {
  const cert = fs.readFileSync(certFile)
  const key = fs.readFileSync(keyFile)
  const from = [
    fromCode({ url: 'https://collector', ca: cert, cert: cert.toString(), key: keyFile }),
    fromEnvironment({ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector', OTEL_EXPORTER_OTLP_CERTIFICATE: certFile, OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE: certFile, OTEL_EXPORTER_OTLP_CLIENT_KEY: keyFile })
  ]
  for (const { exporter, codes } of from) {
    t.same(codes, [])
    t.ok(cert.equals(exporter.ca))
    t.ok(cert.equals(exporter.cert))
    t.ok(key.equals(exporter.key))
    t.notMatch(util.inspect(exporter, { showHidden: true, getters: true }), 'Buffer')
    t.notMatch(JSON.stringify(exporter), 'Buffer')
  }
  t.equal(fromEnvironment({ OTEL_EXPORTER_OTLP_CERTIFICATE: certFile }).exporter.ca, undefined)
  t.end()
})

// T27
test('certificates that cannot be used throw from code, and from the environment are logged and ignored', (t) => {
  const large = path.join(t.testdir({ 'large.pem': fs.readFileSync(certFile) + '\n'.repeat(1024 * 1024), 'empty.pem': '' }), 'large.pem')
  for (const ca of ['/nowhere', tls, large, path.join(path.dirname(large), 'empty.pem'), '-----BEGIN CERTIFICATE-----\nhunter2', Buffer.from('hunter2'), 5, null]) {
    t.throws(() => fromCode({ url: 'https://collector', ca }), { code: 'LT_ERR_OPTION_INVALID', message: /^(?!.*hunter2).*`exporter.ca` must be PEM/ })
  }
  const https = { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector' }
  for (const file of ['/nowhere', tls, large, keyFile]) {
    const { exporter, codes, logged } = fromEnvironment({ ...https, OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: file })
    t.same(codes, ['LT_WARN_TLS'], file)
    t.match(logged, 'OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE')
    t.equal(exporter.cert, undefined)
  }
  const mismatch = fromEnvironment({ ...https, OTEL_EXPORTER_OTLP_CERTIFICATE: certFile, OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: certFile, OTEL_EXPORTER_OTLP_CLIENT_KEY: otherKeyFile })
  t.same(mismatch.codes, ['LT_WARN_TLS'])
  t.ok(mismatch.exporter.ca)
  t.equal(mismatch.exporter.key, undefined)
  t.same(fromEnvironment({ ...https, NODE_TLS_REJECT_UNAUTHORIZED: '0' }).codes, ['LT_WARN_TLS_UNVERIFIED'])
  t.end()
})
