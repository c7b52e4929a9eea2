'use strict'

// Sent spans are found again: as a list, as rows, as OTLP JSON, by route and by exception.

const { test } = require('tap')
const { startViewer, traceId, spanId, START_MS } = require('./support')

const request = {
  id: 1,
  name: 'GET /users/:id',
  kind: 2,
  ms: 12.5,
  attributes: { 'http.request.method': 'GET', 'http.route': '/users/:id', 'url.path': '/users/7', 'http.response.status_code': 200 }
}

const failure = {
  ...request,
  status: 2,
  message: 'x is undefined',
  attributes: { ...request.attributes, 'http.response.status_code': 500, 'error.type': 'TypeError' },
  events: [{
    at: 3,
    name: 'exception',
    attributes: {
      'exception.type': 'TypeError',
      'exception.message': 'x is undefined',
      'exception.stacktrace': 'TypeError: x is undefined\n    at node:internal/x:1:1\n    at load (/app/users.js:12:7)'
    }
  }]
}

test('a trace is listed by its root, and the last to arrive comes first', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([{ ...request, trace: 1 }, { trace: 1, id: 2, parent: 1, name: 'GET', kind: 3, at: 2, ms: 5 }])
  await viewer.send([{ ...failure, trace: 2 }])
  const { traces, total, more } = await viewer.json('/api/traces')
  t.same(traces.map(({ id }) => id), [traceId(2), traceId(1)])
  t.same([total, more], [2, false])
  t.match(traces[1], {
    name: 'GET /users/:id',
    service: 'shop',
    services: [{ name: 'shop', spans: 2 }],
    kind: 'SERVER',
    route: 'GET /users/:id',
    method: 'GET',
    path: '/users/7',
    status: 200,
    state: 'ok',
    error: null,
    startMs: START_MS,
    durationMs: 12.5,
    spans: 2,
    errors: 0,
    root: true,
    orphans: 0
  })
  t.match(traces[0], { state: 'error', status: 500, errors: 1, error: { type: 'TypeError', message: 'x is undefined' } })
})

test('each filter finds the traces that match it', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([{ ...request, trace: 1 }])
  await viewer.send([{ ...failure, trace: 2, ms: 100 }])
  await viewer.send([{ trace: 3, id: 1, name: 'GET', kind: 2, ms: 1, attributes: { 'http.request.method': 'GET', 'http.response.status_code': 404 } }], { service: 'stock' })
  await viewer.send([{ trace: 4, id: 1, name: 'job', attributes: { tenant: 'acme', count: 42, big: true, tags: ['a', 'b'] } }], { service: 'worker' })
  const found = async (query) => (await viewer.json(`/api/traces?${query}`)).traces.map(({ id }) => Number(`0x${id}`))
  t.same(await found(''), [4, 3, 2, 1])
  t.same(await found('status=error'), [2])
  t.same(await found('status=ok'), [4, 3, 1])
  t.same(await found('status=404'), [3])
  t.same(await found('status=5xx'), [2])
  t.same(await found('route=GET%20/users/:id'), [2, 1])
  t.same(await found('service=stock'), [3])
  t.same(await found('unrouted=1'), [3])
  t.same(await found('q=ACME'), [4], 'text in a value, by any case')
  t.same(await found('q=Tenant'), [4], 'in a key')
  t.same(await found('q=42'), [4], 'a number')
  t.same(await found('q=undefined'), [2], 'a message')
  t.same(await found(`q=${traceId(3)}`), [3], 'an id')
  t.same(await found('q=worker'), [4], 'the resource')
  t.same(await found('q=nowhere'), [])
  t.same(await found('q=Tenant%3Dac'), [4], 'while an attribute is being typed')
  t.same(await found('q=count%3D42'), [4])
  t.same(await found('q=tenant%3Dcme'), [])
  t.same(await found('q=service.name%3Dsto'), [3])
  t.same(await found('limit=1'), [4])
  t.same(await found('before=3'), [2, 1])
  const [{ error: { exception } }] = (await viewer.json('/api/traces?status=error')).traces
  t.same(await found(`exception=${exception}`), [2])
  for (const wrong of ['status=broken', 'limit=0', 'limit=501', 'before=x', 'sort=oldest', `q=${'x'.repeat(251)}`]) {
    const response = await viewer.get(`/api/traces?${wrong}`)
    t.equal(response.status, 400, wrong)
    t.match((await response.json()).error, new RegExp(`^${wrong.split('=')[0]}: `), 'names what is wrong')
  }
})

