'use strict'

// What the pages of routes, exceptions and logs are made of: rates, statuses, counts over time, and the two lines that Fastify writes for a request.

const { test } = require('tap')
const { startViewer, spansOf, traceId, spanId, START_MS } = require('./support')
const { encodeRequest } = require('../support/otlp-encode')
const { TraceStore } = require('../../viewer/store/trace-store')
const { RouteStatistics } = require('../../viewer/statistics/routes')
const { Exceptions } = require('../../viewer/statistics/exceptions')

const request = { id: 1, name: 'GET /users/:id', kind: 2, attributes: { 'http.request.method': 'GET', 'http.route': '/users/:id', 'http.response.status_code': 200 } }
const thrown = (type, more = {}) => ({ name: 'exception', attributes: { 'exception.type': type, 'exception.message': 'no', 'exception.stacktrace': `${type}: no\n    at load (/app/${type}.js:1:1)`, ...more } })
const answered = (code, more = {}) => ({ ...request, ...more, attributes: { ...request.attributes, 'http.response.status_code': code } })

/** Returns a store and its statistics with a clock that only the test moves. */
function withClock () {
  const clock = { now: 1_000_000_000 }
  const now = () => clock.now
  const store = new TraceStore({ now })
  const [routes, exceptions] = [new RouteStatistics(store, { now }), new Exceptions(store, { now })]
  let trace = 0
  return { clock, routes, exceptions, receive: (...spans) => store.receive(encodeRequest(spansOf(spans.map((span) => ({ trace, ...span }))))), next: () => ++trace }
}

test('the rate of a route is of the last minute', (t) => {
  const { clock, routes, receive, next } = withClock()
  const hit = (times) => { for (let i = 0; i < times; i++) receive({ ...request, trace: next() }) }
  const rate = () => routes.list().routes[0].perSecond
  hit(3)
  t.equal(Math.round(rate() * 60), 3, 'few requests: as many as arrived in the minute, also if all of them just arrived')
  clock.now += 59_000
  t.equal(Math.round(rate() * 60), 3)
  clock.now += 1000
  t.equal(rate(), 0)
  hit(59)
  t.equal(Math.round(rate() * 60), 59)
  hit(1)
  t.equal(rate(), 1, 'many: over the time in which they arrived, at most a minute')
  clock.now += 3_600_000
  t.equal(rate(), 0)
  hit(120)
  clock.now += 1000
  hit(180)
  t.equal(rate(), 5)
  clock.now += 59_000
  t.equal(rate(), 3)
  t.end()
})

test('a new route with many requests has its rate at once', (t) => {
  const { clock, routes, receive, next } = withClock()
  for (let second = 0; second < 4; second++) {
    for (let i = 0; i < 50; i++) receive({ ...request, trace: next() })
    clock.now += 1000
  }
  t.equal(routes.list().routes[0].perSecond, 50)
  t.end()
})

test('an exception has the status of its request, and whether the request failed', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([answered(404, { trace: 1, events: [thrown('NotFound')] })])
  await viewer.send([answered(500, { trace: 2, status: 2, events: [thrown('Broken')] })])
  await viewer.send([{ trace: 3, id: 2, parent: 1, name: 'cache', status: 2, events: [thrown('Caught')] }, { ...request, trace: 3 }])
  await viewer.send([{ trace: 4, id: 3, parent: 2, name: 'load', status: 2, events: [thrown('Later')] }])
  await viewer.send([{ trace: 5, name: 'job', status: 2, events: [thrown('OfAJob')] }])
  const found = async () => Object.fromEntries((await viewer.json('/api/exceptions')).exceptions.map(({ type, status, failed }) => [type, [status, failed]]))
  t.same(await found(), { NotFound: [404, false], Broken: [500, true], Caught: [200, false], Later: [null, true], OfAJob: [null, true] })
  await viewer.send([{ trace: 4, id: 2, parent: 1, name: 'handler' }])
  await viewer.send([answered(409, { trace: 4 })])
  t.same((await found()).Later, [409, false], 'the request arrived after the exception')
  await viewer.send([answered(503, { trace: 6, status: 2, events: [thrown('NotFound')] })])
  await viewer.send([answered(404, { trace: 7, events: [thrown('NotFound')] })])
  t.same((await found()).NotFound, [503, true], 'one failed request counts more than many that did not fail')
})

test('an exception belongs to the nearest request, which may be of another service than the first', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([answered(404, { id: 3, parent: 2, events: [thrown('NoItem')] })], { service: 'stock' })
  await viewer.send([{ id: 2, parent: 1, name: 'GET', kind: 3, status: 2, attributes: { 'http.response.status_code': 404 } }, answered(500, { status: 2, events: [thrown('Broken')] })])
  const { exceptions } = await viewer.json('/api/exceptions')
  t.match(exceptions.find(({ type }) => type === 'NoItem'), { status: 404, failed: false })
  t.match(exceptions.find(({ type }) => type === 'Broken'), { status: 500, failed: true })
})

