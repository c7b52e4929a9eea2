'use strict'

// Values that a user, or a caller through the user's code, may set on a span. They are bounded, valid and counted when they are dropped,
// and never throw into the handler. The test decodes the bytes that a collector received.

const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')
const { connect } = require('../support/raw-client')
const { without } = require('../support/features')

async function recorded (t, work, trace = {}) {
  const sink = await startSink(t)
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { spanProcessors: undefined, exporter: { url: sink.url }, ...trace },
    routes: (app) => app.get('/', async (request) => { await work(request.trace.span, request); return 'ok' })
  })
  t.equal((await app.inject('/')).statusCode, 200)
  await app.lightTrace.flush()
  t.equal(sink.spans.length, 1)
  return sink.spans[0]
}

const own = ({ attributes }) => Object.fromEntries(Object.entries(attributes).filter(([key]) => !/^(http|url|network|client|server|user_agent)\./.test(key)))

// A02
test('invalid values are dropped and counted, without running any of their code', async (t) => {
  const ran = []
  const trap = new Proxy({}, { get () { ran.push('get'); throw new Error('trap') }, ownKeys () { ran.push('keys'); throw new Error('trap') } })
  const { proxy: revoked, revoke } = Proxy.revocable([], {})
  revoke()
  const hostile = [
    undefined, Symbol('s'), 1n, () => { ran.push('call') }, new Date(), new Map(), /x/, trap, revoked, new (class { a = 1 })(),
    [Symbol('s')], [1n],
    Object.defineProperty(['a', 'b'], 1, { get () { throw new Error('element') } })
  ]
  const span = await recorded(t, (span) => { hostile.forEach((value, i) => span.setAttribute(`k${i}`, value)) })
  t.same(own(span), {})
  t.equal(span.droppedAttributesCount, hostile.length)
  t.same(ran, [])
})

test('setAttributes accepts hostile objects', async (t) => {
  const span = await recorded(t, (span) => {
    span.setAttributes(null)
    span.setAttributes(undefined)
    span.setAttributes('text')
    span.setAttributes(7)
    span.setAttributes(new Proxy({}, { ownKeys () { throw new Error('keys') } }))
    span.setAttributes(Object.defineProperty({ fine: 1 }, 'broken', { enumerable: true, get () { throw new Error('getter') } }))
    span.setAttributes(JSON.parse('{"__proto__":"p","constructor":"c","hasOwnProperty":"h"}'))
    span.setAttributes(Object.create({ inherited: 1 }))
  })
  t.same(Object.entries(own(span)), [['fine', 1], ['__proto__', 'p'], ['constructor', 'c'], ['hasOwnProperty', 'h']])
  t.equal({}.polluted, undefined)
})

test('an event whose attributes throw is recorded without them', async (t) => {
  const refuses = () => { throw new Error('no') }
  const span = await recorded(t, (span) => {
    span.addEvent('refused', new Proxy({}, { get: refuses, has: refuses, ownKeys: refuses, getPrototypeOf: refuses }))
  })
  t.same(span.events.map(({ name, attributes }) => [name, { ...attributes }]), [['refused', {}]])
})

test('an exception whose validation throws records only which part was wrong', async (t) => {
  const refuses = () => { throw new Error('no') }
  const hostile = [
    [{ path: ['at', Symbol('s')], keyword: 'type' }],
    [{ path: [{ toString: refuses }], keyword: 'type' }],
    new Proxy([], { get: refuses })
  ]
  const span = await recorded(t, (span) => {
    for (const validation of hostile) span.recordException(Object.assign(new Error('SECRET'), { validation, validationContext: 'body' }))
  })
  t.same(span.events.map(({ attributes }) => attributes['exception.message']), ['body', 'body', 'body'])
})

test('maps with methods, cycles and deep values run none of their code and are limited', async (t) => {
  const ran = []
  const cycle = []
  cycle.push(cycle, cycle)
  let deep = []
  for (let i = 0; i < 1e5; i++) deep = [deep]
  const methods = { toString () { ran.push('toString') }, toJSON () { ran.push('toJSON') }, valueOf () { ran.push('valueOf') } }
  const span = await recorded(t, (span) => span.setAttributes({ cycle, deep, methods }))
  t.ok(JSON.stringify(own(span)).length < 50000)
  t.same(own(span).methods, {})
  t.equal(span.droppedAttributesCount, 3)
  t.same(ran, [])
})