test('the slowest of all that match are listed, the slowest first', async (t) => {
  const viewer = await startViewer(t)
  const times = [5, 90, 20, 90, 1, 50]
  for (const [index, ms] of times.entries()) await viewer.send([{ ...request, trace: index + 1, ms }], { service: ms === 50 ? 'stock' : 'shop' })
  const found = async (query) => {
    const { traces, more, total } = await viewer.json(`/api/traces?sort=slowest&${query}`)
    t.equal(total, 6)
    return [...traces.map(({ id }) => Number(`0x${id}`)), more]
  }
  t.same(await found(''), [4, 2, 6, 3, 1, 5, false])
  t.same(await found('limit=1'), [4, true])
  t.same(await found('limit=6'), [4, 2, 6, 3, 1, 5, false])
  t.same(await found('limit=3&service=shop'), [4, 2, 3, true])
})

test('bytes are found by the base64 that is shown, in spans and log lines', async (t) => {
  const viewer = await startViewer(t)
  const bytes = (value) => ({ bytesValue: Buffer.from(value).toString('base64') })
  const values = [bytes([1, 2, 3, 4, 5, 6]), bytes([7]), bytes(Array(40_000).fill(0x5c)), { arrayValue: { values: [{ intValue: '1' }, bytes('Hello')] } }, { kvlistValue: { values: [{ key: 'k', value: bytes('world') }] } }, { stringValue: ':' }]
  const of = (value, i) => ({ traceId: traceId(i + 1), spanId: spanId(1), attributes: [{ key: 'blob', value }] })
  const post = (path, body) => viewer.post(path, JSON.stringify(body), { 'content-type': 'application/json' })
  await post('/v1/traces', { resourceSpans: [{ scopeSpans: [{ spans: values.map(of) }] }] })
  await post('/v1/logs', { resourceLogs: [{ scopeLogs: [{ logRecords: [...values.map(of), ...values.map((body) => ({ body }))].map((record, i) => ({ ...record, traceId: undefined, severityNumber: i + 1 })) }] }] })
  for (const [q, number] of [['AQIDBAUG', 1], ['bau', 1], ['Bw==', 2], ['XFxcXA==', 3], ['SGVsbG8=', 4], ['d29ybGQ=', 5], ['AQIDBAUH', undefined]]) {
    const query = `q=${encodeURIComponent(q)}`
    t.same((await viewer.json(`/api/traces?${query}`)).traces.map(({ id }) => Number(`0x${id}`)), number === undefined ? [] : [number], q)
    t.equal((await viewer.json(`/api/logs?${query}`)).lines.length, number === undefined ? 0 : 2, q)
  }
})

test('rows are in display order, with self time and the critical path', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([
    { id: 4, parent: 2, name: 'query', kind: 3, at: 3, ms: 2 },
    { id: 3, parent: 1, name: 'second', at: 6, ms: 3 },
    { id: 2, parent: 1, name: 'first', at: 1, ms: 5 },
    { id: 1, name: 'root', kind: 2, ms: 10 }
  ])
  const { rows, durationMs, services } = await viewer.json(`/api/traces/${traceId(1)}/rows`)
  t.same(rows.map(({ name, depth, below, start, self, critical }) => [name, depth, below, start, self, critical]), [
    ['root', 0, 3, 0, 2, [[0, 1], [9, 10]]],
    ['first', 1, 1, 1, 3, [[1, 3], [5, 6]]],
    ['query', 2, 0, 3, 2, [[3, 5]]],
    ['second', 1, 0, 6, 3, [[6, 9]]]
  ])
  t.same([durationMs, services], [10, ['shop']])
  const first = await viewer.json(`/api/traces/${traceId(1)}/rows?limit=2`)
  t.same([first.rows, first.more, first.durationMs], [rows.slice(0, 2), 2, 10], 'limit: the first ones of the same rows')
  t.equal((await viewer.get(`/api/traces/${traceId(1)}/rows?limit=0`)).status, 400)
})

