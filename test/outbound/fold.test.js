'use strict'

// Repeated calls under one parent. The parent's attributes report them, and `outbound.fold` merges most of them into one span. The test
// publishes the calls as the libraries do. test/services runs the libraries.
// Feature: repeated-calls, libraries
// Alone in its process: traceClient leaves pg alone once its channel has been heard, and other files publish it.

const diagnosticsChannel = require('node:diagnostics_channel')
const { EventEmitter, once } = require('node:events')
const { test } = require('tap')
const { setTimeout: waits, setImmediate: turn } = require('node:timers/promises')
const lightTrace = require('../..')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')

const redis = { database: 2, serverAddress: 'redis.internal', serverPort: 6379 }
const mysql = { database: 'shop', serverAddress: 'db.internal', serverPort: 3306 }
const call = (name, payload, work = async () => 'done') => diagnosticsChannel.tracingChannel(name).tracePromise(work, payload)
const get = (key, work, more) => call('node-redis:command', { command: 'GET', args: ['GET', key], ...redis, ...more }, work)
const select = (id, more) => call('mysql2:execute', { query: 'SELECT * FROM users WHERE id = ?', values: [id], ...mysql, ...more })
const fails = async () => { throw new Error('WRONGTYPE no') }
const fold = { outbound: { fold: { after: 3 } } }

function deferred () {
  let resolve
  const promise = new Promise((_resolve) => { resolve = _resolve })
  return { promise, resolve }
}

async function inTurn (count, one) {
  for (let i = 0; i < count; i++) await one(i)
}

// Runs `work` inside a request. Returns the app, all spans, the request's span and its calls.
async function during (t, work, trace = {}) {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace,
    routes: (app) => app.get('/go', async (request) => { await work(request); return 'ok' })
  })
  const response = await app.inject('/go')
  if (response.statusCode !== 200) throw new Error(response.body)
  const spans = await collector.spans()
  return { app, collector, spans, server: spans.find(({ kind }) => kind === 'SERVER'), calls: spans.filter(({ kind }) => kind === 'CLIENT') }
}

// Only the calls that outlive the request are still open then.
async function requestHasEnded (app, openCalls) {
  for (let spans; spans === undefined || spans.started - spans.ended > openCalls; spans = app.lightTrace.stats().spans) await turn()
}

const repeated = ({ attributes }) => [attributes['light_trace.repeated.shape'], attributes['light_trace.repeated.count']]
const countOf = ({ attributes }) => attributes['light_trace.fold.count']
const isFold = (span) => countOf(span) !== undefined
// Independent of the machine's speed: a call that took longer than the others has its own span, which counts as one.
const total = (calls) => calls.reduce((sum, span) => sum + (countOf(span) ?? 1), 0)

test('five sequential calls of one shape are reported on their parent', async (t) => {
  t.same(repeated((await during(t, () => inTurn(5, get))).server), ['redis GET', 5])
  const { server } = await during(t, () => inTurn(7, select))
  t.same(repeated(server), ['SELECT users', 7])
  const { 'light_trace.repeated.duration': seconds } = server.attributes
  t.ok(seconds > 0 && seconds * 1000 <= server.duration, `${seconds} s of ${server.duration} ms`)
})

test('four calls are not, nor concurrent calls, nor calls of different shapes or servers', async (t) => {
  const none = [undefined, undefined]
  t.same(repeated((await during(t, () => inTurn(4, get))).server), none)
  t.same(repeated((await during(t, () => Promise.all(Array.from({ length: 20 }, (_, i) => get(`k${i}`, turn))))).server), none)
  t.same(repeated((await during(t, () => inTurn(20, (i) => get('k', turn, { command: `C${'abcdefghijklmnopqrst'[i]}` })))).server), none)
  t.same(repeated((await during(t, () => inTurn(8, (i) => select(i, { serverPort: 3306 + i % 2 })))).server), none)
  // Five rounds of ten concurrent calls are typically the fix for an N+1.
  t.same(repeated((await during(t, () => inTurn(5, () => Promise.all(Array.from({ length: 10 }, () => get('k', turn)))))).server), none)
})

