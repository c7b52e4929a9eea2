'use strict'

// A gateway copies the headers of an untrusted caller. The outgoing headers must be those of the trace. The caller's tracestate and baggage
// must not go out with our traceparent and, on an ignored route, neither must its traceparent.

const http = require('node:http')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { upstream } = require('../support/upstream')

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const STRANGER = { traceparent: TRACEPARENT, tracestate: 'evil=1', baggage: 'role=admin' }

const [major, minor] = process.versions.node.split('.').map(Number)
const canInjectHttp = major > 22 || (major === 22 && minor >= 12)

const copied = ({ host, connection, ...headers }) => headers

const hasUndici8 = major >= 22

// Each client sends the headers of `request` to `origin` and returns the headers that arrived there.
const CLIENTS = {
  fetch: async (request, origin) => (await fetch(origin, { headers: copied(request.headers) })).json(),
  undici7: async (request, origin) => (await require('undici7').request(origin, { headers: copied(request.headers) })).body.json(),
  ...(hasUndici8 ? { undici8: async (request, origin) => (await require('undici8').request(origin, { headers: copied(request.headers) })).body.json() } : {}),
  'undici7, headers as a list': async (request, origin) =>
    (await require('undici7').request(origin, { headers: Object.entries(copied(request.headers)).flat() })).body.json(),
  'fetch with inject()': async (request, origin) =>
    (await fetch(origin, { headers: request.trace.inject(copied(request.headers)) })).json(),
  'fetch with inject() into Headers': async (request, origin) =>
    (await fetch(origin, { headers: request.trace.inject(new Headers(copied(request.headers))) })).json(),
  ...(canInjectHttp ? { 'node:http': byHttp } : {})
}

function byHttp (request, origin) {
  return new Promise((resolve, reject) => http.get(origin, { headers: copied(request.headers) }, async (response) => {
    resolve(JSON.parse(Buffer.concat(await response.toArray())))
  }).on('error', reject))
}

async function gateway (t, call, trace, config = {}) {
  const next = await upstream(t)
  const traced = await tracedApp(t, { trace, routes: (app) => app.get('/', { config }, (request) => call(request, next.origin)) })
  return { ...traced, ask: async (headers) => (await fetch(traced.origin, { headers })).json() }
}

for (const [name, call] of Object.entries(CLIENTS)) {
  test(`${name}: headers of an untrusted caller are not passed on`, async (t) => {
    const { ask, collector } = await gateway(t, call, { trustIncoming: false })
    const arrived = await ask(STRANGER)
    const [server] = (await collector.spans()).filter(({ kind }) => kind === 'SERVER')
    t.match(arrived.traceparent, new RegExp(server.traceId))
    t.notMatch(arrived.traceparent, /0af7651916cd43dd8448eb211c80319c/)
    t.notOk('tracestate' in arrived)
    t.notOk('baggage' in arrived)
  })

  test(`${name}: an untrusted caller's baggage alone is not passed on`, async (t) => {
    const { ask } = await gateway(t, call, { trustIncoming: () => false })
    const arrived = await ask({ baggage: 'role=admin', tracestate: 'evil=1' })
    t.match(arrived.traceparent, /^00-/)
    t.notOk('tracestate' in arrived)
    t.notOk('baggage' in arrived)
  })

  test(`${name}: the tracestate of an invalid traceparent is not passed on`, async (t) => {
    const { ask } = await gateway(t, call, {})
    const arrived = await ask({ ...STRANGER, traceparent: TRACEPARENT.toUpperCase() })
    t.match(arrived.traceparent, /^00-(?!0AF7)/)
    t.notOk('tracestate' in arrived)
  })

  test(`${name}: on an ignored route, no header of an untrusted caller is passed on`, async (t) => {
    const { ask } = await gateway(t, call, { trustIncoming: false }, { trace: false })
    const arrived = await ask(STRANGER)
    for (const header of ['traceparent', 'tracestate', 'baggage']) t.notOk(header in arrived, header)
  })

  test(`${name}: headers of a trusted caller are passed on, also on an ignored route`, async (t) => {
    const traced = await gateway(t, call, {})
    const arrived = await traced.ask(STRANGER)
    t.match(arrived, { tracestate: 'evil=1', baggage: 'role=admin' })
    t.match(arrived.traceparent, /^00-0af7651916cd43dd8448eb211c80319c-/)
    const ignored = await gateway(t, call, {}, { trace: false })
    const passed = await ignored.ask(STRANGER)
    t.match(passed, { tracestate: 'evil=1', baggage: 'role=admin' })
    t.match(passed.traceparent, /^00-0af7651916cd43dd8448eb211c80319c-/)
  })

  test(`${name}: baggage of the app is passed on`, async (t) => {
    const own = (request, origin) => call({ trace: request.trace, headers: { baggage: 'mine=1' } }, origin)
    const { ask } = await gateway(t, own, { trustIncoming: false })
    t.equal((await ask(STRANGER)).baggage, 'mine=1')
  })
}

for (const over of ['undici', 'http']) {
  test(`@fastify/reply-from over ${over}: headers of an untrusted caller are not passed on`, { skip: over === 'http' && !canInjectHttp }, async (t) => {
    const next = await upstream(t)
    const { origin } = await tracedApp(t, {
      trace: { trustIncoming: false },
      routes: async (app) => {
        await app.register(require('@fastify/reply-from'), { base: next.origin, ...(over === 'http' ? { http: {} } : {}) })
        app.get('/', (request, reply) => reply.from('/'))
        app.get('/ignored', { config: { trace: false } }, (request, reply) => reply.from('/'))
      }
    })
    const arrived = await (await fetch(origin, { headers: STRANGER })).json()
    t.ok('traceparent' in arrived)
    t.notOk('tracestate' in arrived)
    t.notOk('baggage' in arrived)
    const ignored = await (await fetch(`${origin}/ignored`, { headers: STRANGER })).json()
    for (const header of ['traceparent', 'tracestate', 'baggage']) t.notOk(header in ignored, header)
  })
}

test('@fastify/http-proxy: headers of an untrusted caller are not passed on', async (t) => {
  const next = await upstream(t)
  const { origin } = await tracedApp(t, {
    trace: { trustIncoming: false },
    routes: (app) => app.register(require('@fastify/http-proxy'), { upstream: next.origin, prefix: '/api' })
  })
  const arrived = await (await fetch(`${origin}/api/x`, { headers: STRANGER })).json()
  t.notMatch(arrived.traceparent, /0af7651916cd43dd8448eb211c80319c/)
  t.notOk('tracestate' in arrived)
  t.notOk('baggage' in arrived)
})

test('with a propagator of another format, headers of an untrusted caller are not passed on', async (t) => {
  const { propagation } = require('@opentelemetry/api')
  const propagator = {
    inject (context, carrier, setter) { setter.set(carrier, 'x-trace', 'ours') },
    extract: (context) => context,
    fields: () => ['x-trace', 'x-debug']
  }
  propagation.setGlobalPropagator(propagator)
  t.teardown(() => propagation.disable())
  const { ask } = await gateway(t, CLIENTS.fetch, { trustIncoming: false })
  const arrived = await ask({ ...STRANGER, 'x-trace': 'theirs', 'x-debug': '1' })
  t.equal(arrived['x-trace'], 'ours')
  for (const header of ['x-debug', 'traceparent', 'tracestate', 'baggage']) t.notOk(header in arrived, header)
})
