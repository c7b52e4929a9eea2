'use strict'

// What a caller may pass (trace, flags, tracestate, baggage), and how trustIncoming handles it.

const { test } = require('tap')
const http2 = require('node:http2')
const api = require('@opentelemetry/api')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const PARENT_ID = 'b7ad6b7169203331'
const caller = (flags = '01') => `00-${TRACE_ID}-${PARENT_ID}-${flags}`
const BAGGAGE = 'userId=alice,serverNode=DF%2028;region=eu'

const routes = (app) => {
  app.get('/', async ({ trace }) => trace.inject({}))
  app.get('/calls', async ({ trace }) => [trace.inject({}), trace.inject({}), trace.inject({})])
  app.get('/off', { config: { trace: false } }, async ({ trace }) => trace.inject({}))
}

const get = async (app, headers, url = '/') => (await app.inject({ url, headers })).json()

function parts (traceparent) {
  const [, traceId, parentId, flags] = traceparent.split('-')
  return { traceId, parentId, flags: Number(flags) }
}

test('only the sampled and the random flag are passed on', async (t) => {
  const { app, collector } = await tracedApp(t, { routes, listen: false })
  for (const [came, goes] of [['00', 0], ['01', 1], ['02', 2], ['03', 3], ['ff', 3], ['fc', 0], ['0d', 1]]) {
    const { traceparent } = await get(app, { traceparent: caller(came) })
    t.match(parts(traceparent), { traceId: TRACE_ID, flags: goes }, came)
    const spans = await collector.spans()
    t.equal(spans.length, goes & 1, 'the caller decides')
    if (goes & 1) t.match(spans[0], { traceFlags: goes, parentSpanId: PARENT_ID })
    collector.reset()
  }
})

test('a trace that starts here has the random flag', async (t) => {
  const { app } = await tracedApp(t, { routes, listen: false })
  t.equal(parts((await get(app, {})).traceparent).flags, 3)
  const unsampled = await tracedApp(t, { routes, listen: false, trace: { sampler: 'always_off' } })
  t.equal(parts((await get(unsampled.app, {})).traceparent).flags, 2)
})

test('tracestate is passed on with its trace, and is on the span', async (t) => {
  const { app, collector } = await tracedApp(t, { routes, listen: false })
  t.equal((await get(app, { traceparent: caller(), tracestate: 'foo=1, bar=2' })).tracestate, 'foo=1, bar=2')
  t.equal((await get(app, { traceparent: caller(), tracestate: 'foo=1,Bar=2' })).tracestate, undefined)
  t.equal((await get(app, { tracestate: 'foo=1' })).tracestate, undefined)
  t.same((await collector.spans()).map(({ traceState }) => traceState), ['foo=1, bar=2', '', ''])
})

test('baggage is passed on with or without a trace', async (t) => {
  const { app, collector } = await tracedApp(t, { routes, listen: false })
  t.equal((await get(app, { traceparent: caller(), baggage: BAGGAGE })).baggage, BAGGAGE)
  t.equal((await get(app, { traceparent: 'nonsense', baggage: BAGGAGE })).baggage, BAGGAGE)
  t.equal((await get(app, { baggage: BAGGAGE })).baggage, BAGGAGE)
  t.equal((await get(app, { baggage: 'no pair' })).baggage, undefined)
  for (const { attributes } of await collector.spans()) t.notMatch(JSON.stringify(attributes), 'alice', 'it is not an attribute')
})

test('baggage can be read and changed through the API', async (t) => {
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { registerGlobals: true },
    routes: (app) => app.get('/', async ({ trace }) => {
      const baggage = api.propagation.getActiveBaggage()
      const changed = api.propagation.setBaggage(api.context.active(), baggage.setEntry('tenant', { value: 'a b' }).removeEntry('serverNode'))
      return {
        read: baggage.getAllEntries().map(([key, { value, metadata }]) => [key, value, String(metadata)]),
        ofTheRequest: api.propagation.getBaggage(trace) === baggage,
        inside: api.context.with(changed, () => trace.inject({})).baggage,
        outside: trace.inject({}).baggage
      }
    })
  })
  t.strictSame(await get(app, { baggage: BAGGAGE }), {
    read: [['userId', 'alice', 'undefined'], ['serverNode', 'DF 28', 'region=eu']],
    ofTheRequest: true,
    inside: 'userId=alice,tenant=a%20b',
    outside: BAGGAGE
  })
})

test('a header that is not a string counts as absent', async (t) => {
  const { app } = await tracedApp(t, {
    listen: false,
    before: (app) => app.addHook('onRequest', async ({ raw }) => {
      for (const name of ['traceparent', 'tracestate', 'baggage']) raw.headers[name] = [{ traceparent: caller() }[name] ?? 'a=1']
    }),
    routes
  })
  const { traceparent, ...others } = await get(app, {})
  t.not(parts(traceparent).traceId, TRACE_ID)
  t.same(others, {})
})

test('an untrusted caller is linked, and its trace, tracestate and baggage end here', async (t) => {
  const { app, collector } = await tracedApp(t, { routes, listen: false, trace: { trustIncoming: false } })
  const headers = { traceparent: caller('00'), tracestate: 'foo=1', baggage: BAGGAGE }
  const { traceparent, ...others } = await get(app, headers)
  t.not(parts(traceparent).traceId, TRACE_ID)
  t.equal(parts(traceparent).flags, 3, 'its flag does not decide either')
  t.same(others, {})
  const [span] = await collector.spans()
  t.equal(span.parentSpanId, undefined)
  t.equal(span.traceState, '')
  t.match(span.links, [{ traceId: TRACE_ID, spanId: PARENT_ID }])
  t.equal(span.links.length, 1)
})