test('calls that are published when they end count as sequential only if they did not overlap', async (t) => {
  const publish = (ms) => diagnosticsChannel.channel('sqlite.db.query').publish({ sql: 'SELECT 1', database: 'shop.db', duration: ms * 1e6 })
  t.same(repeated((await during(t, () => inTurn(6, () => publish(3_600_000)))).server), [undefined, undefined])
  t.same(repeated((await during(t, () => inTurn(6, async () => { publish(1e-6); await turn() }))).server), ['SELECT', 6])
})

test('the most repeated shape is reported, on the span that made the calls', async (t) => {
  const { spans, server } = await during(t, ({ trace }) => trace.withSpan('load', async () => {
    await inTurn(6, select)
    await inTurn(9, get)
  }))
  t.same(repeated(spans.find(({ name }) => name === 'load')), ['redis GET', 9])
  t.same(repeated(server), [undefined, undefined])
})

test('of ten thousand shapes the first sixteen are counted, and nothing fails', async (t) => {
  const { calls, server } = await during(t, async () => {
    await inTurn(10_000, (i) => call('mysql2:execute', { query: `SELECT * FROM t${i}`, values: [], ...mysql }))
    await inTurn(9, get)
  }, fold)
  t.equal(calls.length, 10_009)
  t.same(repeated(server), [undefined, undefined])
})

test('fold: after the first calls, one span represents the others', async (t) => {
  const { app, calls, server } = await during(t, () => inTurn(100, (i) => get(`user:${i}`, turn)), fold)
  t.equal(calls.filter(isFold).length, 1)
  const one = calls.find(isFold)
  t.match(one, { name: 'GET', kind: 'CLIENT', parentSpanId: server.spanId, traceId: server.traceId, status: { code: 'UNSET' } })
  const { 'light_trace.fold.count': count, 'light_trace.fold.duration.sum': sum, 'light_trace.fold.duration.min': least, 'light_trace.fold.duration.max': most, ...others } = one.attributes
  t.equal(total(calls), 100)
  t.ok(calls.length < 60)
  t.equal(app.lightTrace.stats().spans.folded, count)
  t.ok(least > 0 && least <= sum / count && sum / count <= most, { least, sum, most })
  t.ok(sum * 1000 <= one.duration + 0.001, 'the calls were sequential')
  t.same(others, { 'db.system.name': 'redis', 'db.namespace': '2', 'db.operation.name': 'GET', 'db.query.text': 'GET', 'server.address': 'redis.internal', 'server.port': 6379 })
  t.ok(one.startTime >= calls[2].endTime && one.endTime <= server.endTime)
  t.same(repeated(server), ['redis GET', 100], 'folded calls count')
  const { started, ended, accepted } = app.lightTrace.stats().spans
  t.same([started, ended, accepted], Array(3).fill(calls.length + 1))
})

test('fold: queries are grouped by their summary, and the span has no query text', async (t) => {
  const { calls } = await during(t, () => inTurn(20, async (i) => {
    await select(i)
    await call('mysql2:execute', { query: 'SELECT * FROM orders WHERE user = ?', values: [i], ...mysql })
  }), fold)
  const folds = calls.filter(isFold)
  t.same(folds.map(({ name }) => name).sort(), ['SELECT orders', 'SELECT users'])
  for (const span of folds) t.notOk('db.query.text' in span.attributes)
  t.equal(total(calls), 40)
})

test('fold: a call that fails or is slow has its own span', async (t) => {
  const { calls } = await during(t, () => inTurn(40, async (i) => {
    if (i === 20) await t.rejects(get('broken', fails))
    else await get(`k${i}`, () => i === 30 ? waits(300) : turn())
  }), fold)
  const texts = calls.filter((span) => countOf(span) === undefined).map(({ attributes }) => attributes['db.query.text'])
  t.ok(texts.includes('GET broken') && texts.includes('GET k30'), texts.join())
  t.match(calls.find(({ attributes }) => attributes['db.query.text'] === 'GET broken'), { status: { code: 'ERROR' }, attributes: { 'error.type': 'WRONGTYPE' } })
  t.ok(calls.find(({ attributes }) => attributes['db.query.text'] === 'GET k30').duration >= 290)
  t.equal(total(calls), 40)
})

