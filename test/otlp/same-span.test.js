'use strict'

// A span is written from its route's template, or attribute by attribute, or is read as an object by a processor. Whatever a request does,
// all three must have the same content. The requests are random but seeded.

const { test } = require('tap')
const { testing } = require('../support/collector')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')
const { fromBytes, fromObject } = require('../support/same-span')
const { randomFrom } = require('../support/random')
const { without } = require('../support/features')

const SHAPES = 150
const TEXTS = ['', 'plain', 'umlaut ä', 'emoji 🦊', 'lone \ud800', 'nul \u0000', 'x'.repeat(200), '__proto__', '"quoted"\\']
const VALUES = [...TEXTS, 0, -1, 42, 2 ** 40, -(2 ** 53), 1.5, NaN, Infinity, -0, 1e300, true, false, null, undefined, {}, [], ['a', null, 'b'], [1, 2.5], [true], ['a', 1], Symbol('s'), 10n, () => {}]
const KEYS = ['a', 'b', 'app.key', 'ä', '__proto__', 'http.route', 'url.path', 'error.type', 'http.response.status_code', 'user_agent.original', 'network.peer.port', '']

test('the template, the general encoder and the object give the same span', async (t) => {
  const variables = { OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT: '1', OTEL_LINK_ATTRIBUTE_COUNT_LIMIT: '1' }
  t.teardown(() => { for (const name of Object.keys(variables)) delete process.env[name] })
  const fixed = { b: 'of all requests', 'app.fixed': ['a', 'ä'], long: 'x'.repeat(30) } // become part of the routes' templates
  const all = [[{}], [{ attributeValueLength: 8 }], [{ attributes: 16, attributeValueLength: 24, events: 2, links: 1 }], [{}, { attributes: fixed }], [{ attributes: 16, attributeValueLength: 24 }, { attributes: fixed }], [{}, { attributes: { ...fixed, 'url.path': '/' } }],
    ...without('omit') ? [] : [[{}, { omitAttributes: ['a', 'http.route', 'url.query', 'error.type', 'exception.message', 'network.peer.*'] }]]]
  for (const [limits, more] of all) {
    if (limits.links !== undefined) Object.assign(process.env, variables)
    const sink = await startSink(t)
    const native = await tracedApp(t, { trace: { spanProcessors: undefined, exporter: { url: sink.url }, ...common(limits), ...more }, routes })
    const beside = await startSink(t) // for an exporter that gets the spans after the processor
    const objects = await tracedApp(t, { trace: { ...(testing !== undefined && { exporter: { url: beside.url } }), ...common(limits), ...more }, routes })
    for (const { origin } of [native, objects]) {
      const random = randomFrom(7)
      for (let n = 0; n < SHAPES; n++) await ask(origin, n, random)
    }
    const collected = await objects.collector.spans()
    await native.app.lightTrace.flush()
    const exported = sink.spans
    t.equal(exported.length, SHAPES)
    t.equal(collected.length, SHAPES)
    t.notOk(collected.some(({ attributes }) => (more?.omitAttributes ?? []).some((key) => key in attributes)))
    for (let n = 0; n < SHAPES; n++) t.strictSame(fromBytes(exported[n]), fromObject(collected[n]), `shape ${n}`)
    await native.app.close()
    await objects.app.close()
    if (testing !== undefined) t.strictSame(beside.spans.map(fromBytes), exported.map(fromBytes), 'next to a processor')
  }
})

function common (limits) {
  return { limits, headers: { request: ['x-n'], response: ['content-type'] }, serviceName: 'shop', attributes: (request) => shape(request).attributes }
}

// Draws what a request does with its span from its number, so that it is the same in both apps.
function shape (request) {
  const random = randomFrom(Number(request.headers['x-n']) + 1)
  const one = (list) => list[Math.floor(random() * list.length)]
  const some = (make, most) => Array.from({ length: Math.floor(random() * random() * most) }, make)
  const attributes = () => Object.fromEntries(some(() => [one(KEYS), one(VALUES)], 8))
  return {
    attributes: random() < 0.3 ? attributes() : undefined,
    sets: some(() => [one(KEYS), one(VALUES)], 8),
    events: some(() => [one(TEXTS), attributes()], 5),
    links: some(() => ({ context: { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: one(['b7ad6b7169203331', 'bad']), traceFlags: 1 }, attributes: attributes() }), 4),
    name: random() < 0.2 ? one(TEXTS) : undefined,
    status: random() < 0.2 ? { code: one([0, 1, 2, 7]), message: one(TEXTS) } : undefined,
    exception: random() < 0.2 ? one([new Error('no'), 'text', null, { message: 'bare', stack: 'at x' }]) : undefined,
    code: one([200, 201, 204, 301, 404, 500, 503]),
    fails: random() < 0.2
  }
}