const calls = [
  { id: 2, name: 'GET', attributes: { 'http.request.method': 'GET', 'url.full': 'http://user:secret@stock:3000/items/7?q=1#x', 'server.address': 'stock', 'server.port': 3000 } },
  { id: 3, name: 'HTTP GET', attributes: { 'http.method': 'GET', 'net.peer.name': 'old', 'net.peer.port': 80 } },
  { id: 4, name: 'GET /items/{id}', attributes: { 'http.request.method': 'GET', 'server.address': 'stock' } },
  { id: 5, name: 'GET', attributes: { 'db.system.name': 'redis', 'server.address': 'cache' } },
  { id: 6, name: 'pg.query', attributes: { 'db.system': 'postgresql', 'db.query.summary': 'SELECT users' } },
  { id: 7, name: 'redis', attributes: { 'db.system.name': 'redis' } },
  { id: 8, name: 'send orders', kind: 4, attributes: { 'messaging.system': 'kafka' } },
  { id: 9, name: 'call' }
].map((call) => ({ parent: 1, kind: 3, at: call.id, ms: 0.5, ...call }))

test('a call is named by its target, and a database call by its system and query', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([{ ...request, ms: 50 }, ...calls])
  const { rows } = await viewer.json(`/api/traces/${traceId(1)}/rows`)
  t.same(rows.slice(1).map(({ name, system }) => [name, system]), [
    ['GET stock:3000/items/7', undefined], ['GET old:80', undefined], ['GET /items/{id} stock', undefined],
    ['redis GET', 'redis'], ['postgresql SELECT users', 'postgresql'], ['redis', 'redis'], ['kafka send orders', undefined], ['call', undefined]
  ])
  t.match(await (await viewer.get(`/api/traces/${traceId(1)}/text`)).text(), / {2}CLIENT GET stock:3000\/items\/7 .*\n.*\n.*\n {2}CLIENT redis GET /)
  await viewer.send([{ ...request, trace: 2, ms: 50 }, { ...calls[3], trace: 2 }, { ...calls[0], trace: 2, attributes: { ...calls[0].attributes, 'url.full': 'http://stock:3000/items/8' } }])
  const merged = (await viewer.json(`/api/compare?a=${traceId(1)}&b=${traceId(2)}`)).rows
  t.match(merged.filter(({ aCount, bCount }) => aCount * bCount > 0).map(({ name }) => name), ['GET /users/:id', 'GET stock:3000', 'redis GET'], 'not by their bare names')
  const { root } = await viewer.json('/api/routes/flame?route=GET%20/users/:id')
  t.same(root.children.filter(({ count }) => count === 2).map(({ name }) => name).sort(), ['GET stock:3000', 'redis GET'])
})

test('a parent that was not received is a gap, which is filled when it arrives', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([{ id: 3, parent: 2, name: 'query', at: 3, ms: 2 }])
  const before = await viewer.json(`/api/traces/${traceId(1)}/rows`)
  t.match(before.rows, [{ id: spanId(2), missing: true, parent: null, below: 1, start: 0, duration: 2 }, { name: 'query', depth: 1 }])
  t.match(before.trace, { root: false, orphans: 1, name: 'query' })
  await viewer.send([{ id: 2, name: 'request', kind: 2 }])
  const after = await viewer.json(`/api/traces/${traceId(1)}/rows`)
  t.match(after.rows.map(({ name, missing }) => [name, missing]), [['request', undefined], ['query', undefined]])
  t.match(after.trace, { root: true, orphans: 0, name: 'request' })
})

