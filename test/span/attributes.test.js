'use strict'

// Attributes arrive in the order in which they were set, whatever previous spans had. Keys in an order that was seen before are found
// directly, all others are searched.

const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { without } = require('../support/features')
const { startSink } = require('../support/otlp-sink')
const { tracedApp } = require('../support/traced-app')
const { randomFrom } = require('../support/random')

/** Starts a server. Returns a function that changes a request's span and a child of it, and resolves to both spans as they arrived. */
async function server (t, options = {}) {
  const sink = await startSink(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: sink.url }, ...options })
  let set
  const handler = async (request) => {
    set(request.trace.span)
    request.trace.withSpan('child', (span) => set(span))
    return 'ok'
  }
  app.get('/', handler)
  app.get('/own', { config: { trace: { attributes: { team: 'shop' } } } }, handler)
  return async (doing, path = '/') => {
    set = doing
    sink.spans.length = 0
    await app.inject(path)
    await app.lightTrace.flush()
    return { server: sink.spans.find(({ kind }) => kind === 'SERVER'), child: sink.spans.find(({ name }) => name === 'child') }
  }
}

const setAll = (list) => (span) => { for (const [key, value] of list) span.setAttribute(key, value) }
const entriesOf = ({ attributes }, keys) => Object.entries(attributes).filter(([key]) => keys.has(key))

/** Returns the entries as a Map would keep them. */
function expected (list) {
  const model = new Map()
  for (const [key, value] of list) model.set(key.toWellFormed(), typeof value === 'string' ? value.toWellFormed() : value)
  return [...model]
}

test('attributes arrive with their values, in any order, again and again', async (t) => {
  const run = await server(t)
  const random = randomFrom(7)
  const keys = ['a', 'user.id', 'user.plan', 'größe', '日本', 'b\ud800', 'b\ufffd', 'k'.repeat(100), 'k'.repeat(101), 'k'.repeat(1024), 'constructor', '__proto_', '0']
  const values = ['', 'x', 0, 127, 128, -1, 0.5, true, false, 'a value of twenty ch', 2 ** 53, ['x', 1], { a: 1 }]
  const any = (of) => of[Math.floor(random() * of.length)]
  let order
  for (let i = 0; i < 60; i++) {
    // Each order occurs three times, with different values.
    if (i % 3 === 0) order = Array.from({ length: 1 + Math.floor(random() * 20) }, () => any(keys))
    const list = order.map((key) => [key, any(values)])
    const spans = await run(setAll(list))
    const model = expected(list)
    const known = new Set(model.map(([key]) => key))
    for (const span of [spans.server, spans.child]) {
      // The decoder puts the key '0' first.
      const sorted = (entries) => entries.sort(([one], [other]) => (other === '0') - (one === '0'))
      t.strictSame(sorted(entriesOf(span, known)), sorted(model), JSON.stringify(order))
      t.equal(span.droppedAttributesCount, 0)
    }
  }
})

test('strings of every length and kind arrive complete', async (t) => {
  const run = await server(t)
  const sliced = `${'-'.repeat(50)}${'s'.repeat(40)}`
  const texts = ['', 'é', '\x7f', '\x80', '\xff', '日', '😀', '\ud800', '\udc00', 'a\ud800', '\ud800a', '😀\ud83d']
  for (let length = 1; length < 34; length++) {
    texts.push('x'.repeat(length), `${'x'.repeat(length - 1)}\xe9`, `\u65e5${'x'.repeat(length - 1)}`, '\ud800'.repeat(length), sliced.slice(50, 50 + length), 'c'.repeat(length) + length)
  }
  const list = texts.map((text, i) => [`text.${i}`, text])
  for (let from = 0; from < list.length; from += 40) {
    const some = list.slice(from, from + 40)
    const keys = new Set(some.map(([key]) => key))
    for (let again = 0; again < 2; again++) {
      const spans = await run(setAll(some))
      for (const span of [spans.server, spans.child]) t.strictSame(entriesOf(span, keys), expected(some))
    }
  }
})

test('a key that is set again keeps its place with a new value, even if the span sets it itself', async (t) => {
  const run = await server(t)
  for (let again = 0; again < 3; again++) {
    const spans = await run(setAll([['a', 1], ['b', 2], ['a', 3], ['http.route', 'mine'], ['b', 4], ['team', 'mine']]), '/own')
    const keys = new Set(['a', 'b', 'http.route', 'team'])
    t.strictSame(entriesOf(spans.child, keys), [['a', 3], ['b', 4], ['http.route', 'mine'], ['team', 'mine']])
    t.strictSame(Object.fromEntries(entriesOf(spans.server, keys)), { a: 3, b: 4, 'http.route': 'mine', team: 'mine' })
  }
})