test('fold: concurrent calls are folded in part, and calls that outlive their parent are counted', async (t) => {
  const atOnce = await during(t, () => Promise.all(Array.from({ length: 50 }, (_, i) => get(`k${i}`, turn))), fold)
  t.equal(total(atOnce.calls), 50)
  t.ok(atOnce.calls.length < 50)
  let over
  const late = new Promise((resolve) => { over = resolve })
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: fold,
    routes: (app) => app.get('/go', async () => {
      await inTurn(10, get)
      get('late', () => late)
      return 'ok'
    })
  })
  await app.inject('/go')
  await requestHasEnded(app, 1)
  over()
  await turn()
  const spans = await collector.spans()
  const one = spans.find(isFold)
  t.ok(countOf(one) > 0)
  t.match(spans.find(({ attributes }) => attributes['db.query.text'] === 'GET late'), { attributes: { 'light_trace.after_response': true } })
})

test('fold: each span folds its own calls', async (t) => {
  const { spans, server } = await during(t, async ({ trace }) => {
    await inTurn(30, get)
    await trace.withSpan('outer', async () => {
      await inTurn(20, get)
      await Promise.all(['a', 'b'].map((name) => trace.withSpan(name, () => inTurn(10, (i) => get(`${name}${i}`, turn)))))
    })
  }, fold)
  const idOf = (name) => spans.find((span) => span.name === name).spanId
  for (const [parent, count] of [[server.spanId, 30], [idOf('outer'), 20], [idOf('a'), 10], [idOf('b'), 10]]) {
    const own = spans.filter(({ kind, parentSpanId }) => kind === 'CLIENT' && parentSpanId === parent)
    t.equal(total(own), count)
    t.equal(own.filter(isFold).length, 1)
  }
})

test('fold: the statements of a transaction stay, and a pipeline or a MULTI is one call', async (t) => {
  const statement = (query) => call('mysql2:query', { query, ...mysql })
  const transaction = await during(t, async () => {
    await statement('BEGIN')
    await inTurn(30, select)
    await statement('COMMIT')
  }, fold)
  t.equal(total(transaction.calls), 32)
  t.same(['BEGIN', 'COMMIT'].map((name) => transaction.calls.filter((span) => span.name === name && !isFold(span)).length), [1, 1])
  for (const more of [{}, { keep: { errors: true } }]) {
    const { calls } = await during(t, () => inTurn(30, (i) => call('node-redis:batch', { batchMode: 'MULTI', batchSize: i + 2, ...redis })), { ...fold, ...more })
    t.equal(total(calls), 30)
    t.same(calls.find(isFold).attributes['db.operation.batch.size'], undefined, 'they differ')
  }
})

test('fold: requests of a cursor for more rows are folded', async (t) => {
  const next = (i) => call('mongoose:cursor:next', { operation: 'next', collection: 'users', database: 'shop', serverAddress: 'db.internal', serverPort: 27017 }, turn)
  const { calls } = await during(t, () => inTurn(40, next), { outbound: { fold: { after: 3 }, channels: { 'mongoose:cursor:next': true } } })
  t.equal(total(calls), 40)
  t.equal(calls.filter(isFold).length, 1)
})

test('fold: streamed queries of a traced client are folded', { skip: without('trace-client') }, async (t) => {
  class Client {
    host = 'db.internal'
    port = 5432
    query (cursor) {
      setImmediate(() => cursor.emit('end'))
      return cursor
    }
  }
  const client = lightTrace.traceClient(new Client())
  const cursor = () => Object.assign(new EventEmitter(), { submit () {}, text: 'SELECT * FROM users' })
  const streamed = await during(t, () => inTurn(40, () => once(client.query(cursor()), 'end')), fold)
  t.equal(total(streamed.calls), 40)
  t.equal(streamed.calls.filter(isFold).length, 1)
})