test('a span is answered with all its parts, and with long texts only on request', async (t) => {
  const viewer = await startViewer(t)
  const long = 'x'.repeat(20_000)
  await viewer.send([{ ...failure, attributes: { ...failure.attributes, long, ratio: 0.5, list: ['a', 1] }, links: [{ trace: 9, span: 9 }, { trace: 1, span: 1 }] }])
  const path = `/api/traces/${traceId(1)}/spans/${spanId(1)}`
  const span = await viewer.json(path)
  t.match(span, {
    id: spanId(1),
    parent: '',
    name: 'GET /users/:id',
    kind: 'SERVER',
    service: 'shop',
    scope: { name: 'light-trace', version: '1.2.3' },
    startNano: `${START_MS}000000`,
    status: { code: 'ERROR', message: 'x is undefined' },
    resource: [{ key: 'service.name', value: 'shop', type: 'string' }],
    events: [{ name: 'exception', at: 3 }],
    links: [{ trace: traceId(9), held: false }, { trace: traceId(1), held: true }]
  })
  const attribute = (from, key) => from.attributes.find((each) => each.key === key)
  t.match(attribute(span, 'long'), { value: long.slice(0, 16_384), cut: true })
  t.match(attribute(await viewer.json(`${path}?full=1`), 'long'), { value: long })
  t.match(attribute(span, 'ratio'), { value: 0.5, type: 'double' })
  t.match(attribute(span, 'list'), { value: ['a', 1], type: 'array' })
  t.equal((await viewer.get(`/api/traces/${traceId(1)}/spans/${spanId(8)}`)).status, 404)
})

test('a route has its figures, its examples, its flame and its median request', async (t) => {
  const viewer = await startViewer(t)
  for (let i = 1; i <= 9; i++) {
    await viewer.send([{ ...(i === 4 ? failure : request), trace: i, ms: i }, { trace: i, id: 2, parent: 1, name: 'load', at: 0.5, ms: i / 2 }])
  }
  const { routes, buckets } = await viewer.json('/api/routes')
  t.match(routes, [{ route: 'GET /users/:id', service: 'shop', unrouted: false, count: 9, errors: 1, p50Ms: 5, p99Ms: 9, maxMs: 9 }])
  t.match(routes[0], { slowest: traceId(9), failed: traceId(4), median: traceId(5), latest: traceId(9) })
  t.ok(routes[0].perSecond > 0)
  const inBucket = (ms) => routes[0].histogram.reduce((sum, { counts }) => sum + counts[buckets.indexOf(ms)], 0)
  t.same([inBucket(1), inBucket(5), inBucket(10)], [1, 3, 4])
  const flame = await viewer.json('/api/routes/flame?route=GET%20/users/:id')
  t.match(flame, { requests: 9, root: { name: 'GET /users/:id', count: 9, totalMs: 45, errors: 1, children: [{ name: 'load', count: 9, totalMs: 22.5 }] } })
  const { b, rows } = await viewer.json(`/api/compare?a=${traceId(9)}`)
  t.equal(b.id, traceId(5), 'the median of the others that have not failed')
  t.match(rows, [{ name: 'GET /users/:id', depth: 0, below: 1, aMs: 9, bMs: 5 }, { name: 'load', depth: 1, aMs: 4.5, bMs: 2.5, aCount: 1, bCount: 1 }])
})