test('spans that are each other\'s parents do not keep the search for the request going', (t) => {
  const { exceptions, receive, next } = withClock()
  next()
  receive({ id: 1, parent: 2, status: 2, events: [thrown('Circle')] }, { id: 2, parent: 1 })
  t.match(exceptions.list().exceptions, [{ type: 'Circle', status: null, failed: true }])
  t.end()
})

test('of a trace, the first 16 different exceptions are counted, each once and found by its key', async (t) => {
  const viewer = await startViewer(t)
  const types = Array.from('ABCDEFGHIJKLMNOPQR')
  const spans = [...types, ...types, ...types].map((type, i) => ({ id: i + 2, parent: 1, events: [thrown(type)] }))
  await viewer.send([{ ...answered(500), status: 2 }, ...spans])
  await viewer.send(spans.map((span) => ({ ...span, id: span.id + 100 })))
  await viewer.send([{ ...answered(500), trace: 2, status: 2, events: [thrown('Q')] }])
  const { exceptions } = await viewer.json('/api/exceptions')
  t.same(exceptions.map(({ type, count, traces }) => [type, count, traces]), [['Q', 1, [traceId(2)]], ...types.slice(0, 16).reverse().map((type) => [type, 1, [traceId(1)]])])
  for (const { key, traces } of exceptions) t.same((await viewer.json(`/api/traces?exception=${key}`)).traces.map(({ id }) => id), traces)
})

test('exceptions are counted over the last ten minutes, by when they arrived', (t) => {
  const { clock, exceptions, receive, next } = withClock()
  const fail = (times = 1) => { for (let i = 0; i < times; i++) receive(answered(500, { trace: next(), at: -500_000, status: 2, events: [thrown('Broken')] })) }
  fail(2)
  clock.now += 25_000
  fail()
  const { nowMs, slotMs, exceptions: [row] } = exceptions.list()
  t.same([nowMs, slotMs], [clock.now, 10_000])
  t.same(row.histogram, [{ atMs: clock.now - 25_000, count: 2 }, { atMs: clock.now - 5000, count: 1 }])
  clock.now += 590_000
  t.same(exceptions.list().exceptions[0].histogram, [{ atMs: clock.now - 595_000, count: 1 }])
  clock.now += 20_000
  t.same(exceptions.list().exceptions[0].histogram, [])
  fail()
  t.match(exceptions.list().exceptions[0], { count: 4, histogram: [{ count: 1 }] })
  t.end()
})

test('within an interval, exceptions are counted by when their requests started, in slots that fit it', async (t) => {
  const viewer = await startViewer(t)
  for (const [trace, at] of [[1, 0], [2, 1000], [3, 600_000]]) await viewer.send([answered(500, { trace, at, status: 2, events: [thrown('Broken')] })])
  const { nowMs, slotMs, exceptions: [row] } = await viewer.json(`/api/exceptions?from=${START_MS}&to=${START_MS + 600_000}`)
  t.same([nowMs, slotMs], [START_MS + 600_000, 11_000])
  t.match(row, { count: 3, status: 500, failed: true })
  t.same(row.histogram.map(({ count }) => count), [2, 1])
  t.equal((await viewer.json(`/api/routes?from=${START_MS}&to=${START_MS + 36_000_000}`)).routes[0].perSecond, 3 / 36_000, 'a low rate is not zero')
})

test('a failure that turns out to be an exception is not counted twice, also not over time', (t) => {
  const { exceptions, receive, next } = withClock()
  const call = { id: 3, parent: 1, name: 'SELECT', kind: 3, status: 2, attributes: { 'error.type': '23505' } }
  receive({ ...call, trace: next() })
  receive({ ...call, trace: next() })
  receive(answered(500, { status: 2, events: [thrown('Broken')] }))
  t.match(exceptions.list().exceptions, [{ type: 'Broken', count: 1, histogram: [{ count: 1 }] }, { type: '23505', count: 1, histogram: [{ count: 1 }] }])
  t.end()
})

const text = (value) => ({ stringValue: value })
const map = (values) => ({ kvlistValue: { values: keyValues(values) } })
const keyValues = (values) => Object.entries(values).map(([key, value]) => ({ key, value }))

/** Sends log records as Fastify's logger writes them, { text, trace, attributes }. */
function sendRecords (viewer, records, service = 'shop') {
  const logRecords = records.map(({ text: body, trace, severity = 9, attributes = {} }) => ({
    timeUnixNano: `${START_MS}000000`, severityNumber: severity, body: text(body), attributes: keyValues(attributes), ...(trace !== undefined && { traceId: traceId(trace), spanId: spanId(1) })
  }))
  const body = { resourceLogs: [{ resource: { attributes: keyValues({ 'service.name': text(service) }) }, scopeLogs: [{ scope: { name: 'pino' }, logRecords }] }] }
  return viewer.post('/v1/logs', JSON.stringify(body), { 'content-type': 'application/json' })
}

