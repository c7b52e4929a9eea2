'use strict'

// client.address is an address without port or brackets. Behind a trusted proxy it comes from X-Forwarded-For or, without that header, from
// RFC 7239's Forwarded.

const { test } = require('tap')
const Fastify = require('fastify')
const { tracedApp } = require('../support/traced-app')

async function spansOf (t, requests, fastify = { trustProxy: true }) {
  const { app, collector } = await tracedApp(t, { listen: false, fastify, routes: (app) => app.get('/', async () => 'ok') })
  for (const headers of requests) t.equal((await app.inject({ url: '/', headers })).statusCode, 200)
  return collector.spans()
}

const of = (key) => ({ attributes }) => attributes[key]

test('ports and brackets of X-Forwarded-For are removed', async (t) => {
  const cases = [
    ['203.0.113.7', '203.0.113.7'], ['203.0.113.7:4711', '203.0.113.7'], ['[2001:db8::7]:4711', '2001:db8::7'], ['[2001:db8::7]', '2001:db8::7'],
    ['2001:db8::7', '2001:db8::7'], ['fe80::1%eth0', 'fe80::1'],
    ['0:0:0:0:0:ffff:10.1.2.3', '0:0:0:0:0:ffff:10.1.2.3'], ['10.1.2.3%eth0', '10.1.2.3'], ['1.2.3', '127.0.0.1'], ['::1::', '127.0.0.1'],
    ...['1.2.3.4.5', '1..2.3', '.1.2.3', '1.2.3.', '01.2.3.4', '1.00.3.4', '1.2.3.256', '1.2.3.4x', '1.2.3./'].map((text) => [text, '127.0.0.1']),
    ['0.0.0.0', '0.0.0.0'], ['255.255.255.255', '255.255.255.255'], ['1.10.100.249', '1.10.100.249']
  ]
  const spans = await spansOf(t, cases.map(([value]) => ({ 'x-forwarded-for': value })))
  t.same(spans.map(of('client.address')), cases.map(([, address]) => address))
})

test('Forwarded is used without X-Forwarded-For', async (t) => {
  const cases = [
    ['for=203.0.113.7', '203.0.113.7'], ['for="203.0.113.7:4711"', '203.0.113.7'], ['For="[2001:db8::7]:4711";proto=https', '2001:db8::7'],
    ['proto=https;by=203.0.113.1; for=203.0.113.7', '203.0.113.7'], ['for=203.0.113.7, for=198.51.100.1', '203.0.113.7'],
    ['for=203.0.113.7;host="a,b;c", for=198.51.100.1', '203.0.113.7'],
    ['for=unknown', '127.0.0.1'], ['for=_hidden', '127.0.0.1'], ['for=', '127.0.0.1'], ['nonsense', '127.0.0.1'], ['for="unclosed', '127.0.0.1'], [',,;;=', '127.0.0.1']
  ]
  const spans = await spansOf(t, cases.map(([value]) => ({ forwarded: value })))
  t.same(spans.map(of('client.address')), cases.map(([, address]) => address))
  const [both] = await spansOf(t, [{ forwarded: 'for=203.0.113.7', 'x-forwarded-for': '198.51.100.9' }])
  t.equal(both.attributes['client.address'], '198.51.100.9')
})

test('host and proto of Forwarded are used', async (t) => {
  const [span, plain] = await spansOf(t, [{ forwarded: 'for=203.0.113.7;host="shop.example:8443";proto=https' }, { forwarded: 'for=203.0.113.7' }])
  t.match(span.attributes, { 'server.address': 'shop.example', 'server.port': 8443, 'url.scheme': 'https' })
  t.match(plain.attributes, { 'server.address': 'localhost', 'url.scheme': 'http' })
})

test('addresses are used only as far as trustProxy trusts', async (t) => {
  const [none] = await spansOf(t, [{ forwarded: 'for=203.0.113.7' }], {})
  t.equal(none.attributes['client.address'], '127.0.0.1')
  const [hops] = await spansOf(t, [{ forwarded: 'for=192.0.2.66, for=203.0.113.7' }], { trustProxy: (address, hop) => hop < 1 })
  t.equal(hops.attributes['client.address'], '203.0.113.7')
  const [other] = await spansOf(t, [{ forwarded: 'for=192.0.2.66;host=evil.example;proto=https' }], { trustProxy: '10.0.0.1' })
  // Host and scheme are those that Fastify itself uses. Its first versions trust any sender for these two.
  const { host, protocol } = await seenByFastify({ 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' }, '10.0.0.1')
  t.match(other.attributes, { 'client.address': '127.0.0.1', 'server.address': host.split(':')[0], 'url.scheme': protocol })
  const [known] = await spansOf(t, [{ forwarded: 'for=192.0.2.66, for=203.0.113.7, for=10.0.0.1' }], { trustProxy: ['127.0.0.1', '10.0.0.1'] })
  t.equal(known.attributes['client.address'], '203.0.113.7')
})

test('a connection may carry requests of several clients', async (t) => {
  const { origin, collector } = await tracedApp(t, { fastify: { trustProxy: true }, routes: (app) => app.get('/', async () => 'ok') })
  for (const forwarded of ['for=203.0.113.1', 'for=203.0.113.2', 'for=203.0.113.2;proto=https', '']) {
    await (await fetch(origin, { headers: forwarded === '' ? {} : { forwarded } })).text()
  }
  const spans = await collector.spans()
  t.same(spans.map(of('client.address')), ['203.0.113.1', '203.0.113.2', '203.0.113.2', '127.0.0.1'])
  t.same(spans.map(of('url.scheme')), ['http', 'http', 'https', 'http'])
})

async function seenByFastify (headers, trustProxy) {
  const app = Fastify({ trustProxy })
  app.get('/', async ({ host, protocol }) => ({ host, protocol }))
  const response = await app.inject({ url: '/', headers: { host: 'localhost', ...headers } })
  await app.close()
  return response.json()
}