test('an exception that many traces share is one row', async (t) => {
  const viewer = await startViewer(t)
  for (const trace of [1, 2, 3]) {
    const events = [{ name: 'exception', attributes: { ...failure.events[0].attributes, 'exception.message': `user ${trace} is unknown` } }]
    await viewer.send([{ ...failure, trace, events }, { trace, id: 2, parent: 1, name: 'load', status: 2, events }])
  }
  await viewer.send([{ trace: 4, id: 1, name: 'call', kind: 3, status: 2, attributes: { 'error.type': '503' } }])
  const { exceptions } = await viewer.json('/api/exceptions')
  t.match(exceptions, [
    { type: '503', recorded: false, count: 1, traces: [traceId(4)] },
    { type: 'TypeError', message: 'user 3 is unknown', frame: 'at load (/app/users.js:12:7)', routes: ['GET /users/:id'], count: 3, recorded: true }
  ])
  t.same(exceptions[1].traces, [3, 2, 1].map(traceId))
})

test('exceptions whose messages differ only by numbers or ids are one row', async (t) => {
  const viewer = await startViewer(t)
  const messages = [
    ['user 17 is unknown', 'user 18 is unknown'], ['no request req-2t', 'no request req-a'], ['order ab12-x is lost', 'order 7-q9 is lost'],
    ['id 4bf92f35-77b3-4da6-a3ce-929d0e0e4736', 'id 00f067aa-0ba9-02b7-a3ce-929d0e0e4736'], ['trace abcdefabcdef', 'trace fedcbafedcba'], ['no user'], ['no order']
  ]
  for (const [trace, message] of messages.flat().entries()) {
    await viewer.send([{ ...failure, trace: trace + 1, events: [{ name: 'exception', attributes: { ...failure.events[0].attributes, 'exception.message': message } }] }])
  }
  const { exceptions } = await viewer.json('/api/exceptions')
  t.same(exceptions.map(({ message, count }) => [message, count]).reverse(), messages.map((same) => [same.at(-1), same.length]))
})

test('the reason of a trace is its most informative failure, in any order of arrival and any number of messages', async (t) => {
  const viewer = await startViewer(t)
  const handler = { id: 2, parent: 1, name: 'handler', status: 2, attributes: { 'error.type': 'TypeError' } }
  const call = { id: 3, parent: 2, name: 'SELECT', kind: 3, status: 2, attributes: { 'error.type': '23505' } }
  await viewer.send([{ ...call, trace: 1 }, { ...handler, trace: 1 }])
  t.match((await viewer.json('/api/exceptions')).exceptions, [{ type: '23505', count: 1 }], 'what is known so far')
  await viewer.send([{ ...failure, trace: 1 }])
  await viewer.send([{ ...failure, trace: 2 }, { ...handler, trace: 2 }, { ...call, trace: 2 }])
  const { exceptions } = await viewer.json('/api/exceptions')
  t.match(exceptions.map(({ type, count, recorded }) => [type, count, recorded]), [['TypeError', 2, true]], 'one fault is one row')
  const { traces } = await viewer.json('/api/traces')
  for (const { error } of traces) t.match(error, { type: 'TypeError', message: 'x is undefined', exception: exceptions[0].key })
})

test('an exception that was caught on the way is not the reason', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([{ id: 2, parent: 1, name: 'cached', events: failure.events }, { ...request, status: 2, attributes: { ...request.attributes, 'error.type': '503' } }])
  t.match((await viewer.json('/api/traces')).traces[0].error, { type: '503', message: null })
})

test('an error on several spans of a trace counts once, with its first stack', async (t) => {
  const viewer = await startViewer(t)
  const inner = { ...failure.events[0], attributes: { ...failure.events[0].attributes, 'exception.stacktrace': '' } }
  await viewer.send([{ id: 2, parent: 1, kind: 3, name: 'call', status: 2, events: [inner] }], { service: 'stock' })
  await viewer.send([failure])
  const { exceptions } = await viewer.json('/api/exceptions')
  t.match(exceptions, [{ count: 1 }])
  t.equal(exceptions.length, 1)
})

