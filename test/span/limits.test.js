'use strict'

const { test } = require('tap')
const Fastify = require('fastify')
const net = require('node:net')
const { once } = require('node:events')
const lightTrace = require('../..')
const { collectorFor } = require('../support/collector')
const { startSink } = require('../support/otlp-sink')

async function exported (t, options, drive, fastifyOptions) {
  const sink = await startSink(t)
  const app = Fastify(fastifyOptions)
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: sink.url }, ...options })
  app.get('/things/:id', async (request) => {
    for (let i = 0; i < 200; i++) request.trace.span.setAttribute(`key.${i}`, i)
    return 'ok'
  })
  app.get('/plain', async () => 'ok')
  app.get('/new', async () => 'ok')
  await app.listen({ port: 0, host: '127.0.0.1' })
  await drive(app)
  await app.lightTrace.flush()
  return sink.spans
}

test('a span has at most the limit of attributes, its own first, and counts the rest', async (t) => {
  const [span] = await exported(t, {}, (app) => app.inject('/things/7'))
  const keys = Object.keys(span.attributes)
  t.ok(keys.length <= 128)
  t.equal(keys.filter((key) => key.startsWith('key.')).length + span.droppedAttributesCount, 200)
  t.equal(span.attributes['http.response.status_code'], 200)
})

test('losses by a limit are logged once, whatever was lost', async (t) => {
  for (const [what, add] of [
    ['attributes', (span) => span.setAttributes({ a: 1, b: 2, c: 3 })], ['events', (span) => span.addEvent('e')], ['links', (span) => span.addLink({ context: span.spanContext() })]
  ]) {
    const lines = []
    const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
    await app.register(lightTrace, { exporter: 'none', limits: { attributes: 2, events: 2, links: 2 } })
    app.get('/', async ({ trace }) => { trace.withSpan('child', (span) => { for (let i = 0; i < 3; i++) add(span) }) })
    for (let i = 0; i < 2; i++) await app.inject('/')
    await app.close()
    t.match(lines.filter(({ code }) => code === 'LT_WARN_LIMIT').map(({ msg }) => msg), [new RegExp(`^a span exceeded 2 ${what}: `)], what)
    t.equal(lines.length, 1)
  }
})

test('a call with more attributes than the limit is logged, too', async (t) => {
  const lines = []
  const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  await app.register(lightTrace, { exporter: 'none', limits: { attributes: 2 } })
  app.get('/', async () => (await fetch(`${app.listeningOrigin}/plain`)).text())
  app.get('/plain', async () => 'ok')
  await app.listen({ port: 0, host: '127.0.0.1' })
  await (await fetch(app.listeningOrigin)).text()
  await app.close()
  t.match(lines, [{ code: 'LT_WARN_LIMIT', msg: /^a span exceeded 2 attributes: / }])
})

test('an attribute that is removed for error.type counts as left out, and is logged', async (t) => {
  for (const statusCode of [409, 500]) {
    const lines = []
    const { collector, options } = await collectorFor(t)
    const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
    await app.register(lightTrace, { ...options, slow: false, limits: { attributes: 14 } })
    app.get('/', async ({ trace }) => {
      const { attributeCountMax } = trace.span
      for (let i = 0; i < attributeCountMax; i++) trace.span.setAttribute(`key.${i}`, i)
      throw Object.assign(new RangeError('no'), { statusCode })
    })
    await app.inject('/')
    await app.close()
    const [span] = await collector.spans()
    t.equal(span.attributes['error.type'], 'RangeError')
    t.equal(span.droppedAttributesCount, 1)
    t.match(lines.filter(({ code }) => code?.startsWith('LT_')), [{ code: 'LT_WARN_LIMIT', msg: /^a span exceeded 14 attributes: / }])
  }
})

test('a limit below the request\'s own attributes cuts those, too', async (t) => {
  const [span] = await exported(t, { limits: { attributes: 3 } }, (app) => app.inject('/plain'))
  t.equal(Object.keys(span.attributes).length, 3)
  t.ok(span.droppedAttributesCount > 3)
})

test('the length limit applies to values from the request', async (t) => {
  const [span] = await exported(t, { limits: { attributeValueLength: 8 } },
    (app) => app.inject({ url: '/things/0123456789', headers: { 'user-agent': 'a very long agent' } }))
  t.equal(span.attributes['url.path'], '/things/')
  t.equal(span.attributes['user_agent.original'], 'a very l')
})

test('the recorded path is the client\'s, also in absolute form and before a rewrite', async (t) => {
  const spans = await exported(t, {}, async (app) => {
    await app.inject('/old?a=1')
    const socket = net.connect(app.server.address().port, '127.0.0.1')
    socket.end('GET http://example.com/plain?b=2 HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n')
    socket.resume()
    await once(socket, 'close')
  }, { rewriteUrl: ({ url }) => url.replace('/old', '/new') })
  t.same(spans.map(({ attributes }) => [attributes['http.route'] ?? '', attributes['url.path'], attributes['url.query']]),
    [['/new', '/old', 'a=1'], [spans[1].attributes['http.route'] ?? '', '/plain', 'b=2']])
})

