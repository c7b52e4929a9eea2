'use strict'

// The statistics of one trace: its time by the name of its spans, and by service.

const { test } = require('tap')
const { runCommand } = require('./command')
const { startViewer, traceId } = require('./support')

const request = { id: 1, name: 'GET /users/:id', kind: 2, ms: 100, attributes: { 'http.request.method': 'GET', 'http.route': '/users/:id', 'http.response.status_code': 200 } }
const redis = { parent: 1, name: 'GET', kind: 3, attributes: { 'db.system.name': 'redis' } }

const figures = ({ name, calls, totalMs, ownMs, minMs, avgMs, maxMs, errors }) => [name, calls, totalMs, ownMs, minMs, avgMs, maxMs, errors]

async function statistics (t, spans, { by, service } = {}) {
  const viewer = await startViewer(t)
  await viewer.send(spans, { service })
  return viewer.json(`/api/traces/${traceId(1)}/statistics${by === undefined ? '' : `?by=${by}`}`)
}

test('spans with the same name are one row, and the row with the most own time comes first', async (t) => {
  const { rows, trace, by, ownMs, more } = await statistics(t, [
    request,
    { ...redis, id: 2, at: 10, ms: 10 },
    { ...redis, id: 3, at: 30, ms: 30, status: 2 },
    { parent: 1, id: 4, name: 'render', at: 70, ms: 20 }
  ])
  t.same(rows.map(figures), [
    ['GET /users/:id', 1, 100, 40, 100, 100, 100, 0],
    ['redis GET', 2, 40, 40, 10, 20, 30, 1],
    ['render', 1, 20, 20, 20, 20, 20, 0]
  ])
  t.same(rows.map(({ kind, service }) => `${kind} ${service}`), ['SERVER shop', 'CLIENT shop', 'INTERNAL shop'])
  t.match(trace, { id: traceId(1), name: 'GET /users/:id', durationMs: 100 })
  t.same([by, ownMs, more], ['name', 100, 0])
})

test('overlapping children are subtracted once, and only while their parent ran', async (t) => {
  const { rows } = await statistics(t, [
    request,
    { parent: 1, id: 2, name: 'overlaps', at: 10, ms: 40 },
    { parent: 1, id: 3, name: 'overlaps', at: 30, ms: 40 },
    { parent: 1, id: 4, name: 'inside', at: 20, ms: 5 },
    { parent: 1, id: 5, name: 'too early', at: -20, ms: 25 },
    { parent: 1, id: 6, name: 'asynchronous', at: 90, ms: 500 },
    { parent: 1, id: 7, name: 'later', at: 200, ms: 50 }
  ])
  const own = Object.fromEntries(rows.map(({ name, ownMs }) => [name, ownMs]))
  t.same(own, { 'GET /users/:id': 25, overlaps: 80, inside: 5, 'too early': 25, asynchronous: 500, later: 50 })
})

test('a call within a call of the same name adds to the total once', async (t) => {
  const { rows } = await statistics(t, [
    { id: 1, name: 'walk', ms: 100 },
    { id: 2, parent: 1, name: 'walk', at: 10, ms: 60 },
    { id: 3, parent: 2, name: 'read', at: 20, ms: 30 },
    { id: 4, parent: 3, name: 'walk', at: 25, ms: 10 },
    { id: 5, parent: 1, name: 'walk', at: 80, ms: 10 },
    { id: 6, parent: 9, name: 'walk', at: 0, ms: 7 }
  ])
  t.same(rows.map(figures), [['walk', 5, 107, 87, 7, 37.4, 100, 0], ['read', 1, 30, 20, 30, 30, 30, 0]])
})

test('spans of the same service are one row if the statistics are by service', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([request, { parent: 1, id: 2, name: 'GET', kind: 3, at: 10, ms: 60, attributes: { 'http.request.method': 'GET', 'url.full': 'http://stock:3000/items/7' } }])
  await viewer.send([{ parent: 2, id: 3, name: 'GET /items/:id', kind: 2, at: 20, ms: 40, status: 2 }], { service: 'stock' })
  await viewer.send([{ parent: 2, id: 4, name: 'no name', at: 20, ms: 1 }], { service: null })
  const { rows, by } = await viewer.json('/api/traces/last/statistics?by=service')
  t.same(rows.map(figures), [
    ['shop', 2, 100, 60, 60, 80, 100, 0],
    ['stock', 1, 40, 40, 40, 40, 40, 1],
    ['', 1, 1, 1, 1, 1, 1, 0]
  ])
  t.same([by, rows[0].kind], ['service', null])
  const named = await viewer.json('/api/traces/last/statistics?by=name')
  t.same(named.rows.map(({ name }) => name).sort(), ['GET /items/:id', 'GET /users/:id', 'GET stock:3000', 'no name'], 'a call without its path')
  const wrong = await viewer.get('/api/traces/last/statistics?by=kind')
  t.match([wrong.status, await wrong.json()], [400, { error: 'by: must be name or service' }])
  t.equal((await viewer.get(`/api/traces/${traceId(99)}/statistics`)).status, 404)
  t.equal((await viewer.get('/api/traces/last/statistics/x')).status, 404)
})