test('an exception has the time at which it happened', async (t) => {
  const viewer = await startViewer(t)
  for (const at of [5000, 1000]) await viewer.send([{ ...failure, trace: at, at, events: [{ ...failure.events[0], at: at + 3 }] }])
  await viewer.send([{ trace: 3, name: 'call', at: 100, ms: 10, status: 2, attributes: { 'error.type': '503' } }])
  const { exceptions } = await viewer.json('/api/exceptions')
  t.match(exceptions, [{ type: '503', firstMs: START_MS + 110, lastMs: START_MS + 110 }, { firstMs: START_MS + 1003, lastMs: START_MS + 5003 }])
})

test('a request that was answered has not failed because one of its calls failed, and a thrown 409 is its reason', async (t) => {
  const viewer = await startViewer(t)
  const setInfo = { id: 2, parent: 1, name: 'CLIENT', kind: 3, status: 2, message: 'ERR unknown subcommand SETINFO' }
  await viewer.send([{ ...request, trace: 1 }, { ...setInfo, trace: 1 }])
  const conflict = { ...request, attributes: { ...request.attributes, 'http.response.status_code': 409 }, events: [{ name: 'exception', attributes: { 'exception.type': 'ConflictError', 'exception.message': 'the name is taken' } }] }
  await viewer.send([{ ...setInfo, trace: 2 }, { ...conflict, trace: 2 }])
  await viewer.send([{ ...setInfo, trace: 3 }])
  await viewer.send([{ ...request, trace: 4 }, { id: 5, parent: 1, trace: 4, kind: 2, name: 'GET /stock', status: 2 }])
  const { traces } = await viewer.json('/api/traces')
  t.match(traces.map(({ state, errors, error }) => [state, errors, error?.message]), [
    ['error', 1, null], // for a request inside of it
    ['error', 1, setInfo.message], // its root has not arrived
    ['ok', 1, 'the name is taken'],
    ['ok', 1, undefined]
  ])
  t.same((await viewer.json('/api/traces?status=error')).traces.map(({ id }) => id), [4, 3].map(traceId))
})

test('last, slowest, failed and the start of an id name a trace', async (t) => {
  const viewer = await startViewer(t)
  t.equal((await viewer.get('/api/traces/last/rows')).status, 404)
  await viewer.send([{ ...request, trace: 0x1234567890n, ms: 50 }])
  await viewer.send([{ ...failure, trace: 2 }])
  await viewer.send([{ ...request, trace: 3 }])
  const named = async (name) => (await viewer.json(`/api/traces/${name}/rows`)).trace?.id
  t.equal(await named('last'), traceId(3))
  t.equal(await named('slowest'), traceId(0x1234567890n))
  t.equal(await named('failed'), traceId(2))
  t.equal(await named(traceId(0x1234567890n).slice(0, 26)), traceId(0x1234567890n))
  t.match(await viewer.json('/api/traces/00000000/rows'), { error: 'more than one trace id starts with this' })
})

test('the text of a trace is a tree with its errors', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([failure, { id: 2, parent: 1, name: 'GET', kind: 3, at: 2, ms: 5, attributes: { 'http.response.status_code': 200 } }])
  t.equal(await (await viewer.get(`/api/traces/${traceId(1)}/text`)).text(), [
    `GET /users/:id  500  12.5 ms  shop  ${traceId(1)}`,
    '',
    'SERVER GET /users/:id    12.5 ms  500  ERROR TypeError: x is undefined',
    '  CLIENT GET              5.0 ms  200',
    ''
  ].join('\n'))
})

test('the text of a trace has the reason of a 4xx, which is no error', async (t) => {
  const viewer = await startViewer(t)
  await viewer.send([{ ...failure, status: 0, message: '', attributes: { ...request.attributes, 'http.response.status_code': 409, 'error.type': 'Error' }, events: [{ at: 3, name: 'a note', attributes: {} }, ...failure.events] }])
  await viewer.send([{ ...request, trace: 2, events: [{ at: 3, name: 'a note', attributes: {} }] }])
  const lineOf = async (id) => (await (await viewer.get(`/api/traces/${traceId(id)}/text`)).text()).split('\n')[2]
  t.equal(await lineOf(1), 'SERVER GET /users/:id    12.5 ms  409  TypeError: x is undefined')
  t.equal(await lineOf(2), 'SERVER GET /users/:id    12.5 ms  200')
})