// A03
test('keys and texts are always valid UTF-8 of limited length', async (t) => {
  const span = await recorded(t, (span) => {
    span.setAttribute('', 'empty').setAttribute(7, 'number').setAttribute(Symbol('s'), 1).setAttribute({}, 1)
    span.setAttribute('k'.repeat(1e6), 'long key')
    span.setAttribute('lone \ud800 key', 'lone \udc00 value')
    span.setAttribute('nul', 'a\u0000b')
    span.setAttribute('huge', 'x'.repeat(100 * 1024 * 1024))
    span.setAttribute('pairs', '🦊'.repeat(20000))
    span.setAttribute('list', Array.from({ length: 3000 }, () => 'y\ud800'))
    span.updateName('n'.repeat(1e6) + '\ud800')
    span.updateName({})
    span.setStatus({ code: 2, message: 's'.repeat(1e6) + '\ud800' })
    span.addEvent('e'.repeat(1e6))
    span.addEvent(Symbol('s'))
  })
  const attributes = own(span)
  const keys = Object.keys(attributes)
  t.ok(keys.every((key) => key.length <= 1024))
  t.equal(attributes['lone \ufffd key'], 'lone \ufffd value')
  t.equal(attributes.nul, 'a\u0000b')
  t.equal(attributes.huge.length, 16384)
  t.ok(attributes.pairs.length <= 16384 && attributes.pairs.isWellFormed())
  t.ok(attributes.list.length <= 1024)
  t.equal(attributes.list[7], 'y\ufffd')
  t.ok(span.name.length <= 16384)
  t.ok(span.status.message.length <= 16384)
  t.equal(span.droppedAttributesCount, 6, 'four rejected, a key and a list cut')
})

test('a span with a name of megabytes arrives with a shorter one', async (t) => {
  const sink = await startSink(t)
  const { app } = await tracedApp(t, { listen: false, trace: { spanProcessors: undefined, exporter: { url: sink.url } } })
  app.lightTrace.tracer.startSpan('🦊\ud800'.repeat(2e6)).end()
  await app.lightTrace.flush()
  const [{ name }] = await sink.waitFor(1)
  t.ok(name.length <= 16384 && name.startsWith('🦊\ufffd'))
})

test('numbers arrive unchanged', async (t) => {
  const numbers = { zero: 0, minus: -0, int: 42, big: 2 ** 53 - 1, bigger: 2 ** 60, small: -(2 ** 53) + 1, half: 0.5, nan: NaN, infinite: Infinity, tiny: 5e-324 }
  const span = await recorded(t, (span) => { span.setAttributes(numbers) })
  for (const [key, value] of Object.entries(numbers)) t.ok(Object.is(own(span)[key], value) || own(span)[key] === value, key)
})

test('a processor that ends a span in onEnding ends it once', { skip: without('keep') || without('sdk') }, async (t) => {
  const seen = []
  const processor = {
    onStart () {},
    onEnding (span) {
      seen.push(`${span.name} ends`)
      span.end()
      if (seen.length < 20) span.setAttribute('late', 1).end()
    },
    onEnd (span) { seen.push(`${span.name} ${span.attributes.late}`) },
    forceFlush: async () => {},
    shutdown: async () => {}
  }
  for (const trace of [{}, { sampler: 0, keep: { errors: true } }]) {
    const { app } = await tracedApp(t, {
      listen: false,
      trace: { spanProcessors: [processor], ...trace },
      routes: (app) => app.get('/', async (request, reply) => { request.trace.withSpan('child', () => {}); return reply.code(500).send() })
    })
    await app.inject('/')
    t.same(seen.splice(0).sort(), ['GET / 1', 'GET / ends', 'child 1', 'child ends'])
    const { started, ended, unsampled, handedOver } = app.lightTrace.stats().spans
    t.same([started, ended, unsampled, handedOver], [2, 2, 0, 2])
  }
})