test('an untrusted caller without a valid trace is not linked', async (t) => {
  const { app, collector } = await tracedApp(t, { routes, listen: false, trace: { trustIncoming: false } })
  await get(app, {})
  await get(app, { traceparent: caller('0') })
  for (const { links } of await collector.spans()) t.same(links, [])
})

test('a route that is switched off passes on what a trusted caller sent, and nothing else', async (t) => {
  const headers = { traceparent: caller(), tracestate: 'foo=1', baggage: BAGGAGE }
  const trusting = await tracedApp(t, { routes, listen: false })
  t.strictSame(await get(trusting.app, headers, '/off'), headers)
  t.strictSame(await get(trusting.app, {}, '/off'), {})
  const untrusting = await tracedApp(t, { routes, listen: false, trace: { trustIncoming: false } })
  t.strictSame(await get(untrusting.app, headers, '/off'), {})
  t.equal(await untrusting.collector.tree(), '')
})

test('trustIncoming is called once per request with incoming headers', async (t) => {
  const asked = []
  const { app } = await tracedApp(t, {
    routes,
    listen: false,
    trace: {
      trustIncoming (request) {
        asked.push(request.url)
        return request.headers['x-inside'] === 'yes'
      }
    }
  })
  for (const inside of ['yes', 'no']) {
    const headers = { traceparent: caller(), tracestate: 'foo=1', baggage: BAGGAGE, 'x-inside': inside }
    const { traceparent, tracestate, baggage } = await get(app, headers)
    t.equal(parts(traceparent).traceId === TRACE_ID, inside === 'yes')
    t.strictSame([tracestate, baggage], inside === 'yes' ? ['foo=1', BAGGAGE] : [undefined, undefined])
    await get(app, headers, '/off')
    t.equal((await get(app, { baggage: BAGGAGE, 'x-inside': inside })).baggage, inside === 'yes' ? BAGGAGE : undefined)
  }
  t.same(asked, ['/', '/off', '/', '/', '/off', '/'])
  await get(app, {})
  await get(app, { tracestate: 'foo=1' })
  t.equal(asked.length, 6)
})

test('a caller is not trusted if trustIncoming fails', async (t) => {
  for (const trustIncoming of [() => { throw new Error('broken') }, async () => true, () => undefined]) {
    const { app } = await tracedApp(t, { routes, listen: false, trace: { trustIncoming } })
    const { traceparent, ...others } = await get(app, { traceparent: caller(), baggage: BAGGAGE })
    t.not(parts(traceparent).traceId, TRACE_ID)
    t.same(others, {})
  }
})

test('all outgoing headers have the request\'s parent id, not the caller\'s', async (t) => {
  t.teardown(() => { delete process.env.OTEL_PROPAGATORS })
  for (const [propagators, sampler, baggage] of [[undefined, 'always_on', BAGGAGE], [undefined, 'always_off', BAGGAGE],
    ['tracecontext', 'always_on', undefined], ['tracecontext', 'always_off', undefined]]) {
    if (propagators !== undefined) process.env.OTEL_PROPAGATORS = propagators
    const { app } = await tracedApp(t, { routes, listen: false, trace: { sampler } })
    for (const headers of [{}, { traceparent: caller(), tracestate: 'foo=1', baggage: BAGGAGE }]) {
      const calls = await get(app, headers, '/calls')
      const parentIds = new Set(calls.map(({ traceparent }) => parts(traceparent).parentId))
      t.equal(parentIds.size, 1)
      t.notOk(parentIds.has(PARENT_ID))
      t.equal(new Set(calls.map(({ traceparent }) => parts(traceparent).traceId)).size, 1)
      t.equal(calls[0].tracestate, headers.tracestate)
      t.equal(calls[0].baggage, headers.baggage && baggage)
    }
    t.match(parts((await get(app, { traceparent: caller() }, '/off')).traceparent), { traceId: TRACE_ID, parentId: PARENT_ID })
  }
})

test('repeated headers over HTTP/2 are treated as over HTTP/1', async (t) => {
  const { origin } = await tracedApp(t, { routes, fastify: { http2: true, forceCloseConnections: false } })
  const client = http2.connect(origin)
  t.teardown(() => client.close())
  const ask = async (headers) => {
    const stream = client.request({ ':path': '/', ...headers })
    let text = ''
    for await (const chunk of stream.setEncoding('utf8')) text += chunk
    return JSON.parse(text)
  }
  const two = await ask({ traceparent: [caller(), caller()] })
  t.not(parts(two.traceparent).traceId, TRACE_ID)
  const joined = await ask({ traceparent: caller(), tracestate: ['foo=1', 'bar=2'], baggage: ['a=1', 'b=2'] })
  t.equal(parts(joined.traceparent).traceId, TRACE_ID)
  t.match(joined.tracestate, /^foo=1, ?bar=2$/)
  t.equal(joined.baggage, 'a=1,b=2')
})

test('inject() writes the active span: the request\'s, a child\'s or the handler\'s', { skip: without('stages') }, async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: { spans: { handler: true } },
    routes (app) {
      app.get('/named', { config: { trace: { spans: {} } } }, async ({ trace }) => ({ own: trace.inject(), child: await trace.withSpan('child', async () => trace.inject()) }))
      app.get('/handled', async ({ trace }) => ({ handler: trace.inject() }))
    }
  })
  const named = { ...await get(app, {}, '/named'), ...await get(app, {}, '/handled') }
  const spans = await collector.spans()
  const idOf = (name) => spans.find((span) => span.name === name).spanId
  t.equal(parts(named.own.traceparent).parentId, idOf('GET /named'))
  t.equal(parts(named.child.traceparent).parentId, idOf('child'))
  t.equal(parts(named.handler.traceparent).parentId, idOf('handler'))
})
