'use strict'

// collector.check(), which fails a test because of what a request does.

const http = require('node:http')
const { once } = require('node:events')
const { SpanKind } = require('@opentelemetry/api')
const { test } = require('tap')
const { createCollector } = require('../lib/features/testing/testing')
const { without } = require('./support/features')
const { tracedApp } = require('./support/traced-app')

/** A database call, as its instrumentation would record it. */
function query (trace, name, { system = 'postgresql', attributes = {}, work = () => new Promise(setImmediate) } = {}) {
  const { tracer } = trace
  return tracer.startActiveSpan(name, { kind: SpanKind.CLIENT, attributes: { 'db.system.name': system, 'db.query.summary': name, 'server.address': 'db', ...attributes } }, async (span) => {
    await work()
    span.end()
  })
}

async function shop (t, handler, options = {}) {
  const traced = await tracedApp(t, {
    listen: false,
    ...options,
    routes: (app) => {
      const query_ = (name, more) => query({ tracer: app.lightTrace.tracer }, name, more)
      app.get('/orders', (request) => handler(request, query_))
    }
  })
  return { ...traced, get: () => traced.app.inject('/orders') }
}

async function refused (t, collector, budget) {
  const error = await collector.check(budget).then(() => t.fail('the check passed'), (error) => error)
  t.equal(error.code, 'LT_ERR_CHECK')
  t.equal(error.name, 'LightTraceError')
  return error
}

test('repeated calls over the budget fail the check, and a larger budget allows them', async (t) => {
  const { collector, get } = await shop(t, async ({ trace }, query) => {
    await query('SELECT orders')
    await trace.withSpan('load items', async () => { for (let i = 0; i < 4; i++) await query('SELECT items') })
    return 'ok'
  })
  await get()
  const { message, findings } = await refused(t, collector, { repeats: 3 })
  t.equal(message, [
    'over budget',
    'GET /orders: postgresql SELECT items repeated 4 times in sequence under INTERNAL load items, 3 allowed',
    '',
    '  SERVER GET /orders',
    '    CLIENT postgresql SELECT orders',
    '    INTERNAL load items',
    ...Array(4).fill('      CLIENT postgresql SELECT items  <-- repeated')
  ].join('\n'))
  t.same(findings, [{ rule: 'repeats', route: 'GET /orders', allowed: 3, found: 4, message: message.split('\n')[1] }])
  await collector.check({ repeats: 4 })
  await collector.check({ calls: { postgresql: 5 } })
})

test('neither concurrent calls nor different calls count as repeated', async (t) => {
  const { collector, get } = await shop(t, async (request, query) => {
    await Promise.all(Array.from({ length: 6 }, () => query('SELECT items')))
    for (const table of ['a', 'b', 'c']) await query(`SELECT ${table}`)
    for (const port of [1, 2, 3]) await query('GET', { system: 'redis', attributes: { 'server.port': port } })
    return 'ok'
  })
  await get()
  await collector.check({ repeats: 1 })
  t.match((await refused(t, collector, { calls: { postgresql: 8, redis: 2 } })).findings, [
    { rule: 'calls', allowed: 8, found: 9 }, { rule: 'calls', allowed: 2, found: 3 }
  ])
})

test('calls are counted per request, and a nested call of the same kind is not counted again', async (t) => {
  const { collector, get } = await shop(t, async (request, query) => {
    await query('SELECT', { work: () => query('SELECT orders') })
    await query('SELECT', { work: () => query('GET', { system: 'redis' }) })
    return 'ok'
  })
  await get()
  await get()
  await collector.check({ calls: { postgresql: 2, redis: 1 } })
  t.match(await refused(t, collector, { calls: { postgresql: 1 } }), { message: /^over budget\nGET \/orders: postgresql: 2 calls, 1 allowed \(in 2 requests\)\n/ })
})

test('a folded span counts as the number of its calls', async (t) => {
  const { collector, get } = await shop(t, async (request, query) => {
    await query('SELECT items')
    await query('SELECT items', { attributes: { 'light_trace.fold.count': 90 } })
    return 'ok'
  })
  await get()
  const { message, findings } = await refused(t, collector, { repeats: 90, calls: { postgresql: 90 } })
  t.same(findings.map(({ rule, found }) => [rule, found]), [['calls', 91], ['repeats', 91]])
  t.match(message, '    CLIENT postgresql SELECT items (90 calls)  <-- postgresql, repeated')
})

