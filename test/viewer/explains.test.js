'use strict'

// What the viewer found out about a request, in numbers that agree: repeated calls, and the line that blocked the event loop.

const { test } = require('tap')
const { runApp, eventually, APP } = require('./command')
const { startViewer, traceId, spanId } = require('./support')

const N_PLUS_1 = { 'light_trace.repeated.shape': 'SELECT items', 'light_trace.repeated.count': 12, 'light_trace.repeated.duration': 0.024 }
const ONE = 'SELECT * FROM items WHERE id = $1'
const OTHER = 'SELECT id FROM items LIMIT ?'

/** A request whose first call has another statement than the twelve that follow, and the same name. */
function request ({ count = 12, statement = () => ONE, system = 'postgresql' } = {}) {
  const query = (number, text) => ({ id: number + 2, parent: 1, name: 'SELECT items', kind: 3, at: 1 + number * 3, ms: 2, attributes: { 'db.system.name': system, 'db.query.text': text } })
  return [
    { id: 1, name: 'GET /items', kind: 2, ms: 50, attributes: { 'http.request.method': 'GET', 'http.route': '/items', ...N_PLUS_1, 'light_trace.repeated.count': count } },
    query(0, OTHER), ...Array.from({ length: 12 }, (_, number) => query(number + 1, statement(number)))
  ]
}

const rowsOf = async (viewer) => (await viewer.json(`/api/traces/${traceId(1)}/rows`)).rows
const folds = import('../../viewer/page/folds.mjs')
const folded = async (rows) => (await folds).folded(rows).filter(({ fold }) => fold !== undefined).map(({ fold, name }) => [fold, name])

test('repeated calls have the same number in the span, the text, the list and the rows that the page folds', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send(request())
  const expected = { shape: 'SELECT items', count: 12, savedMs: 22 }
  const { traces: [{ repeats }] } = await viewer.json('/api/traces')
  t.same(repeats, { span: spanId(1), ...expected })
  const rows = await rowsOf(viewer)
  t.same(rows[0].repeats, expected)
  t.same(await folded(rows), [[12, 'postgresql SELECT items']], 'a call with another statement is not one of them')
  t.match(await (await viewer.get('/api/traces/last/text')).text(), '12 calls in sequence: SELECT items; batching them could save up to 22.0 ms')
  const panel = await viewer.json(`/api/traces/last/spans/${spanId(1)}`)
  t.same(panel.repeats, { ...expected, system: 'postgresql', statements: [{ text: ONE, count: 12 }], more: 0 })
  t.equal((await viewer.json(`/api/traces/last/spans/${spanId(2)}`)).repeats, null)
})

test('an application that asks once for all ids and once for each row has one number of repeated calls', async (t) => {
  const route = `const client = new (require('pg').Client)()
app.get('/items', async () => {
  await client.connect()
  await client.query('SELECT id FROM items')
  for (let id = 0; id < 12; id++) await client.query('SELECT name FROM items WHERE id = $1', [id])
  return []
})
app.listen(`
  const PG = 'module.exports = { Client: class Client { connect () { return Promise.resolve() } query () { return new Promise((resolve) => setTimeout(resolve, 2, { rows: [] })) } }, Pool: class Pool {} }'
  const { json, app, output } = await runApp(t, { files: { 'app.js': APP.replace('app.listen(', route), node_modules: { pg: { 'index.js': PG } } } })
  await (await fetch(`${app}/items`)).json()
  const { traces: [{ id, repeats }] } = await eventually(() => json('/api/traces'), ({ traces: [trace] }) => trace?.root)
  const { rows } = await json(`/api/traces/${id}/rows`)
  for (const row of rows) row.duration = 2 // one that a busy machine delays to ten times the others is not folded with them
  const { attributes, repeats: { statements } } = await json(`/api/traces/${id}/spans/${repeats.span}`)
  const inSpan = attributes.find(({ key }) => key === 'light_trace.repeated.count').value
  t.same([repeats.count, inSpan, await folded(rows)], [12, 12, [[12, 'postgresql SELECT items']]])
  t.same(statements, [{ text: 'SELECT name FROM items WHERE id = $1', count: 12 }])
  await output(/makes 12 calls in sequence: SELECT items/)
})

