'use strict'

// `from`, `to` and `last`: what started in an interval is listed, counted and exported, and nothing else.

const { test } = require('tap')
const { startViewer, spansOf, traceId, START_MS } = require('./support')
const { encodeRequest } = require('../support/otlp-encode')
const { routesWithin } = require('../../viewer/statistics/replay')
const { Services } = require('../../viewer/statistics/services')
const { interval } = require('../../viewer/store/parameters')
const { TraceStore } = require('../../viewer/store/trace-store')

const JSON_TYPE = { 'content-type': 'application/json' }
const SECOND = 1000
const MINUTE = 60_000

const numbers = (traces) => traces.map(({ id }) => Number(`0x${id}`))
const at = (ms) => START_MS + ms

function request (trace, { at = 0, ms = 10, route = '/a', failed = false, of = 1 } = {}) {
  const attributes = { 'http.request.method': 'GET', 'http.route': route, 'http.response.status_code': failed ? 500 : 200 }
  const events = failed ? [{ at, name: 'exception', attributes: { 'exception.type': 'StockError', 'exception.message': `no stock of ${of}`, 'exception.stacktrace': 'StockError: no\n    at load (/app/a.js:1:1)' } }] : []
  return { trace, id: 1, name: `GET ${route}`, kind: 2, at, ms, attributes, events, ...failed && { status: 2, message: 'no stock' } }
}

/** Six requests, one every ten seconds, of which 2 and 5 failed; each with a log line. */
async function shop (t) {
  const viewer = await startViewer(t)
  for (let n = 0; n < 6; n++) await viewer.send([request(n + 1, { at: n * 10 * SECOND, ms: n + 1, route: n < 3 ? '/a' : '/b', failed: n === 1 || n === 4, of: n })])
  const logRecords = Array.from({ length: 6 }, (_, n) => ({ timeUnixNano: `${BigInt(at(n * 10 * SECOND))}000000`, severityNumber: 9, body: { stringValue: `line ${n + 1}` }, traceId: traceId(n + 1) }))
  await viewer.post('/v1/logs', JSON.stringify({ resourceLogs: [{ scopeLogs: [{ logRecords }] }] }), JSON_TYPE)
  return viewer
}

const MIDDLE = `from=${at(10 * SECOND)}&to=${at(40 * SECOND)}`

test('from, to and last of a query make an interval', (t) => {
  const of = (query) => interval(new URLSearchParams(query), 1_000_000)
  t.equal(of(''), null)
  t.equal(of('from=&to=&last='), null)
  t.same(of('from=5&to=7'), { fromMs: 5, toMs: 7 })
  t.same(of('from=5'), { fromMs: 5, toMs: Infinity })
  t.same(of('to=7'), { fromMs: 0, toMs: 7 })
  t.same(of('last=90s'), { fromMs: 910_000, toMs: Infinity })
  t.same(of('last=05m'), { fromMs: 700_000, toMs: Infinity })
  t.same(of('last=15m'), { fromMs: 100_000, toMs: Infinity })
  t.same(of('last=2h&from=5'), { fromMs: 1_000_000 - 7_200_000, toMs: Infinity }, 'last replaces from and to')
  for (const wrong of ['from=7&to=5', 'from=x', 'to=-1', 'from=1.5', 'from=1e400', 'last=15', 'last=0m', 'last=000m', 'last=1234567s', 'last=1d', 'last=-1m', `last=${'9'.repeat(50)}m`, 'last=1m ']) {
    t.throws(() => of(wrong), { message: /^(?:from|to|last): / }, wrong)
  }
  t.end()
})

test('a trace is in the interval in which it started, and a line is in the interval of its time', async (t) => {
  const viewer = await shop(t)
  const found = async (query) => numbers((await viewer.json(`/api/traces?${query}`)).traces)
  t.same(await found(MIDDLE), [5, 4, 3, 2], 'both ends belong to it')
  t.same(await found(`from=${at(25 * SECOND)}`), [6, 5, 4])
  t.same(await found(`to=${at(25 * SECOND)}`), [3, 2, 1])
  t.same(await found(`${MIDDLE}&status=error`), [5, 2])
  t.same(await found('last=1h'), [], 'they started in 2025')
  t.same((await viewer.json(`/api/logs?${MIDDLE}`)).lines.map(({ text }) => text), ['line 5', 'line 4', 'line 3', 'line 2'])
  t.equal((await (await viewer.get(`/api/export?${MIDDLE}`)).text()).trim().split('\n').length, 4)
  for (const path of ['traces', 'traces/overview', 'logs', 'routes', 'exceptions', 'export', 'events']) {
    const response = await viewer.get(`/api/${path}?last=soon`)
    t.equal(response.status, 400, path)
    t.match((await response.json()).error, /^last: /)
  }
})