test('a span that represents folded calls counts as these calls', async (t) => {
  const fold = (count, sum, min, max) => ({ 'db.system.name': 'redis', 'light_trace.fold.count': count, 'light_trace.fold.duration.sum': sum, 'light_trace.fold.duration.min': min, 'light_trace.fold.duration.max': max })
  const folded = await statistics(t, [request, { ...redis, id: 2, at: 10, ms: 2 }, { ...redis, id: 3, at: 12, ms: 80, attributes: fold(98, 0.048, 0.0005, 0.004) }])
  t.same(folded.rows.find(({ name }) => name === 'redis GET'), { name: 'redis GET', service: 'shop', kind: 'CLIENT', calls: 99, totalMs: 50, ownMs: 50, minMs: 0.5, avgMs: 0.505, maxMs: 4, errors: 0 })
  for (const wrong of [[98.5, 1, 0, 1], [-3, 1, 0, 1], [2 ** 40, 1, 0, 1], [98, -1, 0, 1], [98, 'x', 0, 1], [98, Infinity, 0, 1], [98, 1, 0.5, 0.25], [98, 1, NaN, 1]]) {
    const { rows } = await statistics(t, [request, { ...redis, id: 3, at: 12, ms: 80, attributes: fold(...wrong) }])
    t.same(figures(rows.find(({ name }) => name === 'redis GET')), ['redis GET', 1, 80, 80, 80, 80, 80, 0], String(wrong))
  }
})

test('hostile names stay apart and are cut', async (t) => {
  const viewer = await startViewer(t)
  const long = 'x'.repeat(300)
  await viewer.send([{ id: 1, name: '__proto__' }, { id: 2, parent: 1, name: 'b\nc' }, { id: 3, parent: 1, name: `${long}1` }, { id: 4, parent: 1, name: `${long}2` }, { id: 5, parent: 5, name: '<img src=x>' }], { service: 'a' })
  await viewer.send([{ id: 6, parent: 7, name: 'c' }, { id: 7, parent: 6, name: 'constructor' }], { service: 'a\nb' })
  for (const by of ['name', 'service']) {
    const { rows } = await viewer.json(`/api/traces/last/statistics?by=${by}`)
    t.equal(rows.length, by === 'name' ? 7 : 2)
    t.ok(rows.every(({ name, service }) => name.length <= 200 && service.length <= 200))
  }
})

test('10,000 spans have statistics, in a chain or with names of their own', async (t) => {
  const viewer = await startViewer(t)
  const many = Array.from({ length: 10_000 }, (_, i) => i + 1)
  await viewer.send(many.map((id) => ({ trace: 1, id, ...(id > 1 && { parent: id - 1 }), name: `step ${id % 2}`, at: 0, ms: 20_000 - id })))
  await viewer.send(many.map((id) => ({ trace: 2, id, ...(id > 1 && { parent: 1 }), name: `name ${id}`, at: id === 1 ? 0 : id, ms: id === 1 ? 20_000 : 1 })))
  const chain = await viewer.json(`/api/traces/${traceId(1)}/statistics`)
  t.same(chain.rows.map(({ name, calls, totalMs, ownMs }) => [name, calls, totalMs, ownMs]), [['step 0', 5000, 19_998, 10_000 + 4999], ['step 1', 5000, 19_999, 5000]])
  const names = await viewer.json(`/api/traces/${traceId(2)}/statistics`)
  t.same([names.rows.length, names.more, names.ownMs], [500, 9500, 20_000])
  t.same(figures(names.rows[0]), ['name 1', 1, 20_000, 10_001, 20_000, 20_000, 20_000, 0])
})

const table = `GET /users/:id  200  100 ms  shop  ${traceId(1)}

calls  own time    total  average      min      max  failed
    1   60.0 ms   100 ms   100 ms   100 ms   100 ms       0  SERVER GET /users/:id  shop
    2   40.0 ms  40.0 ms  20.0 ms  10.0 ms  30.0 ms       1  CLIENT redis GET  shop
`

test('trace --by prints a table, or JSON', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([request, { ...redis, id: 2, at: 10, ms: 10 }, { ...redis, id: 3, at: 30, ms: 30, status: 2 }])
  const run = (...args) => runCommand(t, ['trace', ...args, '--port', String(viewer.port)]).exit
  t.match(await run('last', '--by', 'name'), { code: 0, stdout: table })
  t.match((await run('last', '--by=service')).stdout, /^GET .*\n\nspans {2}own time .*\n {4}3 {4}100 ms {2}100 ms .* {7}1 {2}shop\n$/)
  t.same(JSON.parse((await run('last', '--by', 'name', '--json')).stdout), await viewer.json(`/api/traces/${traceId(1)}/statistics`))
  t.match(await run('last', '--by', 'kind'), { code: 2, stderr: 'light-trace: --by must be name or service, not "kind"\n' })
  t.match(await run('abcdefab', '--by', 'name'), { code: 1, stdout: '', stderr: /the viewer does not have this trace/ })
})

test('an assistant gets the same table, and hostile names stay on their line', async (t) => {
  const viewer = await startViewer(t)
  const use = async (given) => {
    const input = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_trace_statistics', arguments: given } })}\n`
    return JSON.parse((await runCommand(t, ['mcp', '--port', String(viewer.port)], { input }).exit).stdout).result
  }
  await viewer.send([request, { ...redis, id: 2, at: 10, ms: 10 }, { ...redis, id: 3, at: 30, ms: 30, status: 2 }])
  t.equal((await use({ id: 'last' })).content[0].text, table)
  t.match(await use({ id: 'last', by: 'kind' }), { isError: true, content: [{ text: 'by: must be name or service' }] })
  await viewer.send([{ trace: 2, id: 1, name: 'a\nb\u001b[31m' }], { service: 'c\rd' })
  const { content: [{ text }] } = await use({ id: traceId(2) })
  t.match(text.split('\n').slice(3), [/ INTERNAL a\\u000ab\\u001b\[31m {2}c\\u000dd$/, ''])
})
