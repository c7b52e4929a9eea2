'use strict'

// Credentials in the query of a request and of its outbound calls, in the exported bytes and on the spans that processors get.

const http = require('node:http')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')
const { upstream: startUpstream } = require('../support/upstream')
const { randomFrom } = require('../support/random')
const { QueryRedactor } = require('../../lib/http/redact')

const NAMES = [
  'token', 'access_token', 'id_token', 'refresh_token', 'code', 'api_key', 'apikey', 'password', 'passwd', 'secret', 'client_secret', 'session',
  'sig', 'Signature', 'AWSAccessKeyId', 'X-Goog-Signature', 'X-Amz-Signature', 'X-Amz-Credential', 'X-Amz-Security-Token',
  // similar names
  'accessToken', 'ACCESS_TOKEN', 'resetToken', 'reset-password-token', 'api-key', 'x-api-key', 'apiKey', 'pwd', 'passphrase', 'clientSecret',
  'sessionid', 'session_id', 'PHPSESSID', 'jwt', 'auth', 'authorization', 'credential', 'private_key', 'code_verifier', 'client_assertion', 'SAMLResponse',
  'otp', 'password_confirmation', 'passwordConfirm', 'passcode', 'subscription-key', 'key', 'app_key', 'ticket', 'oobCode', 'oauth_verifier',
  'access_code', 'tokens', 'secrets', 'pw', 'id_token_hint', 'apiKeys', 'user[password]', 'a.token', 'to%6Ben', 'access%5Ftoken', '+token'
]
const HARMLESS = ['q', 'page', 'zipcode', 'postcode', 'country_code', 'keyword', 'sort_key', 'tokens_max', 'author', 'design', 'sessions', 'secretary', 'passenger', 'state', 'id']

/** Returns the spans of a request and of a call, as bytes and as a processor sees them. */
async function spansOf (t, target, trace = {}) {
  const upstream = await startUpstream(t)
  const bodies = []
  const sink = await startSink(t)
  sink.respond = (req, body) => { bodies.push(body); return { status: 200 } }
  const call = async (origin) => {
    await (await fetch(`${upstream.origin}${target}`)).text()
    await new Promise((resolve, reject) => http.get(`${upstream.origin}${target}`, (res) => res.resume().on('end', resolve)).on('error', reject))
  }
  const routes = (app) => app.get('/*', async () => { await call(); return 'ok' })
  const native = await tracedApp(t, { routes, trace: { spanProcessors: undefined, exporter: { url: sink.url }, ...trace } })
  await get(native.port, target)
  await native.app.lightTrace.flush()
  await native.app.close()
  const processed = await tracedApp(t, { routes, trace })
  await get(processed.port, target)
  return { bytes: Buffer.concat(bodies).toString('latin1'), sent: sink.spans, seen: await processed.collector.spans() }
}

function get (port, path) {
  return new Promise((resolve, reject) => http.get({ port, host: '127.0.0.1', path, agent: false }, (res) => res.resume().on('end', resolve)).on('error', reject))
}

function queries (spans) {
  return spans.map(({ attributes }) => attributes['url.query'] ?? attributes['url.full'].split('?')[1]).sort()
}

test('only the values of credentials are REDACTED, whatever their case and separators', async (t) => {
  const query = [...NAMES.map((name) => `${name}=SECRET`), ...HARMLESS.map((name) => `${name}=fine`), 'token', 'empty=', '=x', '&'].join('&')
  const { bytes, sent, seen } = await spansOf(t, `/path?${query}`)
  const expected = [...NAMES.map((name) => `${name}=REDACTED`), ...HARMLESS.map((name) => `${name}=fine`), 'token', 'empty=', '=x', '&'].join('&')
  t.notMatch(bytes, /SECRET/)
  t.ok(bytes.includes('fine'))
  for (const spans of [sent, seen]) t.same(queries(spans), [expected, expected, expected])
})