test('an interval of the last minutes ends now', async (t) => {
  const viewer = await startViewer(t)
  const ago = (ms) => Date.now() - START_MS - ms
  await viewer.send([request(1, { at: ago(10 * MINUTE) }), request(2, { at: ago(2 * MINUTE) })])
  t.same(numbers((await viewer.json('/api/traces?last=5m')).traces), [2])
  t.same((await viewer.json('/api/routes?last=5m')).routes.map(({ count }) => count), [1])
  const { fromMs, toMs, nowMs, requests } = await viewer.json('/api/traces/overview?last=5m')
  t.equal(toMs, nowMs)
  t.equal(toMs - fromMs, 5 * MINUTE)
  t.equal(requests.reduce((a, b) => a + b), 1)
})

test('routes and exceptions of an interval are those of the stored traces in it', async (t) => {
  const viewer = await shop(t)
  const { routes, nowMs, slotMs } = await viewer.json(`/api/routes?${MIDDLE}`)
  t.match(routes, [
    { route: 'GET /a', count: 2, errors: 1, p50Ms: 2, maxMs: 3, slowest: traceId(3), failed: traceId(2), latest: traceId(3) },
    { route: 'GET /b', count: 2, errors: 1, p50Ms: 4, maxMs: 5, slowest: traceId(5), failed: traceId(5), latest: traceId(5) }
  ])
  t.same([nowMs, slotMs], [at(40 * SECOND), 1000], 'the picture ends with the interval')
  t.same(routes[0].histogram.map(({ atMs, errors }) => [atMs, errors]), [[at(10 * SECOND), 1], [at(20 * SECOND), 0]])
  t.equal(routes[0].perSecond, 0.067, '2 in 30 seconds')
  t.match((await viewer.json('/api/routes')).routes.map(({ count }) => count), [3, 3], 'without one: all, as before')
  const all = (await viewer.json('/api/exceptions')).exceptions
  t.match(all, [{ type: 'StockError', count: 2 }])
  const some = (await viewer.json(`/api/exceptions?to=${at(20 * SECOND)}`)).exceptions
  t.match(some, [{ key: all[0].key, type: 'StockError', message: 'no stock of 1', count: 1, traces: [traceId(2)], routes: ['GET /a'], recorded: true }])
  t.same((await viewer.json(`/api/exceptions?from=${at(50 * SECOND)}`)).exceptions, [])
  t.same((await viewer.json('/api/routes?last=5m')).routes, [])
  t.same((await viewer.json('/api/exceptions')).exceptions, all, 'counting again changes nothing')
  t.same(numbers((await viewer.json(`/api/traces?exception=${all[0].key}`)).traces), [5, 2])
  t.match(await viewer.json(`/api/routes/flame?route=GET%20/a&${MIDDLE}`), { requests: 2 })
  t.equal((await viewer.get('/api/routes/flame?route=GET%20/a&last=5m')).status, 404)
})

test('rates of an interval are over the part of it of which no trace was removed', async (t) => {
  const clock = { ms: START_MS }
  const store = new TraceStore({ maxBytes: 200_000, now: () => clock.ms })
  const receive = (n, seconds) => store.receive(encodeRequest(spansOf([{ ...request(n, { at: seconds * SECOND, ms: 5 }) }])))
  for (let n = 1; n <= 1000; n++) {
    clock.ms = at(n * SECOND)
    receive(n, n)
  }
  receive(1001, 10)
  t.ok(store.size < 500, `${store.size}`)
  const { routes } = await routesWithin(store, { fromMs: START_MS, toMs: Infinity }, at(1000 * SECOND))
  t.match(routes, [{ count: store.size }])
  t.ok(Math.abs(routes[0].perSecond - 1) < 0.01, `${routes[0].perSecond}: one a second`)
  const services = new Services(store)
  const { overMs, nodes } = await services.list(new URLSearchParams({ from: START_MS }), at(1000 * SECOND))
  t.equal(overMs, at(1000 * SECOND) - store.sinceMs)
  t.ok(nodes.every(({ perSecond }) => Math.abs(perSecond - 1) < 0.01), JSON.stringify(nodes.map(({ perSecond }) => perSecond)))
  const early = { fromMs: START_MS, toMs: at(20 * SECOND) }
  t.match(await routesWithin(store, early, at(1000 * SECOND)), { routes: [{ count: 1, perSecond: null }] }, 'there is no such part')
  t.match(await services.list(new URLSearchParams({ from: early.fromMs, to: early.toMs }), at(1000 * SECOND)), { overMs: null, edges: [{ calls: 1, perSecond: null }] })
})