test('every loss beyond a limit is counted on the span', async (t) => {
  const variables = { OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT: '2', OTEL_LINK_ATTRIBUTE_COUNT_LIMIT: '1' }
  Object.assign(process.env, variables)
  t.teardown(() => { for (const name of Object.keys(variables)) delete process.env[name] })
  const span = await recorded(t, (span) => {
    for (let i = 0; i < 1000; i++) span.setAttribute(`k${i}`, i)
    for (let i = 0; i < 20; i++) span.addEvent(`e${i}`, { a: 1, b: 2, c: 3 })
    const context = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 }
    for (let i = 0; i < 20; i++) span.addLink({ context, attributes: { a: 1, b: 2, c: 3 } })
    span.addLinks([null, {}, { context: {} }, { context: { traceId: 'x', spanId: 'y' } }])
    span.setAttribute('k0', 'replaced')
  }, { limits: { attributes: 20, events: 5, links: 3 } })
  const count = Object.keys(span.attributes).length
  t.ok(count <= 20 && count >= 19, 'ours and the user\'s together, with space for an error.type')
  t.equal(Object.keys(own(span)).length + span.droppedAttributesCount, 1000)
  t.equal(own(span).k0, 'replaced')
  t.equal(span.events.length, 5)
  t.equal(span.droppedEventsCount, 15)
  t.same(span.events.map(({ droppedAttributesCount }) => droppedAttributesCount), [1, 1, 1, 1, 1])
  t.equal(span.links.length, 3)
  t.equal(span.droppedLinksCount, 21)
  t.same(span.links.map(({ droppedAttributesCount }) => droppedAttributesCount), [2, 2, 2])
})

test('a link is copied when it is added, and no code of its owner runs when the span ends', async (t) => {
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const spanId = 'b7ad6b7169203331'
  const ran = []
  let asked = 0
  const span = await recorded(t, (span) => {
    const changing = { traceId, spanId, traceFlags: 1 }
    span.addLink({ context: changing })
    Object.assign(changing, { traceId: 'ab'.repeat(1e6), spanId: null, traceFlags: 1n })
    span.addLink({ context: { traceId, spanId, traceFlags: 1n } })
    span.addLink({ context: { traceId, spanId, traceFlags: { valueOf () { ran.push('valueOf') } } } })
    span.addLink({ context: { traceId, spanId, traceFlags: 1, traceState: { serialize: () => asked++ === 0 ? 'a=b' : 'é'.repeat(1e6) } } })
    span.addLink({ context: { traceId, spanId, traceFlags: 1, traceState: { serialize () { throw new Error('state') } } } })
    span.addLink({ context: { traceId, spanId, traceFlags: 1 }, get attributes () { throw new Error('attributes') } })
    span.addLink({ context: { traceId, spanId, traceFlags: 1, get isRemote () { throw new Error('remote') } } })
    span.addLink({ get context () { throw new Error('context') } })
  })
  t.same(span.links.map((link) => [link.traceId, link.spanId]), Array(6).fill([traceId, spanId]))
  t.equal(span.links[3].traceState, 'a=b')
  t.equal(span.droppedLinksCount, 2)
  t.same(ran, [])
})

test('a million attributes cost no more than the limit', async (t) => {
  const span = await recorded(t, (span) => { for (let i = 0; i < 1e6; i++) span.setAttribute(`k${i}`, i) })
  t.ok(Object.keys(span.attributes).length <= 128)
  t.equal(Object.keys(own(span)).length + span.droppedAttributesCount, 1e6)
})

test('a span that is too large for a request to a collector is cut', async (t) => {
  const sink = await startSink(t)
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { spanProcessors: undefined, exporter: { url: sink.url } },
    routes: (app) => app.get('/:n', async (request) => {
      const list = Array.from({ length: 1024 }, () => 'x'.repeat(16384))
      if (request.params.n === 'huge') for (let i = 0; i < 10; i++) request.trace.span.setAttribute(`k${i}`, list)
      return 'ok'
    })
  })
  await app.inject('/huge')
  await app.inject('/usual')
  await app.lightTrace.flush()
  t.same(sink.spans.map(({ attributes }) => attributes['url.path']), ['/huge', '/usual'])
  t.equal(sink.spans[0].droppedAttributesCount, 10)
  t.match(app.lightTrace.stats().spans, { ended: 2, accepted: 2, delivered: 2, dropped: {} })
})