function routes (app) {
  async function handler (request, reply) {
    const { span } = request.trace
    const { sets, events, links, name, status, exception, code, fails } = shape(request)
    for (const [key, value] of sets) span.setAttribute(key, value)
    for (const [title, attributes] of events) span.addEvent(title, attributes)
    for (const link of links) span.addLink(link)
    if (name !== undefined) span.updateName(name)
    if (status !== undefined) span.setStatus(status)
    if (exception !== undefined) span.recordException(exception)
    if (fails) throw Object.assign(new Error('failed'), { statusCode: code, stack: 'at handler' })
    return reply.code(code).send()
  }
  app.get('/static/path', handler)
  app.all('/users/:id', handler)
  app.all('/gold/:id/*', { config: { trace: { attributes: { tier: 'gold', a: 'route' } } } }, handler)
  app.all('/own/:token', { config: { trace: { attributes: { 'url.path': '/own/:token', a: 'route' } } } }, handler)
  app.setNotFoundHandler(handler)
}

async function ask (origin, n, random) {
  const one = (list) => list[Math.floor(random() * list.length)]
  const path = one(['/static/path', '/static/path?a=1', '/users/7', '/users/%C3%A4', `/users/${'y'.repeat(90)}`, '/users/7?sig=secret&b=%20', '/gold/1/x/y', '/gold/1/x?', '/own/secret', '/own/secret?b=1', '/nowhere', '/static/path?'])
  const headers = { 'x-n': String(n), 'user-agent': one(['one/1', 'two/2', 'z'.repeat(600)]), host: 'shop.test' }
  if (random() < 0.4) headers.traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  if (random() < 0.4) headers.tracestate = 'vendor=value,other=1'
  const response = await fetch(origin + path, { method: one(['GET', 'GET', 'POST', 'DELETE', 'HEAD']), headers, redirect: 'manual' })
  await response.text()
}

test('new and repeated keys, and more keys than the cache holds, are right', async (t) => {
  const sink = await startSink(t)
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { spanProcessors: undefined, exporter: { url: sink.url } },
    routes: (app) => app.get('/', async ({ trace, query }) => { trace.span.setAttributes(JSON.parse(query.a)) })
  })
  const keys = Array.from({ length: 1200 }, (_, i) => `app.key.${i}`)
  const odd = { kéy: 1, 'app.key.1': 'é', 'app.key.11': 11, ['k'.repeat(300)]: true, 'app.key.1.long': [1, 2] }
  const sets = [...Array.from({ length: 12 }, (_, i) => Object.fromEntries(keys.slice(i * 100, i * 100 + 100).map((key, j) => [key, j]))), odd, odd, { 'app.key.1199': 'again' }]
  for (const set of sets) await app.inject({ url: '/', query: { a: JSON.stringify(set) } })
  await app.lightTrace.flush()
  const { spans } = sink
  for (const [i, set] of sets.entries()) for (const [key, value] of Object.entries(set)) t.same(spans[i].attributes[key], value, key)
})

test('behind a proxy, each span has its own scheme and host, however many hosts there are', async (t) => {
  const sink = await startSink(t)
  const { app, origin } = await tracedApp(t, { fastify: { trustProxy: true }, trace: { spanProcessors: undefined, exporter: { url: sink.url } }, routes })
  const sent = Array.from({ length: 200 }, (_, i) => [['http', 'https', 'ws', 'wss'][i % 4], `h${i % 100}`])
  for (const [scheme, host] of sent) {
    await (await fetch(origin + '/static/path', { headers: { 'x-n': '0', 'x-forwarded-proto': scheme, 'x-forwarded-host': host } })).text()
  }
  await app.lightTrace.flush()
  t.same(sink.spans.map(({ attributes }) => [attributes['url.scheme'], attributes['server.address']]), sent)
})