test('the query of a URL in a value is redacted, too, however often it is encoded', async (t) => {
  const nest = (url) => `/cb?x=1&next=${encodeURIComponent(url)}`
  const inner = '/in?code=SECRET&q=fine'
  const query = `a=/b?token=SECRET&plain=%3Fq%3Dfine&r=${encodeURIComponent(inner)}&s=${encodeURIComponent(nest(inner))}`
  const deep = nest(nest(nest(nest(nest(inner)))))
  const { bytes, seen } = await spansOf(t, `/path?${query}&deep=${encodeURIComponent(deep)}`)
  t.notMatch(bytes, /SECRET/)
  const shown = encodeURIComponent(inner.replace('SECRET', 'REDACTED'))
  const recorded = seen.find(({ attributes }) => attributes['url.query'] !== undefined).attributes['url.query']
  t.ok(recorded.startsWith(`a=/b?token=REDACTED&plain=%3Fq%3Dfine&r=${shown}&s=${encodeURIComponent(nest(inner.replace('SECRET', 'REDACTED')))}&deep=`), recorded)
})

test('a URL in a value has no user and password, and double encoding or a lookalike of the question mark hides nothing', async (t) => {
  const url = 'https://u:SECRET@b.example/in?q=fine'
  const twice = (text) => encodeURIComponent(encodeURIComponent(text))
  const values = [encodeURIComponent(url), twice(url), twice('/in?token=SECRET'), twice('token=SECRET'), encodeURIComponent('b&token=SECRET')]
  const query = [`raw=${url.split('?')[0]}`, ...values.map((value, i) => `v${i}=${value}`), 'mail=a%40b.example', 'twice=a%2540b', 'plain=a@b'].join('&')
  const { bytes, seen } = await spansOf(t, `/path?${query}`)
  t.notMatch(bytes, /SECRET/)
  const shown = new URLSearchParams(queries(seen)[0])
  t.equal(shown.get('v0'), 'https://REDACTED@b.example/in?q=fine')
  t.same(queries(seen)[0].split('&').slice(-3), ['mail=a%40b.example', 'twice=a%2540b', 'plain=a@b'])
})

test('URLs in recorded headers have no credentials, no user and no password', async (t) => {
  const names = ['cf-access-jwt-assertion', 'x-goog-iap-jwt-assertion', 'x-amzn-oidc-data', 'x-ms-client-principal', 'x-jwt', 'dpop', 'x-bearer', 'x-otp', 'x-pwd']
  const routes = (app) => app.get('/', (request, reply) => reply.redirect('https://u:SECRET@b.example/?state=1&code=SECRET#access_token=SECRET'))
  const { app, collector, port } = await tracedApp(t, { routes, trace: { headers: { request: [...names, 'referer', 'x-original-url', 'x-plain'], response: ['location'] } } })
  const headers = { ...Object.fromEntries(names.map((name) => [name, 'SECRET'])), referer: 'http://a/?token=SECRET&q=1', 'x-original-url': '/x?sig=SECRET', 'x-plain': 'a=1; b@c' }
  await fetch(`http://127.0.0.1:${port}/`, { headers, redirect: 'manual' })
  const [{ attributes }] = await collector.spans()
  await app.close()
  t.notMatch(JSON.stringify(attributes), /SECRET/)
  t.same(attributes['http.response.header.location'], ['https://REDACTED@b.example/?state=1&code=REDACTED#access_token=REDACTED'])
  t.same(attributes['http.request.header.referer'], ['http://a/?token=REDACTED&q=1'])
  t.same(attributes['http.request.header.x-plain'], ['a=1; b@c'])
})

test('redactQuery: an array adds names', async (t) => {
  const { bytes, seen } = await spansOf(t, '/?tenant=SECRET&card-number=SECRET&token=SECRET&q=fine', { redactQuery: ['tenant', 'cardNumber'] })
  t.notMatch(bytes, /SECRET/)
  t.equal(queries(seen)[0], 'tenant=REDACTED&card-number=REDACTED&token=REDACTED&q=fine')
})

test('redactQuery: a function decides about every decoded name', async (t) => {
  const asked = new Set()
  const { bytes, seen } = await spansOf(t, '/?t%65nant=SECRET&token=fine&flag', { redactQuery: (name) => { asked.add(name); return name === 'tenant' } })
  t.notMatch(bytes, /SECRET/)
  t.equal(queries(seen)[0], 't%65nant=REDACTED&token=fine&flag')
  t.same([...asked].sort(), ['tenant', 'token'])
})