test('a request whose clock is ahead is counted as one of now, and hides no other', async (t) => {
  const viewer = await startViewer(t)
  const ago = (ms) => Date.now() - START_MS - ms
  await viewer.send([request(1, { at: ago(4 * MINUTE), failed: true }), request(2, { at: ago(2 * MINUTE), failed: true }), request(3, { at: ago(-60 * MINUTE), failed: true })])
  const { routes, nowMs, slotMs } = await viewer.json('/api/routes?last=5m')
  t.same(routes.map(({ count, histogram }) => [count, histogram.length]), [[3, 3]])
  t.ok(routes[0].histogram.at(-1).atMs <= nowMs && routes[0].histogram.at(-1).atMs > nowMs - 2 * slotMs)
  t.ok(routes[0].lastMs <= nowMs)
  const { exceptions } = await viewer.json('/api/exceptions?last=5m')
  t.same(exceptions.map(({ count, histogram }) => [count, histogram.length]), [[3, 3]])
})

test('the start of a trace without a root is not searched again and again', async (t) => {
  const store = new TraceStore()
  const traces = 20
  let searches = 0
  for (let n = 1; n <= traces; n++) {
    store.receive(encodeRequest(spansOf([{ ...request(n, { at: n * SECOND }), parent: 9 }])))
    const trace = store.at(n)
    const { entry } = trace
    Object.defineProperty(trace, 'entry', { get () { searches++; return entry } })
  }
  const { routes } = await routesWithin(store, { fromMs: START_MS, toMs: Infinity }, at(MINUTE))
  t.match(routes, [{ count: traces, latest: traceId(traces) }])
  t.ok(searches <= 2 * traces, `${searches}`)
})

test('the overview counts requests and failures in slots of time', async (t) => {
  const viewer = await shop(t)
  const of = async (query) => {
    const overview = await viewer.json(`/api/traces/overview?${query}`)
    t.equal(overview.atMs.length, overview.requests.length)
    t.equal(overview.atMs.length, overview.failed.length)
    t.ok(overview.atMs.length <= 121)
    t.ok(overview.atMs[0] <= overview.fromMs && overview.atMs.at(-1) <= overview.toMs && overview.atMs.at(-1) + overview.slotMs > overview.toMs)
    return overview
  }
  const counted = ({ atMs, requests, failed }) => atMs.map((ms, i) => [(ms - START_MS) / SECOND, requests[i], failed[i]]).filter(([, count]) => count > 0)
  const all = await of('')
  t.same(counted(all), [[0, 1, 0], [10, 1, 1], [20, 1, 0], [30, 1, 0], [40, 1, 1], [50, 1, 0]])
  t.match(all, { slotMs: 1000, toMs: at(50 * SECOND), fromMs: at(-10 * SECOND), earlier: 0, later: 0 })
  t.same(counted(await of('status=error')), [[10, 1, 1], [40, 1, 1]])
  t.same(counted(await of(`${MIDDLE}&where=${encodeURIComponent('http.route = /b')}`)), [[30, 1, 0], [40, 1, 1]])
  t.match(await of(MIDDLE), { fromMs: at(10 * SECOND), toMs: at(40 * SECOND), slotMs: 500 })
})

test('clocks that are years off do not hide the others', async (t) => {
  const viewer = await startViewer(t)
  const empty = await viewer.json('/api/traces/overview')
  t.ok(empty.requests.every((count) => count === 0) && empty.requests.length > 10)
  const now = Date.now() - START_MS
  await viewer.send([request(1, { at: -START_MS + 1 }), request(2, { at: now - 5000 }), request(3, { at: now - 1000 }), request(4, { at: now + 3e11 })])
  const { requests, earlier, later, slotMs, nowMs, toMs } = await viewer.json('/api/traces/overview')
  t.same([requests.reduce((a, b) => a + b), earlier, later], [2, 1, 1])
  t.ok(slotMs <= 900_000 && toMs <= nowMs)
  for (const query of ['from=0&to=9007199254740991', 'from=9007199254740991', 'to=0', 'from=9007199254740991&to=9007199254740991']) {
    const { atMs } = await viewer.json(`/api/traces/overview?${query}`)
    t.ok(atMs.length > 0 && atMs.length <= 121 && atMs.every(Number.isFinite), query)
    t.equal((await viewer.get(`/api/routes?${query}`)).status, 200)
    t.equal((await viewer.get(`/api/exceptions?${query}`)).status, 200)
  }
})