test('a port is decimal, and a query after a bare host is kept', async (t) => {
  const spans = await exported(t, {}, async (app) => {
    for (const host of ['a.example:0x50', 'a.example:1e2', 'a.example:99999', 'a.example:8080']) await app.inject({ url: '/plain', headers: { host } })
    const socket = net.connect(app.server.address().port, '127.0.0.1')
    socket.end('GET http://example.com?b=2 HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n')
    socket.resume()
    await once(socket, 'close')
  })
  t.same(spans.slice(0, 4).map(({ attributes }) => attributes['server.port']), [undefined, undefined, undefined, 8080])
  t.match(spans[4].attributes, { 'url.path': '/', 'url.query': 'b=2' })
})

test('a hundred attributes of maximum length still make a span', async (t) => {
  const spans = await exported(t, {}, async (app) => {
    app.lightTrace.tracer.startSpan('long', {
      attributes: Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`key.${i}`, 'x'.repeat(20000)]))
    }).end()
  })
  t.equal(Object.keys(spans[0].attributes).length, 100)
  t.equal(spans[0].attributes['key.99'].length, 16384)
})

test('a truncated key of an event or a link counts as dropped there', async (t) => {
  const key = 'k'.repeat(1025)
  const context = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 }
  const [span] = await exported(t, {}, async (app) => {
    const span = app.lightTrace.tracer.startSpan('first')
    span.addEvent('an event', { [key]: 1, other: 2, none: undefined })
    span.addLink({ context, attributes: { [key]: 1 } })
    span.end()
  })
  t.equal(span.events[0].droppedAttributesCount, 2)
  t.equal(span.links[0].droppedAttributesCount, 1)
  t.same(Object.keys(span.events[0].attributes), [key.slice(1), 'other'])
})

test('the limit of values does not shorten names and descriptions', async (t) => {
  const [span] = await exported(t, { limits: { attributeValueLength: 4 } }, async (app) => {
    app.lightTrace.tracer.startSpan('first').updateName('a longer name').setStatus({ code: 2, message: 'a reason' }).end()
  })
  t.equal(span.name, 'a longer name')
  t.equal(span.status.message, 'a reason')
})

test('options and a status that throw when they are read lose only themselves', async (t) => {
  const hostile = { get attributes () { throw new Error('no') }, get code () { throw new Error('no') } }
  let stats
  const [span] = await exported(t, {}, async (app) => {
    app.lightTrace.tracer.startSpan('named', hostile).setStatus(hostile).end()
    stats = app.lightTrace.stats()
  })
  t.equal(span.name, 'named')
  t.equal(stats.spans.started, stats.spans.ended)
})

// A Map with a limit, as the model of a span with any number of attributes.
function modelOf (sets, countMax) {
  const kept = new Map()
  let dropped = 0
  for (const [key, value] of sets) {
    if (kept.has(key) || kept.size < countMax) kept.set(key, value)
    else dropped++
  }
  return { attributes: Object.fromEntries(kept), dropped }
}

for (const [title, keyOf] of [
  ['the same keys with each span', (i) => `key.${i}`],
  ['keys that never come again', (i, span) => `key.${span}.${i}`],
  ['keys that are too long to be remembered', (i) => `key.${i}.${'k'.repeat(200)}`]
]) {
  test(`far beyond the limit the last value of a key wins, and each other one counts as dropped: ${title}`, async (t) => {
    const spans = 20
    const sets = Array.from({ length: spans }, (_, span) => {
      const list = []
      for (let i = 0; i < 200; i++) {
        list.push([keyOf(i, span), `value ${i}`])
        if (i % 3 === 0) list.push([keyOf(i >> 1, span), `again ${i}`]) // a key that was set or dropped before
      }
      return list
    })
    const made = await exported(t, {}, async (app) => {
      for (const [span, list] of sets.entries()) {
        const made = app.lightTrace.tracer.startSpan(`span ${span}`)
        for (const [key, value] of list) made.setAttribute(key, value)
        made.end()
      }
    })
    t.equal(made.length, spans)
    for (const [span, list] of sets.entries()) {
      const { attributes, dropped } = modelOf(list, 128)
      const found = made.find(({ name }) => name === `span ${span}`)
      t.same(found.attributes, attributes)
      t.equal(found.droppedAttributesCount, dropped)
    }
  })
}

test('a server span whose user sets one of its own attributes has it once, with the last value, among a hundred others', async (t) => {
  const sink = await startSink(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: sink.url } })
  app.get('/', async ({ trace }) => {
    for (let i = 0; i < 100; i++) trace.span.setAttribute(`key.${i}`, i)
    trace.span.setAttribute('url.path', '/mine').setAttribute('key.99', 'last')
  })
  await app.inject('/')
  await app.lightTrace.flush()
  const [{ attributes }] = sink.spans
  t.equal(attributes['url.path'], '/mine')
  t.equal(attributes['key.99'], 'last')
  t.equal(Object.keys(attributes).filter((key) => key.startsWith('key.')).length, 100)
})