const incoming = { text: 'incoming request', trace: 1, attributes: { reqId: text('req-1'), req: map({ method: text('GET'), url: text('/users/7'), host: text('localhost') }) } }
const completed = { text: 'request completed', trace: 1, attributes: { reqId: text('req-1'), res: map({ statusCode: { intValue: '200' } }), responseTime: { doubleValue: 1.234567891 } } }

test('the two lines that Fastify writes for a request say what they are', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([request])
  const { attributes } = completed
  const strange = [
    { ...incoming, attributes: { reqId: text('req-1') } },
    { ...incoming, attributes: { ...incoming.attributes, req: map({ method: { intValue: '5' }, url: text('/') }) } },
    { ...completed, attributes: { ...attributes, responseTime: text('fast') } },
    { ...completed, attributes: { ...attributes, res: text('200') } },
    { ...completed, text: 'REQUEST COMPLETED' },
    { ...completed, attributes: { res: attributes.res, responseTime: attributes.responseTime }, trace: undefined }
  ]
  await sendRecords(viewer, [incoming, completed, { ...incoming, trace: undefined }, ...strange])
  const lines = (await viewer.json('/api/logs')).lines.reverse()
  t.match(lines[0].request, { of: /./, method: 'GET', url: '/users/7' })
  t.match(lines[1].request, { of: lines[0].request.of, status: 200, durationMs: 1.234567891 })
  t.ok(lines[2].request.of !== lines[0].request.of, 'of another trace, or of none')
  t.same(lines.slice(3).map((line) => line.request), strange.map(() => undefined))
  t.equal(lines[1].rest, 'reqId=req-1 res={"statusCode":200} responseTime=1.23 ms')
})

test('numbers are rounded in a list of lines, and exact when a line is read whole', async (t) => {
  const viewer = await startViewer(t)
  const double = (doubleValue) => ({ doubleValue })
  await sendRecords(viewer, [{ text: 'x', attributes: { a: double(1.23456789), b: double(0.1 + 0.2), c: { intValue: '1234567890' }, d: double(123456789.123), e: map({ f: double(2 / 3) }), responseTime: double(1234.5678), g: text('1.23456789') } }])
  const { lines: [{ rest, order }] } = await viewer.json('/api/logs')
  t.equal(rest, 'a=1.23457 b=0.3 c=1234567890 d=123456789 e={"f":0.666667} responseTime=1235 ms g=1.23456789')
  t.match((await viewer.json(`/api/logs/${order}`)).attributes, [{ key: 'a', value: 1.23456789 }, { key: 'b', value: 0.1 + 0.2 }])
})

test('any line is read whole by its order, with and without a trace', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([request])
  await sendRecords(viewer, [{ ...incoming, text: 'x'.repeat(20_000) }, { text: 'loose', severity: 17, attributes: { user: text('ann') } }])
  const [loose, held] = (await viewer.json('/api/logs')).lines
  t.match(await viewer.json(`/api/logs/${loose.order}`), { order: loose.order, trace: null, row: null, level: 'error', body: { value: 'loose' }, attributes: [{ key: 'user', value: 'ann' }], service: 'shop', scope: { name: 'pino' } })
  const { body, ...rest } = await viewer.json(`/api/logs/${held.order}`)
  t.match(rest, { order: held.order, trace: traceId(1), row: 'l0', span: spanId(1) })
  t.match([body.value.length, body.cut], [16_384, true])
  t.equal((await viewer.json(`/api/logs/${held.order}?full=1`)).body.value.length, 20_000)
  for (const path of ['99', '0', '-1', '1.5', 'x', '', '1/2', '%00']) t.match(await (await viewer.get(`/api/logs/${path}`)).json(), { error: /./ }, path)
  for (const path of ['99', 'x', '1/2']) t.equal((await viewer.get(`/api/logs/${path}`)).status, 404, path)
})

test('an exception of several routes names them, the newest first and ten at most', async (t) => {
  const { exceptions, receive, next } = withClock()
  for (const route of ['/a', '/b', '/a', ...Array.from({ length: 11 }, (_, i) => `/c${i}`), '/b']) {
    next()
    receive({ kind: 2, status: 2, attributes: { 'http.request.method': 'GET', 'http.route': route }, events: [{ name: 'exception', attributes: { 'exception.type': 'StockError', 'exception.message': 'no stock' } }] })
  }
  const [{ count, routes }] = exceptions.list().exceptions
  t.equal(count, 15)
  t.same(routes, ['GET /b', ...[10, 9, 8, 7, 6, 5, 4, 3, 2].map((i) => `GET /c${i}`)])
  t.end()
})
