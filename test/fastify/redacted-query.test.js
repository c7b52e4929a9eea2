'use strict'

// Credentials in a query, of a request and of what it calls, in the bytes that leave and on the spans that processors get.

const http = require('node:http')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')
const { upstream: startUpstream } = require('../support/upstream')

const NAMES = [
  'token', 'access_token', 'id_token', 'refresh_token', 'code', 'api_key', 'apikey', 'password', 'passwd', 'secret', 'client_secret', 'session',
  'sig', 'Signature', 'AWSAccessKeyId', 'X-Goog-Signature', 'X-Amz-Signature', 'X-Amz-Credential', 'X-Amz-Security-Token',
  // their like
  'accessToken', 'ACCESS_TOKEN', 'resetToken', 'reset-password-token', 'api-key', 'x-api-key', 'apiKey', 'pwd', 'passphrase', 'clientSecret',
  'sessionid', 'session_id', 'PHPSESSID', 'jwt', 'auth', 'authorization', 'credential', 'private_key', 'code_verifier', 'client_assertion', 'SAMLResponse',
  'otp', 'user[password]', 'a.token', 'to%6Ben', 'access%5Ftoken', '+token'
]
const HARMLESS = ['q', 'page', 'zipcode', 'postcode', 'country_code', 'keyword', 'sort_key', 'key', 'tokens_max', 'author', 'design', 'sessions', 'secretary', 'passenger', 'state', 'id']

/** Spans of one request and of a call, as bytes and as a processor sees them. */
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

test('the values of credentials are REDACTED, whatever their case and separators, and nothing else is', async (t) => {
  const query = [...NAMES.map((name) => `${name}=SECRET`), ...HARMLESS.map((name) => `${name}=fine`), 'token', 'empty=', '=x', '&'].join('&')
  const { bytes, sent, seen } = await spansOf(t, `/path?${query}`)
  const expected = [...NAMES.map((name) => `${name}=REDACTED`), ...HARMLESS.map((name) => `${name}=fine`), 'token', 'empty=', '=x', '&'].join('&')
  t.notMatch(bytes, /SECRET/)
  t.ok(bytes.includes('fine'))
  for (const spans of [sent, seen]) t.same(queries(spans), [expected, expected, expected])
})

test('redactQuery: an array adds names', async (t) => {
  const { bytes, seen } = await spansOf(t, '/?tenant=SECRET&card-number=SECRET&token=SECRET&q=fine', { redactQuery: ['tenant', 'cardNumber'] })
  t.notMatch(bytes, /SECRET/)
  t.equal(queries(seen)[0], 'tenant=REDACTED&card-number=REDACTED&token=REDACTED&q=fine')
})

test('redactQuery: a function decides about all, by the decoded name', async (t) => {
  const asked = new Set()
  const { bytes, seen } = await spansOf(t, '/?t%65nant=SECRET&token=fine&flag', { redactQuery: (name) => { asked.add(name); return name === 'tenant' } })
  t.notMatch(bytes, /SECRET/)
  t.equal(queries(seen)[0], 't%65nant=REDACTED&token=fine&flag')
  t.same([...asked].sort(), ['tenant', 'token'])
})

test('redactQuery: a function that throws redacts', async (t) => {
  const { bytes } = await spansOf(t, '/?a=SECRET', { redactQuery () { throw new Error('no') } })
  t.notMatch(bytes, /SECRET/)
})

test('redactQuery: anything else is refused', async (t) => {
  for (const redactQuery of ['token', [7], [''], {}, true]) {
    await t.rejects(tracedApp(t, { listen: false, trace: { redactQuery } }), { code: 'LT_ERR_OPTION_INVALID' })
  }
})

test('a redacted query keeps to the limit of a value', async (t) => {
  const query = Array.from({ length: 500 }, () => 'sig=1').join('&')
  for (const attributeValueLength of [3000, 100]) {
    const { sent, seen } = await spansOf(t, `/?${query}`, { limits: { attributeValueLength } })
    for (const spans of [sent, seen]) {
      for (const { attributes } of spans) t.ok((attributes['url.query'] ?? attributes['url.full']).length <= attributeValueLength)
    }
  }
})