test('fold: if the client leaves, the folded span ends with its request, and later calls have their own', async (t) => {
  const handled = deferred()
  const { origin, app, collector } = await tracedApp(t, {
    trace: fold,
    routes: (app) => app.get('/go', async (request, reply) => {
      await inTurn(30, (i) => get(`before${i}`))
      reply.raw.write('begun')
      await once(reply.raw, 'close')
      await turn()
      await inTurn(30, (i) => get(`after${i}`))
      reply.hijack()
      handled.resolve()
    })
  })
  const leave = new AbortController()
  await fetch(`${origin}/go`, { signal: leave.signal })
  leave.abort()
  await handled.promise
  const spans = await collector.spans()
  const server = spans.find(({ kind }) => kind === 'SERVER')
  t.match(server, { attributes: { 'error.type': 'aborted' } })
  const calls = spans.filter(({ kind }) => kind === 'CLIENT')
  t.equal(total(calls), 60)
  t.ok(calls.find(isFold).endTime <= server.endTime)
  const late = calls.filter(({ attributes }) => attributes['light_trace.after_response'] === true)
  t.same(late.map(({ attributes }) => attributes['db.query.text']), Array.from({ length: 30 }, (_, i) => `GET after${i}`))
  const { started, ended, accepted } = app.lightTrace.stats().spans
  t.same([started, ended, accepted], Array(3).fill(spans.length))
})

test('fold: is off by default, and never applies to HTTP calls or below an unsampled parent', async (t) => {
  const plain = await during(t, () => inTurn(30, get))
  t.equal(plain.calls.length, 30)
  t.equal(plain.app.lightTrace.stats().spans.folded, 0)
  t.equal((await during(t, () => inTurn(30, get), { outbound: { fold: true } })).calls.filter((span) => !isFold(span)).length >= 10, true)
  const unsampled = await during(t, () => inTurn(30, get), { ...fold, sampler: 'always_off' })
  t.match(unsampled.app.lightTrace.stats().spans, { folded: 0, started: 31, ended: 31, unsampled: 31 })
  const { origin } = await tracedApp(t, { routes: (app) => app.get('/', async () => 'ok') })
  const { calls, server } = await during(t, () => inTurn(10, async () => (await fetch(origin)).text()), fold)
  t.equal(calls.length, 10)
  t.same(repeated(server), [undefined, undefined])
})

test('fold: a folded span has its parent\'s threshold', async (t) => {
  let calls = []
  while (calls.length === 0) calls = (await during(t, () => inTurn(30, get), { ...fold, sampler: 0.5 })).calls
  t.ok(calls.some(isFold))
  t.same([...new Set(calls.map(({ traceState }) => traceState))], ['ot=th:8'])
})

test('fold: under `keep`, folded calls are held with the others until the end of their request', { skip: without('keep') }, async (t) => {
  for (const [sampler, errors] of [['always_on', true], ['always_off', true], ['always_off', false]]) {
    const { app, collector } = await tracedApp(t, {
      listen: false,
      trace: { ...fold, sampler, keep: { errors: true } },
      routes: (app) => app.get('/go', async () => {
        await inTurn(30, get)
        if (errors) throw new Error('broken')
        return 'ok'
      })
    })
    await app.inject('/go')
    const spans = await collector.spans()
    const calls = spans.filter(({ kind }) => kind === 'CLIENT')
    t.equal(total(calls), errors || sampler === 'always_on' ? 30 : 0, `${sampler} ${errors}`)
    const { started, ended, unsampled, accepted, folded } = app.lightTrace.stats().spans
    t.same([started, started], [ended, unsampled + accepted])
    t.ok(folded > 0 && folded < 28 && started === 32 - folded, folded)
  }
})

test('fold: metrics count each call', { skip: without('metrics') || without('testing') }, async (t) => {
  for (const more of [{}, { keep: { errors: true } }]) {
    const { collector } = await during(t, async () => { await inTurn(30, get); await inTurn(20, select) }, { ...fold, ...more, metrics: true })
    const points = (await collector.metrics()).filter(({ name }) => name === 'db.client.operation.duration')
      .flatMap((metric) => metric.dataPoints ?? metric.points).map(({ count, value, attributes }) => [attributes['db.operation.name'] ?? attributes['db.query.summary'], count ?? value.count])
    t.same(points.sort(), [['GET', 30], ['SELECT users', 20]])
  }
})

test('fold: an invalid value throws at register', async (t) => {
  for (const fold of [{ after: 0 }, { after: 1.5 }, 10]) {
    await t.rejects(tracedApp(t, { listen: false, trace: { outbound: { fold } }, routes () {} }), { code: 'LT_ERR_OPTION_INVALID' })
  }
})