const SLOW = { ...request, ms: 1240, attributes: { ...request.attributes, 'light_trace.time.idle': 0.31, 'light_trace.time.busy': 0.79, 'light_trace.time.gc': 0.105, 'light_trace.time.unscheduled': 0.0354, 'light_trace.time.uncertainty': 0.001 } }

test('the text, the row and the route of a slow request tell what it waited for', async (t) => {
  const viewer = await startViewer(t)
  const { attributes, ...rest } = SLOW
  const waiting = { ...rest, attributes: { ...attributes, 'light_trace.time.idle': 1 } }
  // The data may come from any sender.
  const wrong = { ...rest, attributes: { ...request.attributes, 'light_trace.time.idle': 'long', 'light_trace.time.busy': -1, 'light_trace.time.gc': Infinity } }
  for (const [i, span] of [SLOW, waiting, waiting, wrong, request].entries()) await viewer.send([{ ...span, trace: i + 1 }])
  const rowOf = async (id) => (await viewer.json(`/api/traces/${traceId(id)}/rows`)).rows[0]
  t.same((await rowOf(1)).waits, [310, 790, 105, 35.4])
  for (const id of [4, 5]) t.equal((await rowOf(id)).waits, undefined)
  const text = await (await viewer.get(`/api/traces/${traceId(1)}/text`)).text()
  t.match(text, /^SERVER GET \/users\/:id .*\n {2}slow: 790 ms busy event loop, 310 ms waiting, 105 ms garbage collection, 35\.4 ms not running\n$/m)
  t.notMatch(await (await viewer.get(`/api/traces/${traceId(5)}/text`)).text(), /slow/)
  const [{ slow }] = (await viewer.json('/api/routes')).routes
  t.same(slow, [2, 1, 0, 0])
})

test('a blocked event loop is a sentence below its request, and its id finds all requests that were open', async (t) => {
  const viewer = await startViewer(t)
  const event = (role, more) => ({
    name: 'light_trace.blocked_loop',
    attributes: { 'light_trace.blocked_loop.id': 'f00dbabe00000001', 'light_trace.blocked_loop.duration': 0.612, ...(role && { 'light_trace.blocked_loop.role': role, 'light_trace.blocked_loop.culprit.trace_id': traceId(2) }), ...more }
  })
  const code = { 'code.function.name': 'search', 'code.file.path': '/app/search.js', 'code.line.number': 14 }
  await viewer.send([
    { trace: 1, id: 1, name: 'GET /waits', kind: 2, ms: 700, events: [event('victim', code)] },
    { trace: 2, id: 2, name: 'GET /search', kind: 2, ms: 650, events: [event('culprit', { ...code, 'light_trace.blocked_loop.is_before_line': true })] },
    { trace: 3, id: 3, name: 'GET /late', kind: 2, ms: 650, events: [event(undefined, {})] },
    { trace: 4, id: 4, name: 'GET /else', kind: 2 }
  ])
  const textOf = async (number) => (await (await viewer.get(`/api/traces/${traceId(number)}/text`)).text()).split('\n')[3]
  t.equal(await textOf(1), `  waited 612 ms while another request blocked the event loop at search (/app/search.js:14), trace ${traceId(2)}`)
  t.equal(await textOf(2), '  blocked the event loop for 612 ms at or just before search (/app/search.js:14)')
  t.equal(await textOf(3), '  waited 612 ms while the event loop was blocked')
  t.notMatch(await textOf(4), /blocked/)
  const { blocked } = await viewer.json(`/api/traces/${traceId(1)}/spans/${spanId(1)}`)
  t.match(blocked, { id: 'f00dbabe00000001', culprit: traceId(2), text: /^waited 612 ms/ })
  const { traces } = await viewer.json(`/api/traces?q=${blocked.id}`)
  t.same(traces.map(({ id }) => id).sort(), [1, 2, 3].map(traceId))
  const listed = await viewer.json('/api/traces')
  t.same(listed.traces.map(({ blocked }) => blocked && [blocked.id, blocked.ms, blocked.role, blocked.culprit, blocked.place]), [
    null,
    ['f00dbabe00000001', 612, '', '', ''],
    ['f00dbabe00000001', 612, 'culprit', traceId(2), 'at or just before search (/app/search.js:14)'],
    ['f00dbabe00000001', 612, 'victim', traceId(2), 'at search (/app/search.js:14)']
  ])
})

