'use strict'

// Channels on which other packages publish, too: undici-thread-interceptor publishes on undici's and node:http's. test/ecosystem/frameworks
// runs the package.

const diagnosticsChannel = require('node:diagnostics_channel')
const { test } = require('tap')
const { serving } = require('../support/serving')
const { tracedApp } = require('../support/traced-app')
const { tellingLogger } = require('../support/telling-logger')

const publish = (name, message) => diagnosticsChannel.channel(name).publish(message)

const STRANGER = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'evil=1', baggage: 'role=admin' }

/** What undici-thread-interceptor 1.5 publishes for a call. It sends the headers in `sent`. */
function wrapperOf (sent) {
  return {
    origin: 'http://stock.local',
    method: 'GET',
    path: '/7?token=secret',
    headers: Object.entries(sent).flat(),
    addHeader (name, value) {
      this.headers.push(name, value)
      sent[name] = value
    }
  }
}

function callOf (request) {
  publish('undici:request:create', { request })
  publish('undici:request:headers', { request, response: { statusCode: 200, headers: [], statusText: 'OK' } })
}

test('a request that is not undici\'s own gets its headers by addHeader', async (t) => {
  const sent = { accept: '*/*' }
  const { go } = await serving(t, () => callOf(wrapperOf(sent)))
  const [span] = await go({ ...STRANGER, baggage: 'user=alice' })
  t.match(span.attributes, { 'server.address': 'stock.local', 'http.response.status_code': 200 })
  t.same(sent, { accept: '*/*', traceparent: `00-${span.traceId}-${span.spanId}-01`, tracestate: 'evil=1', baggage: 'user=alice' })
})

for (const spell of [(name) => name, (name) => name.toUpperCase()]) {
  test(`headers of an untrusted caller are not passed on by it: ${spell('traceparent')}`, async (t) => {
    const sent = Object.fromEntries(Object.entries(STRANGER).map(([name, value]) => [spell(name), value]))
    const { go } = await serving(t, () => callOf(wrapperOf(sent)), { trace: { trustIncoming: false } })
    const [span] = await go(STRANGER)
    t.same(sent, { [spell('traceparent')]: `00-${span.traceId}-${span.spanId}-03`, [spell('tracestate')]: '', [spell('baggage')]: '' })
  })
}

test('a request that is not undici\'s has no span or a complete one, and is not reported as a bug', async (t) => {
  const loggerInstance = tellingLogger()
  const throwing = { ...wrapperOf({}), addHeader () { throw new Error('no more headers') } }
  const frozen = Object.freeze(wrapperOf({}))
  const { go } = await serving(t, () => {
    for (const request of [undefined, null, 7, {}, { headers: {} }, { origin: 'http://a' }, frozen, throwing]) {
      callOf(request)
      publish('undici:client:sendHeaders', { request })
      publish('undici:request:error', { request })
      for (const name of ['created', 'start']) publish(`http.client.request.${name}`, { request })
      for (const message of [{ request }, { request, response: null }]) publish('http.client.response.finish', message)
      publish('http.client.request.error', { request })
      for (const name of ['created', 'finish', 'error', 'close']) publish(`http2.client.stream.${name}`, { stream: request })
      for (const event of ['start', 'asyncStart']) publish(`tracing:mysql2:pool:connect:${event}`, request)
    }
    publish('undici:request:create', undefined)
  }, { fastify: { loggerInstance } })
  const spans = await go()
  t.match(spans, [{ attributes: { 'server.address': 'stock.local', 'http.response.status_code': 200 } }])
  t.same(loggerInstance.logged.map(([code]) => code), ['LT_WARN_PROPAGATOR'])
})

test('a call that bypasses the network is not a request of a Node server', async (t) => {
  const loggerInstance = tellingLogger()
  const { app, collector, origin } = await tracedApp(t, { trace: { spans: { unrouted: true } }, fastify: { loggerInstance }, routes: (app) => app.get('/', () => 'ok') })
  for (const server of [app, () => {}, undefined, null, 'http://127.0.0.1:1', Object.freeze({ listeners: () => [] }), app.server]) {
    const request = Object.freeze({ method: 'GET', url: '/', headers: {} })
    publish('http.server.request.start', { request, server })
    publish('http.server.response.finish', { request, response: { statusCode: 200, headers: {} }, server })
  }
  await (await fetch(origin)).text()
  t.equal(await collector.tree(), 'SERVER GET /')
  t.same(loggerInstance.logged, [])
})