test('calls that light-trace counted together are folded together, even with different statements', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send(request({ count: 13 }))
  t.same(await folded(await rowsOf(viewer)), [[13, 'postgresql SELECT items']])
  const { repeats } = await viewer.json(`/api/traces/last/spans/${spanId(1)}`)
  t.match(repeats, { statements: [{ text: ONE, count: 12 }, { text: OTHER, count: 1 }], more: 0 })
})

test('values in a statement do not make it another one, and commands are not compared', async (t) => {
  for (const [system, statement] of [['postgresql', (number) => `SELECT * FROM items WHERE id = ${number}`], ['mysql', (number) => `SELECT * FROM items WHERE name = "item ${number}"`]]) {
    const viewer = await startViewer(t)
    await viewer.send(request({ statement, system }))
    t.same(await folded(await rowsOf(viewer)), [[12, `${system} SELECT items`]])
  }
  const viewer = await startViewer(t)
  await viewer.send(request({ statement: (number) => `GET item:${number}`, system: 'redis' }))
  t.same(await folded(await rowsOf(viewer)), [[13, 'redis SELECT items']])
  const { repeats } = await viewer.json(`/api/traces/last/spans/${spanId(1)}`)
  t.same([repeats.statements.length, repeats.more, repeats.system], [3, 9, 'redis'])
})

test('the list names the most repeated calls, even if their span arrives later', async (t) => {
  const viewer = await startViewer(t)
  const job = (id, count, shape) => ({ id, parent: 1, name: 'load', at: 1, ms: 20, attributes: { ...N_PLUS_1, 'light_trace.repeated.shape': shape, 'light_trace.repeated.count': count } })
  await viewer.send([{ id: 1, name: 'GET /', kind: 2, ms: 50 }, job(2, 7, 'redis GET')])
  const listed = async () => (await viewer.json('/api/traces')).traces[0].repeats
  t.match(await listed(), { span: spanId(2), shape: 'redis GET', count: 7 })
  await viewer.send([job(3, 30, 'SELECT \u001b[31mitems'), job(4, 9, 'redis GET')])
  const repeats = await listed()
  t.match(repeats, { span: spanId(3), count: 30 })
  t.notMatch(repeats.shape, '\u001b')
  await viewer.send([{ trace: 2, id: 1, attributes: { note: 'light_trace.repeated.count', 'light_trace.repeated.count': 'many' } }])
  t.equal(await listed(), null)
})

const blocked = (values) => ({ name: 'light_trace.blocked_loop', attributes: { 'light_trace.blocked_loop.id': 'f00dbabe00000001', 'light_trace.blocked_loop.duration': 0.25, ...values } })
const code = { 'code.function.name': 'search', 'code.file.path': __filename, 'code.line.number': 14 }

test('a blocked event loop leads to its span, and there to the line in the editor', async (t) => {
  const viewer = await startViewer(t, { editor: 'vscode' })
  await viewer.send([{ id: 1, name: 'job' }, { id: 2, parent: 1, name: 'GET /', kind: 2, ms: 300, events: [blocked({ ...code, 'light_trace.blocked_loop.role': 'culprit' })] }])
  const { traces } = await viewer.json('/api/traces')
  t.same(traces[0].blocked, { id: 'f00dbabe00000001', ms: 250, role: 'culprit', culprit: '', place: `at search (${__filename}:14)`, span: spanId(2) })
  const panel = await viewer.json(`/api/traces/last/spans/${spanId(2)}`)
  t.same(panel.blocked.code, { name: 'search', file: __filename, line: 14, isBefore: false, open: `vscode://file${__filename}:14` })
  await viewer.send([{ trace: 2, id: 3, kind: 2, events: [blocked({ ...code, 'code.file.path': '/nowhere.js' })] }])
  t.equal((await viewer.json(`/api/traces/last/spans/${spanId(3)}`)).blocked.code.open, undefined, 'no link to a file that is not here')
})

test('a loop that was blocked while Node loaded a module is not shown as the fault of the application', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([{ id: 1, name: 'GET /', kind: 2, ms: 300, events: [blocked({ 'light_trace.blocked_loop.is_module_loader': true })] }])
  t.equal((await viewer.json('/api/traces')).traces[0].blocked, null)
  t.match(await (await viewer.get('/api/traces/last/text')).text(), 'waited 250 ms while Node loaded a module\n')
  t.match((await viewer.json(`/api/traces/last/spans/${spanId(1)}`)).blocked, { text: 'waited 250 ms while Node loaded a module', code: null })
})