// A05
test('calls after the end are ignored, including a second end', async (t) => {
  let kept
  const { app, collector } = await tracedApp(t, { listen: false, routes: (app) => app.get('/', async (request) => { kept = request.trace.span; return 'ok' }) })
  await app.inject('/')
  const before = await collector.spans()
  kept.setAttribute('late', 1).setAttributes({ late: 1 }).addEvent('late').addLink({}).setStatus({ code: 2 }).updateName('late')
  kept.recordException(new Error('late'))
  kept.end()
  t.same(await collector.spans(), before)
  t.equal(kept.isRecording(), false)
  t.notOk('late' in kept.attributes)
  t.match(app.lightTrace.stats().spans, { started: 1, ended: 1, accepted: 1 })
})

test('a request whose handler ends its span has one span', async (t) => {
  const { app, collector } = await tracedApp(t, { listen: false, routes: (app) => app.get('/', async (request) => { request.trace.span.end(); return 'ok' }) })
  await app.inject('/')
  t.equal((await collector.spans()).length, 1)
  t.match(app.lightTrace.stats().spans, { started: 1, ended: 1, accepted: 1 })
})

// K05
test('times from a user are read in the forms of the API, and invalid ones are ignored', async (t) => {
  const wall = 1700000000000
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/', async (request) => {
      const { tracer } = app.lightTrace
      tracer.startSpan('date', { startTime: new Date(wall) }, request.trace).end(new Date(wall + 5))
      tracer.startSpan('hr', { startTime: [wall / 1000, 500] }, request.trace).end([wall / 1000, 1500])
      tracer.startSpan('ms', { startTime: wall }, request.trace).end(wall + 1)
      tracer.startSpan('before its start', { startTime: wall }, request.trace).end(wall - 1000)
      for (const nonsense of [NaN, -1e300, 'text', {}, [], [NaN, 1], new Date(NaN), [1n, 1n], 1n, Object.create(Date.prototype)]) tracer.startSpan('nonsense', { startTime: nonsense }, request.trace).end(nonsense)
      return 'ok'
    })
  })
  await app.inject('/')
  const spans = await collector.spans()
  const named = (name) => spans.find((span) => span.name === name)
  t.equal(named('date').startTime, wall)
  t.equal(Math.round(named('date').duration), 5)
  t.ok(Math.abs(named('hr').duration - 0.001) < 1e-4)
  t.equal(Math.round(named('ms').duration), 1)
  t.equal(named('before its start').duration, 0)
  const now = Date.now()
  for (const { startTime, duration } of spans.filter(({ name }) => name === 'nonsense')) {
    t.ok(Math.abs(startTime - now) < 60000)
    t.ok(duration >= 0 && duration < 60000)
  }
})

test('any request headers result in a correct span', async (t) => {
  const { app, collector, port } = await tracedApp(t, { routes: (app) => app.get('/*', async () => 'ok') })
  const lines = [
    'traceparent: ', 'traceparent: 00-zz', 'traceparent: ' + 'a'.repeat(5000), 'tracestate: =,=,=', 'tracestate: ' + 'a=b,'.repeat(500), 'baggage: ;;;==,,%zz',
    'baggage: ' + 'k=v,'.repeat(1000), 'user-agent: ' + 'u'.repeat(7000), 'user-agent: \u00ff\u0080', 'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  ]
  for (const line of lines) {
    const client = await connect(port)
    client.socket.write(`GET /a?%zz=%&sig=%zz HTTP/1.1\r\nhost: a\r\n${line}\r\n\r\n`, 'latin1')
    await client.until('HTTP/1.1 200')
    await client.leave()
  }
  const spans = await collector.spans()
  t.equal(spans.length, lines.length)
  for (const { traceId, parentSpanId, attributes } of spans) {
    t.match(traceId, /^[0-9a-f]{32}$/)
    t.equal(parentSpanId, undefined)
    t.ok((attributes['user_agent.original'] ?? '').length <= 512)
    t.equal(attributes['url.query'], '%zz=%&sig=REDACTED')
  }
  t.match(app.lightTrace.stats().spans, { started: lines.length, ended: lines.length })
})