test('the limit also applies to keys in a known order', async (t) => {
  const run = await server(t)
  const list = Array.from({ length: 140 }, (_, i) => [`limit.${i}`, i])
  for (const path of ['/', '/own', '/', '/own']) {
    const own = Object.keys((await run(() => {}, path)).server.attributes).length
    const spans = await run(setAll(list), path)
    t.equal(Object.keys(spans.server.attributes).length, 128)
    t.equal(spans.server.droppedAttributesCount, 140 - 128 + own)
    t.equal(Object.keys(spans.child.attributes).length, 128)
    t.equal(spans.child.droppedAttributesCount, 12)
  }
})

test('a value may set another attribute when it is read', async (t) => {
  const run = await server(t)
  for (let again = 0; again < 3; again++) {
    const spans = await run((span) => {
      span.setAttribute('first', 1)
      span.setAttribute('map', { get inner () { span.setAttribute('in between', 2); return 3 } })
      span.setAttribute('last', 4)
    })
    for (const span of [spans.server, spans.child]) {
      t.strictSame(entriesOf(span, new Set(['first', 'map', 'in between', 'last'])).map(([key]) => key), ['first', 'in between', 'map', 'last'])
    }
  }
})

test('an invalid attribute is counted, and does not affect the next', async (t) => {
  const run = await server(t)
  for (let again = 0; again < 3; again++) {
    const spans = await run((span) => {
      span.setAttribute('ok', 1)
      span.setAttribute('', 1)
      span.setAttribute(7, 1)
      span.setAttribute('function', () => {})
      span.setAttributes({ more: 2, undefined, ok: 3, get throws () { throw new Error('no') } })
      span.setAttributes(null)
    })
    for (const span of [spans.server, spans.child]) {
      t.strictSame(entriesOf(span, new Set(['ok', 'more', 'function', 'undefined', 'throws'])), [['ok', 3], ['more', 2]])
      t.equal(span.droppedAttributesCount, 5)
    }
  }
})

test('keys can be any text, in more orders than the cache holds', async (t) => {
  const run = await server(t)
  for (let i = 0; i < 50; i++) {
    const list = Array.from({ length: 40 }, (_, j) => [`made.${i}.${j}`, `value ${j}`])
    const spans = await run(setAll(list))
    const keys = new Set(list.map(([key]) => key))
    for (const span of [spans.server, spans.child]) t.strictSame(entriesOf(span, keys), list)
  }
})

test('a lone surrogate is U+FFFD for every reader, even in a known order of keys', { skip: without('sdk') }, async (t) => {
  const run = await server(t)
  const seen = []
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { spanProcessors: [{ onStart () {}, onEnd: ({ attributes }) => seen.push(attributes), forceFlush: async () => {}, shutdown: async () => {} }] },
    routes: (app) => app.get('/', async ({ trace: { span } }) => { setAll(list)(span); seen.push(span.attributes) })
  })
  const list = [['half', 'a \ud800'], ['other half', '\udc00 b'], ['long half', `${'x'.repeat(100)}\ud83e`], ['pair', '🦊']]
  const mended = list.map(([key, value]) => [key, value.toWellFormed()])
  const keys = new Set(list.map(([key]) => key))
  for (let again = 0; again < 3; again++) {
    const spans = await run(setAll(list))
    for (const span of [spans.server, spans.child]) t.strictSame(entriesOf(span, keys), mended)
    await app.inject('/')
    t.equal(seen.length, 2, 'read by the handler and by a processor')
    for (const attributes of seen.splice(0)) t.strictSame(entriesOf({ attributes }, keys), mended)
  }
})

test('limits apply in a known order of keys', async (t) => {
  const few = await server(t, { limits: { attributes: 40, attributeValueLength: 5 } })
  const list = Array.from({ length: 50 }, (_, i) => [`limited.${i}`, i % 2 === 0 ? 'a long value' : i])
  const cut = list.map(([key, value]) => [key, typeof value === 'string' ? 'a lon' : value])
  for (let again = 0; again < 3; again++) {
    const { server, child } = await few(setAll(list))
    t.equal(Object.keys(server.attributes).length, 40)
    t.equal(Object.keys(child.attributes).length, 40)
    t.strictSame(Object.entries(child.attributes), cut.slice(0, 40))
    t.equal(child.droppedAttributesCount, 10)
    const kept = Object.entries(server.attributes).filter(([key]) => key.startsWith('limited.'))
    t.strictSame(kept, cut.slice(0, kept.length))
    t.equal(server.droppedAttributesCount, 50 - kept.length)
  }
})
