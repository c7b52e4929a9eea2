'use strict'

// Attribute values of API 1.10: all types of values that OTLP has, in the bytes and on the spans that processors get.

const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')

const VALUES = {
  map: { a: 1, b: 'two', c: [true, null], d: { e: 1.5 } },
  empty: {},
  bytes: new Uint8Array([1, 2, 255]),
  buffer: Buffer.from('x'),
  mixed: ['a', 1, true, null, 2.5],
  nested: [[1, [2]], [{ a: 1 }]],
  null: null,
  own: JSON.parse('{"__proto__":"p","constructor":"c"}')
}

async function exported (t, work, trace = {}) {
  const sink = await startSink(t)
  const routes = (app) => app.get('/', async (request) => { await work(request.trace.span, request); return 'ok' })
  const native = await tracedApp(t, { listen: false, routes, trace: { spanProcessors: undefined, exporter: { url: sink.url }, ...trace } })
  t.equal((await native.app.inject('/')).statusCode, 200)
  await native.app.lightTrace.flush()
  const processed = await tracedApp(t, { listen: false, routes, trace })
  t.equal((await processed.app.inject('/')).statusCode, 200)
  return { sent: sink.spans, seen: await processed.collector.spans(), app: native.app }
}

test('maps, bytes, nested and mixed arrays and null arrive unchanged', async (t) => {
  const { sent: [sent], seen: [seen] } = await exported(t, (span) => {
    span.setAttributes(VALUES)
    span.addEvent('event', VALUES)
    span.addLink({ context: { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 }, attributes: VALUES })
  })
  for (const span of [sent, seen]) {
    for (const attributes of [span.attributes, span.events[0].attributes, span.links[0].attributes]) {
      for (const [key, value] of Object.entries(VALUES)) {
        if (ArrayBuffer.isView(value)) t.same([...attributes[key]], [...value], key)
        else t.same(JSON.stringify(attributes[key]), JSON.stringify(value), key)
      }
    }
  }
  t.equal(sent.droppedAttributesCount, 0)
})

test('later changes of a given value have no effect', async (t) => {
  const map = { list: [1], bytes: Buffer.from('a'), inner: { a: 1 } }
  const { sent: [sent], seen: [seen] } = await exported(t, (span) => {
    map.list[0] = 1
    map.bytes[0] = 97
    map.inner.a = 1
    span.setAttribute('map', map)
    map.list[0] = 2
    map.bytes[0] = 98
    map.inner.a = 2
  })
  for (const { attributes: { map } } of [sent, seen]) {
    t.equal(map.list[0], 1)
    t.equal(map.bytes[0], 97)
    t.equal(map.inner.a, 1)
  }
})

test('long strings and bytes inside a value are cut at its limit', async (t) => {
  const { sent: [{ attributes }] } = await exported(t, (span) => span.setAttributes({
    map: { text: 'x'.repeat(1000), list: ['y'.repeat(1000)] }, bytes: new Uint8Array(1000)
  }), { limits: { attributeValueLength: 100 } })
  t.equal(attributes.map.text.length, 100)
  t.equal(attributes.map.list[0].length, 100)
  t.equal(attributes.bytes.length, 100)
})

test('depth, members and length are limited, and the rest is left out, counted and logged once', async (t) => {
  const lines = []
  const log = { level: 'info', warn: (...line) => lines.push(line), info () {}, debug () {}, error () {}, fatal () {}, trace () {}, child () { return log } }
  let deep = 'bottom'
  for (let i = 0; i < 200; i++) deep = i % 2 ? [deep] : { deep }
  const cycle = {}
  cycle.cycle = cycle
  const sink = await startSink(t)
  const { app } = await tracedApp(t, {
    listen: false,
    fastify: { loggerInstance: log },
    trace: { spanProcessors: undefined, exporter: { url: sink.url } },
    routes: (app) => app.get('/', async ({ trace: { span } }) => {
      span.setAttributes({ deep, cycle, wide: Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`k${i}`, i])) })
      span.setAttribute('list', Array.from({ length: 3000 }, (_, i) => i))
      span.setAttribute('k'.repeat(3000), 1)
      return 'ok'
    })
  })
  await app.inject('/')
  await app.lightTrace.flush()
  const [{ attributes }] = sink.spans
  t.ok(JSON.stringify(attributes.deep).length < 2000)
  t.ok(JSON.stringify(attributes.cycle).length < 2000)
  t.equal(Object.keys(attributes.wide).length, 1024)
  t.equal(attributes.list.length, 1024)
  t.equal(sink.spans[0].droppedAttributesCount, 5)
  const said = lines.flat().filter((part) => JSON.stringify(part).includes('LT_WARN_ATTRIBUTE'))
  t.equal(said.length, 1)
})

test('a hostile object is dropped and counted, and none of its code runs twice', async (t) => {
  const { sent: [span] } = await exported(t, (span) => {
    span.setAttribute('throws', { get a () { throw new Error('no') } })
    span.setAttribute('proxy', new Proxy({}, { ownKeys () { throw new Error('no') } }))
    span.setAttribute('date', new Date())
    span.setAttribute('map', new Map([['a', 1]]))
    span.setAttribute('function', () => {})
    span.setAttribute('inside', { fine: 1, fn () {}, symbol: Symbol('s'), big: 1n, date: new Date() })
  })
  t.equal(span.droppedAttributesCount, 6, 'five, and the members that are left out')
  t.same(span.attributes.inside, { fine: 1 })
})