test('HTTP calls are compared by the shape of their path, without ids', async (t) => {
  const upstream = http.createServer((request, response) => response.end('ok')).listen(0, '127.0.0.1')
  t.teardown(() => upstream.close())
  await once(upstream, 'listening')
  const origin = `http://127.0.0.1:${upstream.address().port}`
  const { collector, get } = await shop(t, async () => {
    for (const path of ['items/1', 'items/2', 'items/3', 'stock', 'v1/prices']) await (await fetch(`${origin}/${path}`)).text()
    return 'ok'
  })
  await get()
  await collector.check({ repeats: 3, calls: { http: 5 } })
  t.match((await refused(t, collector, { repeats: 2 })).message, 'CLIENT GET 127.0.0.1/items/*  <-- repeated')
  t.match((await refused(t, collector, { calls: { http: 4 } })).findings, [{ rule: 'calls', found: 5 }])
})

test('spans that continue after the response or never end are reported', async (t) => {
  const collector = createCollector({ timeoutMs: 20 })
  const held = []
  const { get } = await shop(t, async (request, query) => {
    held.push(query('SELECT late', { work: () => new Promise((resolve) => held.push(resolve)) }))
    return 'ok'
  }, { trace: { spanProcessors: [collector] } })
  await get()
  const { message } = await refused(t, collector, { open: false })
  t.equal(message, 'over budget\nGET /orders: 1 span never ended\n\n  SERVER GET /orders\n    CLIENT postgresql SELECT late  <-- never ended')
  t.match((await refused(t, collector, { afterResponse: false })).message, /1 span continued after the response\n\n {2}SERVER.*\n {4}CLIENT.* <-- after the response$/)
  await collector.check({ open: true, repeats: 1 })
  held[0]()
  await collector.check({ open: false })
  t.match((await refused(t, collector, { afterResponse: false, open: false })).message, /1 span continued after the response\n\n {2}SERVER.*\n {4}CLIENT.* <-- after the response$/)
})

test('spans of hooks after the answer do not count as work after the response', { skip: without('stages') }, async (t) => {
  const { collector, app } = await tracedApp(t, {
    listen: false,
    trace: { spans: { handler: true, hooks: ['onSend', 'onResponse'] } },
    routes: (app) => {
      app.addHook('onResponse', (request, reply, done) => done())
      app.addHook('onResponse', async () => {})
      app.get('/', async () => 'ok')
    }
  })
  await app.inject('/')
  t.match(await collector.tree(), 'onResponse')
  await collector.check({ afterResponse: false, open: false })
})

test('an invalid budget, or one that cannot fail, is a TypeError', async (t) => {
  const { collector, get } = await shop(t, async (request, query) => { await query('SELECT', { system: 'ours' }); return 'ok' })
  await get()
  for (const [budget, message] of [
    [undefined, /`?options`? must be an object, received undefined/],
    [{}, 'the budget allows everything: give repeats, calls, afterResponse: false or open: false'],
    [{ afterResponse: true, open: true, calls: {} }, 'allows everything'],
    [{ repeat: 3 }, 'unknown option `repeat`: did you mean `repeats`?'],
    [{ milliseconds: 3 }, 'unknown option `milliseconds`: known are repeats, calls, afterResponse, open'],
    [{ repeats: '3' }, '`repeats` must be an integer from 0'],
    [{ repeats: -1 }, '`repeats` must be an integer from 0'],
    [{ calls: { redis: true } }, '`calls.redis` must be an integer from 0'],
    [{ calls: 3 }, '`calls` must be an object, received 3'],
    [{ calls: { postgres: 3 } }, '`calls.postgres`: no calls of this kind, did you mean `postgresql`?'],
    [{ open: 0 }, '`open` must be true or false, received 0']
  ]) {
    const error = await collector.check(budget).then(() => null, (error) => error)
    t.type(error, TypeError, JSON.stringify(budget))
    t.match(error?.message, message)
    t.match(error?.code, /^LT_ERR_OPTION_/)
  }
  await collector.check({ calls: { ours: 1, redis: 0 } })
})

test('a check without spans fails, since the collector may not be in use', async (t) => {
  t.match((await refused(t, createCollector(), { repeats: 1 })).message, 'nothing to check')
})

test('long trees, and long lists of trees, are cut', async (t) => {
  const { collector, get } = await shop(t, async (request, query) => {
    for (let i = 0; i < 300; i++) await query('SELECT items')
    return 'ok'
  })
  for (let i = 0; i < 5; i++) await get()
  const { message } = await refused(t, collector, { repeats: 1 })
  t.match(message, '(in 5 requests)')
  t.match(message, '... and 101 more lines')
  t.match(message, /\.\.\. and 2 more trees$/)
  t.equal(message.split('  SERVER GET /orders\n').length, 4)
})