test('the text of a trace marks spans that ended after the response or never ended', async (t) => {
  const viewer = await startViewer(t)
  const child = (id, attributes) => ({ trace: 1, id, parent: 1, name: `step ${id}`, kind: 1, attributes })
  await viewer.send([
    { ...request, trace: 1, id: 1 },
    child(2, { 'light_trace.after_response': true }),
    child(3, { 'light_trace.after_response': true, 'light_trace.never_ended': true }),
    child(4, { 'light_trace.never_ended': 'yes' })
  ])
  const text = await (await viewer.get(`/api/traces/${traceId(1)}/text`)).text()
  t.same([2, 3, 4].map((id) => /( {2}after the response| {2}never ended)?$/.exec(text.split('\n').find((line) => line.includes(`step ${id}`)))[0].trim()), ['after the response', 'never ended', ''])
})

test('repeated calls are a sentence below their span, figures of the route, and one message in the terminal', async (t) => {
  const viewer = await startViewer(t)
  const said = []
  viewer.viewer.say = (text) => said.push(text)
  const attributes = { 'light_trace.repeated.shape': 'redis GET', 'light_trace.repeated.count': 12, 'light_trace.repeated.duration': 0.006 }
  const call = { id: 3, parent: 2, name: 'GET', kind: 3 }
  for (const trace of [1, 2]) {
    await viewer.send([
      { ...call, trace, attributes }, // ignored on a call
      { trace, id: 2, parent: 1, name: 'handler', kind: 1, attributes },
      { ...request, trace, id: 1 }
    ])
  }
  const wrong = { 'light_trace.repeated.shape': 7, 'light_trace.repeated.count': 'many' }
  await viewer.send([{ ...request, trace: 3, attributes: { ...request.attributes, ...wrong } }])
  const lines = (await (await viewer.get(`/api/traces/${traceId(1)}/text`)).text()).split('\n')
  t.equal(lines.filter((line) => line.includes('in sequence')).length, 1)
  t.equal(lines[lines.findIndex((line) => line.includes('handler')) + 1].trim(), '12 calls in sequence: redis GET; batching them could save up to 5.5 ms')
  t.notMatch(await (await viewer.get(`/api/traces/${traceId(3)}/text`)).text(), /in sequence/)
  const [{ repeats }] = (await viewer.json('/api/routes')).routes
  t.same(repeats, [{ shape: 'redis GET', requests: 2, perRequest: 12, savedMs: 5.5 }])
  t.same(said, ['GET /users/:id makes 12 calls in sequence: redis GET; batching them could save up to 5.5 ms'])
})

test('an export that waits for its reader again and again leaves no listeners behind', async (t) => {
  const viewer = await startViewer(t)
  const warnings = []
  const keep = (warning) => warnings.push(warning.message)
  process.on('warning', keep)
  t.teardown(() => process.off('warning', keep))
  for (let trace = 1; trace <= 30; trace++) await viewer.send([{ trace, attributes: { text: 'x'.repeat(200_000) } }])
  t.equal((await (await viewer.get('/api/export')).text()).trim().split('\n').length, 30)
  t.same(warnings, [])
})