test('redactQuery: if a function throws, the value is redacted', async (t) => {
  const { bytes } = await spansOf(t, '/?a=SECRET', { redactQuery () { throw new Error('no') } })
  t.notMatch(bytes, /SECRET/)
})

test('redactQuery: any other value is rejected', async (t) => {
  for (const redactQuery of ['token', [7], [''], {}, true]) {
    await t.rejects(tracedApp(t, { listen: false, trace: { redactQuery } }), { code: 'LT_ERR_OPTION_INVALID' })
  }
})

test('a redacted query respects the length limit of a value', async (t) => {
  const query = Array.from({ length: 500 }, () => 'sig=1').join('&')
  for (const attributeValueLength of [3000, 100]) {
    const { sent, seen } = await spansOf(t, `/?${query}`, { limits: { attributeValueLength } })
    for (const spans of [sent, seen]) {
      for (const { attributes } of spans) t.ok((attributes['url.query'] ?? attributes['url.full']).length <= attributeValueLength)
    }
  }
})

test('redacting a query in the bytes of a span gives the same result as redacting its text', async (t) => {
  const random = randomFrom(3)
  const one = (list) => list[Math.floor(random() * list.length)]
  const bytes = Buffer.alloc(4096)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const names = ['page', 'token', 'session', 'to%6Ben', 'x%20y', 'b+c', 'ä', '', 'password', 'n'.repeat(70)]
  const name = () => random() < 0.9 ? one(names) : `n${Math.floor(random() * 600)}` // more names than the cache holds
  const values = ['', '1', 'x'.repeat(20), '%20', '%2', '%', '%3D', '%3d', '%40', 'a?b', 'a#b', 'a@b', 'ä', '=', 'http%3A%2F%2Fx%3Ftoken%3D1']
  const counts = { redacted: 0, asked: 0 }
  let redactor
  for (let n = 0; n < 20000; n++) {
    if (n % 1000 === 0) redactor = new QueryRedactor(null, null)
    const query = Array.from({ length: 1 + random() * 6 }, () => name() + (random() < 0.2 ? '' : `=${one(values)}`)).join('&')
    const growth = 3 + Math.floor(random() * 40)
    bytes.fill(0)
    const end = redactor.redactBytes(bytes, view, 10, 10 + bytes.utf8Write(query, 10), growth)
    const expected = redactor.redact(query)
    counts[end === -1 ? 'asked' : 'redacted']++
    if (bytes[10 + Buffer.byteLength(query) + growth] !== 0) t.fail(`${query} gets longer than its space`)
    if (end !== -1 && bytes.utf8Slice(10, end) !== expected) t.equal(bytes.utf8Slice(10, end), expected, query)
  }
  t.ok(counts.redacted > 5000 && counts.asked > 5000, JSON.stringify(counts))
})

test('the query of each request is redacted, whether its names are new or not', async (t) => {
  const sink = await startSink(t)
  const { app, port } = await tracedApp(t, { routes: (app) => app.get('/*', async () => 'ok'), trace: { spanProcessors: undefined, exporter: { url: sink.url } } })
  const tokens = Array.from({ length: 20 }, (_, i) => `t${i}_token=1`).join('&') // redacted, they are longer than the space for them
  const targets = ['/a?page=2&token=abc', '/a?page=2&token=abcdefghijkl', '/a?', '/?', '/a?page=%20', `/long/${'x'.repeat(300)}?token=1`, `/a?${tokens}`, '/a?next=%2Fb%3Ftoken%3D1']
  const thrice = (list) => [...list, ...list, ...list] // a new path, a repeated one, and one that is found by its bytes
  for (const target of thrice(targets)) await get(port, target)
  await app.lightTrace.flush()
  const expected = ['page=2&token=REDACTED', 'page=2&token=REDACTED', undefined, undefined, 'page=%20', 'token=REDACTED', tokens.replaceAll('=1', '=REDACTED'), 'next=%2Fb%3Ftoken%3DREDACTED']
  t.same(sink.spans.map(({ attributes }) => attributes['url.query']), thrice(expected))
  t.same(sink.spans.map(({ attributes }) => attributes['url.path']), thrice(targets).map((target) => target.split('?')[0]))
})
