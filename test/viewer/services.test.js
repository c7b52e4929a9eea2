'use strict'

// The map of services: who calls whom, and what they depend on.

const { test } = require('tap')
const { encodeRequest } = require('../support/otlp-encode')
const { callsOf } = require('../../viewer/statistics/calls')
const { Services } = require('../../viewer/statistics/services')
const { layOut } = require('../../viewer/views/service-layout')
const { TraceStore } = require('../../viewer/store/trace-store')
const { runCommand } = require('./command')
const { startViewer, spansOf, traceId, START_MS } = require('./support')

const [SERVER, CLIENT, PRODUCER, CONSUMER] = [2, 3, 4, 5]
const HTTP = { 'http.request.method': 'GET', 'server.address': 'stock', 'server.port': 3001 }
const PG = { 'db.system.name': 'postgresql', 'server.address': 'db', 'server.port': 5432, 'db.namespace': 'shop' }
const KAFKA = { 'messaging.system': 'kafka', 'messaging.destination.name': 'orders' }

/** A map as lines: `from → to  calls  errors`, with names. */
function picture ({ nodes, edges }) {
  const nameOf = (id) => {
    const { name, system, kind } = nodes.find((node) => node.id === id)
    return kind === 'service' || kind === 'client' ? name : `${kind} ${system} ${name}`
  }
  return edges.map(({ from, to, calls, errors }) => `${nameOf(from)} → ${nameOf(to)}  ${calls}${errors > 0 ? ` (${errors} failed)` : ''}`).sort()
}

test('a call from one service to another is one edge, and clients without spans, databases and hosts are nodes', async (t) => {
  const { send, json } = await startViewer(t)
  for (const trace of [1, 2]) {
    await send([
      { trace, id: 1, kind: SERVER, ms: 50, name: 'GET /orders' },
      { trace, id: 2, parent: 1, kind: CLIENT, at: 1, ms: 20 * trace, attributes: HTTP },
      { trace, id: 3, parent: 1, kind: CLIENT, at: 2, ms: 4, attributes: PG },
      { trace, id: 4, parent: 1, kind: CLIENT, at: 3, ms: 2, attributes: { 'db.system.name': 'redis', 'server.address': 'cache' } },
      { trace, id: 5, parent: 1, kind: CLIENT, at: 4, ms: 9, attributes: { 'http.request.method': 'POST', 'url.full': 'https://user:secret@api.pay.example/charge?card=7' } }
    ], { service: 'shop' })
    await send([
      { trace, id: 6, parent: 2, kind: SERVER, at: 3, ms: 10 },
      { trace, id: 7, parent: 6, kind: CLIENT, at: 4, ms: 3, attributes: PG }
    ], { service: 'stock' })
  }
  const map = await json('/api/services')
  t.same(picture(map), [
    'clients → shop  2', 'shop → db postgresql db:5432/shop  2', 'shop → db redis cache  2', 'shop → host http api.pay.example  2', 'shop → stock  2',
    'stock → db postgresql db:5432/shop  2'
  ])
  const edge = map.edges.find(({ from, to }) => from === 'service:shop' && to === 'service:stock')
  t.match(edge, { calls: 2, errors: 0, p50Ms: 20, p99Ms: 40, slowest: traceId(2), failed: null }, 'as the caller saw them')
  t.match(map.nodes.find(({ id }) => id === 'service:stock'), { kind: 'service', name: 'stock', requests: 2, errors: 0, p50Ms: 10, p99Ms: 10 }, 'as the service itself saw them')
  t.match(map.nodes.find(({ name }) => name === 'db:5432/shop'), { kind: 'db', system: 'postgresql', requests: 4, p50Ms: 3 })
  t.equal(map.nodes.find(({ kind }) => kind === 'client').requests, 2)
  t.equal(map.more, 0)
  t.notMatch(JSON.stringify(map), /secret|card/)
})

test('the conditions of a node find the traces that it is in', async (t) => {
  const { send, json } = await startViewer(t)
  await send([{ trace: 1, kind: SERVER }, { trace: 1, id: 2, parent: 1, kind: CLIENT, attributes: PG }, { trace: 1, id: 3, parent: 1, kind: CLIENT, attributes: { 'http.url': 'http://pay.example:8080/a?b=c', 'http.method': 'GET' } }])
  await send([{ trace: 2, kind: SERVER }, { trace: 2, id: 2, parent: 1, kind: CLIENT, attributes: { ...PG, 'server.address': 'other' } }, { trace: 2, id: 3, parent: 1, kind: PRODUCER, attributes: KAFKA }])
  await send([{ trace: 3, kind: SERVER }], { service: 'lonely = "one"' })
  const { nodes } = await json('/api/services')
  const tracesOf = async (name) => {
    const { where } = nodes.find((node) => node.name === name)
    const { traces } = await json(`/api/traces?${new URLSearchParams(where.map((each) => ['where', each]))}`)
    return traces.map(({ id }) => id)
  }
  t.same(await tracesOf('db:5432/shop'), [traceId(1)])
  t.same(await tracesOf('other:5432/shop'), [traceId(2)])
  t.same(await tracesOf('pay.example:8080'), [traceId(1)])
  t.same(await tracesOf('orders'), [traceId(2)])
  t.same(await tracesOf('lonely = "one"'), [traceId(3)])
})

test('calls that failed are counted where they failed, and lead to the last trace', async (t) => {
  const { send, json } = await startViewer(t)
  for (const trace of [1, 2, 3]) {
    const status = trace === 3 ? undefined : 2
    await send([{ trace, kind: SERVER, ms: 30 }, { trace, id: 2, parent: 1, kind: CLIENT, ms: 20, attributes: HTTP }, { trace, id: 4, parent: 1, kind: CLIENT, status, attributes: PG }], { service: 'shop' })
    await send([{ trace, id: 3, parent: 2, kind: SERVER, ms: 10, status }], { service: 'stock' })
  }
  const map = await json('/api/services')
  t.same(picture(map), ['clients → shop  3', 'shop → db postgresql db:5432/shop  3 (2 failed)', 'shop → stock  3 (2 failed)'])
  t.equal(map.edges.find(({ to }) => to === 'service:stock').failed, traceId(2))
  t.match(map.nodes.find(({ id }) => id === 'service:stock'), { requests: 3, errors: 2 })
  t.match(map.nodes.find(({ id }) => id === 'service:shop'), { requests: 3, errors: 0 }, 'the service that answered all the same has not failed')
})

test('messages go from the producer to the queue and from the queue to the consumer', async (t) => {
  const { send, json } = await startViewer(t)
  await send([{ trace: 1, kind: SERVER }, { trace: 1, id: 2, parent: 1, kind: PRODUCER, attributes: KAFKA }], { service: 'shop' })
  await send([{ trace: 1, id: 3, parent: 2, kind: CONSUMER, attributes: { ...KAFKA, 'messaging.operation.type': 'process' } }], { service: 'mailer' })
  await send([{ trace: 1, id: 4, parent: 2, kind: CONSUMER }], { service: 'terse' })
  await send([{ trace: 1, id: 5, parent: 2, kind: CLIENT, attributes: { ...KAFKA, 'messaging.operation.type': 'receive' } }], { service: 'reader' })
  await send([{ trace: 2, id: 1, kind: CONSUMER, attributes: { 'messaging.system': 'rabbitmq' } }], { service: 'alone' })
  t.same(picture(await json('/api/services')), [
    'clients → shop  1', 'messaging kafka orders → mailer  1', 'messaging kafka orders → reader  1', 'messaging kafka orders → terse  1', 'messaging rabbitmq rabbitmq → alone  1',
    'shop → messaging kafka orders  1'
  ])
})

test('services that call each other, in a circle or themselves have an edge for each direction', async (t) => {
  const { send, json } = await startViewer(t)
  await send([{ trace: 1, kind: SERVER }, { trace: 1, id: 2, parent: 1, kind: CLIENT, attributes: HTTP }, { trace: 1, id: 5, parent: 4, kind: SERVER }], { service: 'a' })
  await send([{ trace: 1, id: 3, parent: 2, kind: SERVER }, { trace: 1, id: 4, parent: 3, kind: CLIENT, attributes: HTTP }], { service: 'b' })
  await send([{ trace: 2, kind: SERVER }, { trace: 2, id: 2, parent: 1, kind: CLIENT, attributes: HTTP }, { trace: 2, id: 3, parent: 2, kind: SERVER }, { trace: 2, id: 4, parent: 3, kind: SERVER }], { service: 'c' })
  t.same(picture(await json('/api/services')), ['a → b  1', 'b → a  1', 'c → c  1', 'clients → a  1', 'clients → c  1'])
  // Spans whose parents go in a circle.
  await send([{ trace: 3, id: 1, parent: 2, kind: CLIENT, attributes: HTTP }, { trace: 3, id: 2, parent: 1, kind: CLIENT, attributes: HTTP }, { trace: 3, id: 3, parent: 3, kind: CLIENT, attributes: HTTP }], { service: 'd' })
  t.ok((await json('/api/services')).nodes.some(({ name }) => name === 'd'))
})

test('the instances of a service are one node', async (t) => {
  const { post, json } = await startViewer(t)
  for (const [index, instance] of ['one', 'two', 'three'].entries()) {
    const body = spansOf([{ trace: index + 1, kind: SERVER }, { trace: index + 1, id: 2, parent: 1, kind: CLIENT, attributes: PG }])
    body.resourceSpans[0].resource.attributes.push({ key: 'service.instance.id', value: { stringValue: instance } })
    await post('/v1/traces', encodeRequest(body), { 'content-type': 'application/x-protobuf' })
  }
  t.same(picture(await json('/api/services')), ['clients → shop  3', 'shop → db postgresql db:5432/shop  3'])
})

test('a call inside a call shows how it is sent, and counts once', async (t) => {
  const { send, json } = await startViewer(t)
  await send([
    { trace: 1, kind: SERVER, ms: 100 },
    { trace: 1, id: 2, parent: 1, kind: CLIENT, at: 0, ms: 20, attributes: { 'db.system.name': 'elasticsearch', 'server.address': 'search' } },
    { trace: 1, id: 3, parent: 2, kind: CLIENT, at: 1, ms: 18, attributes: { ...HTTP, 'server.address': 'search' } },
    { trace: 1, id: 4, parent: 3, kind: CLIENT, at: 50, ms: 5, attributes: PG }, // in the callback of the call, after its end
    { trace: 1, id: 5, parent: 1, kind: CLIENT, at: 60, ms: 5, name: 'a wrapper that names no target' },
    { trace: 1, id: 6, parent: 5, kind: CLIENT, at: 61, ms: 3, attributes: HTTP },
    { trace: 1, id: 7, parent: 1, kind: CLIENT, at: 70, ms: 8, name: 'GetStock', attributes: { 'rpc.system.name': 'grpc' } },
    { trace: 1, id: 8, parent: 7, kind: CLIENT, at: 71, ms: 6, attributes: HTTP }
  ], { service: 'shop' })
  await send([{ trace: 1, id: 9, parent: 8, kind: SERVER, at: 72, ms: 4 }], { service: 'stock' })
  const map = await json('/api/services')
  t.same(picture(map), ['clients → shop  1', 'shop → db elasticsearch search  1', 'shop → db postgresql db:5432/shop  1', 'shop → host http stock:3001  1', 'shop → stock  1'])
  t.equal(map.edges.find(({ to }) => to === 'service:stock').p50Ms, 8, 'as long as the outer call')
})

test('an internal span may be the caller, and a call that names no target is not on the map', async (t) => {
  const { send, json } = await startViewer(t)
  await send([{ trace: 1, kind: 1, name: 'cron' }, { trace: 1, id: 2, parent: 1, kind: CLIENT, name: 'something' }], { service: 'jobs' })
  await send([{ trace: 1, id: 3, parent: 1, kind: SERVER }], { service: 'shop' })
  await send([{ trace: 2, kind: 1, name: 'startup' }], { service: 'quiet' })
  const map = await json('/api/services')
  t.same(picture(map), ['jobs → shop  1'])
  t.same(map.nodes.map(({ name, requests }) => [name, requests]).sort(), [['jobs', 1], ['quiet', 1], ['shop', 1]])
})

test('a server span that arrives late turns the host into its service', async (t) => {
  const { send, json } = await startViewer(t)
  await send([{ trace: 1, kind: SERVER }, { trace: 1, id: 2, parent: 1, kind: CLIENT, attributes: HTTP }], { service: 'shop' })
  t.same(picture(await json('/api/services')), ['clients → shop  1', 'shop → host http stock:3001  1'])
  await send([{ trace: 1, id: 3, parent: 2, kind: SERVER }], { service: 'stock' })
  t.same(picture(await json('/api/services')), ['clients → shop  1', 'shop → stock  1'])
  await send([{ trace: 2, id: 3, parent: 2, kind: SERVER }], { service: 'stock' })
  t.same(picture(await json('/api/services')), ['clients → shop  1', 'clients → stock  1', 'shop → stock  1'], 'its caller may still come')
  await send([{ trace: 2, id: 2, kind: CLIENT, attributes: HTTP }], { service: 'shop' })
  t.same(picture(await json('/api/services')), ['clients → shop  1', 'shop → stock  2'])
})

test('evicted traces are not counted, and nothing of them is kept', async (t) => {
  const store = new TraceStore({ maxBytes: 200_000 })
  const services = new Services(store)
  const list = () => services.list(new URLSearchParams())
  const add = (trace, service) => store.receive(encodeRequest(spansOf([{ trace, kind: SERVER }, { trace, id: 2, parent: 1, kind: CLIENT, attributes: PG }], service)))
  add(1, 'old')
  t.equal((await list()).nodes.length, 3)
  for (let trace = 2; store.evicted.traces < 50; trace++) add(trace, 'new')
  const map = await list()
  t.same(map.nodes.map(({ name }) => name).sort(), ['clients', 'db:5432/shop', 'new'])
  t.equal(map.edges.find(({ from }) => from === 'client').calls, store.size)
  t.equal(services.keptCalls, store.size * 3)
})

/** A stored trace of a call with other calls inside it; `onRead` is called when the attributes of the outer one are read. */
function nestedCalls (onRead) {
  const store = new TraceStore()
  const inner = Array.from({ length: 5 }, (_, i) => ({ trace: 1, id: 10 + i, parent: 2, kind: CLIENT, attributes: HTTP }))
  store.receive(encodeRequest(spansOf([{ trace: 1, kind: SERVER }, { trace: 1, id: 2, parent: 1, kind: CLIENT, attributes: PG }, ...inner])))
  const outer = store.at(1).spans[1]
  const { bytes } = outer
  Object.defineProperty(outer, 'bytes', { get: () => onRead() ?? bytes })
  return store
}

/** Until the end of the test, the clock of searches also shows the time that is added to it. */
function clockOf (t) {
  const { now } = performance
  const clock = { aheadMs: 0, eachMs: 0 }
  performance.now = () => now.call(performance) + (clock.aheadMs += clock.eachMs)
  t.teardown(() => { performance.now = now })
  return clock
}

test('a call is read once, however many calls are inside it, and other work may run after each span', (t) => {
  let reads = 0
  const trace = nestedCalls(() => { reads++ }).at(1)
  const walk = callsOf(trace)
  let steps = 0
  let step = walk.next()
  for (; !step.done; step = walk.next()) steps++
  t.match(step.value.map(({ from, to }) => `${from.name} → ${to.name}`), ['clients → shop', 'shop → db:5432/shop'])
  t.equal(reads, 1)
  t.ok(steps >= trace.spans.length, `${steps}`)
  t.end()
})

test('a trace that takes too long ends the search, and the answer says so', async (t) => {
  const clock = clockOf(t)
  const services = new Services(nestedCalls(() => { clock.aheadMs += 3000 }))
  t.match(await services.list(new URLSearchParams()), { nodes: [], edges: [], incomplete: true })
  t.equal(services.keptCalls, 0)
})

test('other work runs while the figures of each node and edge are computed', async (t) => {
  const store = new TraceStore()
  const hosts = Array.from({ length: 6 }, (_, i) => ({ trace: 1, id: 2 + i, parent: 1, kind: CLIENT, attributes: { 'server.address': `host-${i}` } }))
  store.receive(encodeRequest(spansOf([{ trace: 1, kind: SERVER }, ...hosts])))
  let turns = 0
  for (const span of store.at(1).spans) {
    const { durationMs } = span
    Object.defineProperty(span, 'durationMs', { get () { turns = 0; return durationMs } })
  }
  clockOf(t).eachMs = 21
  let ended = false
  const turn = () => { turns++; if (!ended) setImmediate(turn) }
  turn()
  const { nodes, edges, incomplete } = await new Services(store).list(new URLSearchParams())
  ended = true
  t.same([nodes.length, edges.length, incomplete], [8, 7, undefined])
  t.ok(turns >= nodes.length + edges.length, `${turns}`)
})

test('rates cover the time in which requests came, and from, to and last narrow the traces', async (t) => {
  const { send, json } = await startViewer(t)
  for (let nth = 0; nth < 61; nth++) await send([{ trace: nth + 1, kind: SERVER, at: nth * 1000, ms: nth }])
  const all = await json('/api/services')
  t.match([all.overMs, all.edges[0].calls, all.edges[0].perSecond], [60_000, 61, 1.017])
  const part = await json(`/api/services?from=${START_MS + 10_000}&to=${START_MS + 29_000}`)
  t.match(part.edges, [{ calls: 20, p50Ms: 19, p99Ms: 29, slowest: traceId(30) }])
  const recent = await json('/api/services?last=15m')
  t.match(recent, { nodes: [], edges: [], more: 0 })
  t.equal((await json('/api/services?where=duration%20%3E%3D%2050ms')).edges[0].calls, 11, 'the filters of /api/traces, too')
  for (const wrong of ['last=soon', 'from=9&to=1', 'side=left', 'where=%3D']) {
    const { error } = await json(`/api/services?${wrong}`)
    t.match(error, new RegExp(`^${wrong.split('=')[0]}`), wrong)
  }
})

test('the map can be narrowed to what a service depends on, or to what depends on it', async (t) => {
  const { send, json } = await startViewer(t)
  const call = async (trace, from, to) => {
    await send([{ trace, kind: SERVER }, { trace, id: 2, parent: 1, kind: CLIENT, attributes: HTTP }], { service: from })
    await send([{ trace, id: 3, parent: 2, kind: SERVER }], { service: to })
  }
  await call(1, 'web', 'shop')
  await call(2, 'shop', 'stock')
  await send([{ trace: 3, kind: SERVER }, { trace: 3, id: 2, parent: 1, kind: CLIENT, attributes: PG }], { service: 'stock' })
  await send([{ trace: 4, kind: SERVER }, { trace: 4, id: 2, parent: 1, kind: CLIENT, attributes: PG }, { trace: 4, id: 3, parent: 1, kind: PRODUCER, attributes: KAFKA }], { service: 'reports' })
  await send([{ trace: 4, id: 4, parent: 3, kind: CONSUMER, attributes: KAFKA }], { service: 'mailer' })
  const names = async (query) => (await json(`/api/services?${query}`)).nodes.map(({ name }) => name).sort()
  t.same(await names('of=service:shop&side=calls'), ['db:5432/shop', 'shop', 'stock'], 'directly and by what it calls')
  t.same(await names('of=shop&side=callers'), ['clients', 'shop', 'web'], 'a service by its name')
  t.same(await names('of=shop'), ['clients', 'db:5432/shop', 'shop', 'stock', 'web'])
  t.same(await names(`of=${encodeURIComponent('db:postgresql db:5432/shop')}&side=callers`), ['clients', 'db:5432/shop', 'reports', 'shop', 'stock', 'web'])
  t.same(await names('of=mailer&side=calls'), ['mailer', 'orders'], 'a consumer depends on its queue, and not on who writes to it')
  t.same(await names(`of=${encodeURIComponent('messaging:kafka orders')}`), ['clients', 'mailer', 'orders', 'reports'])
  t.same(await names('of=nobody'), [])
})

test('the map has the 200 busiest nodes and 1,000 busiest edges, and counts the calls of the others', async (t) => {
  const { send, json } = await startViewer(t)
  const hosts = Array.from({ length: 3000 }, (_, nth) => ({ trace: 1, id: nth + 2, parent: 1, kind: CLIENT, attributes: { ...HTTP, 'server.address': `host-${nth}` } }))
  await send([{ trace: 1, kind: SERVER }, ...hosts], { service: 'crawler' })
  await send([{ trace: 2, kind: SERVER }, { trace: 2, id: 2, parent: 1, kind: CLIENT, attributes: PG }, { trace: 2, id: 3, parent: 1, kind: CLIENT, attributes: PG }], { service: 'shop' })
  // On a busy machine, a trace of 3,000 calls may take longer than an answer may.
  const whole = async (path) => {
    for (;;) {
      const map = await json(path)
      if (map.incomplete === undefined) return map
    }
  }
  const map = await whole('/api/services')
  t.equal(map.nodes.length, 200)
  t.ok(map.nodes.some(({ kind }) => kind === 'db'))
  t.same(map.nodes.slice(0, 3).map(({ name }) => name), ['clients', 'crawler', 'shop'], 'no service is left out for a host')
  t.equal(map.edges.reduce((sum, { calls }) => sum + calls, 0) + map.more, 3004)
  t.same(await whole('/api/services?of=shop').then(({ nodes }) => nodes.map(({ name }) => name).sort()), ['clients', 'db:5432/shop', 'shop'])

  for (let service = 0; service < 40; service++) {
    await send(Array.from({ length: 41 }, (_, nth) => nth === 0
      ? { trace: 10 + service, kind: SERVER }
      : { trace: 10 + service, id: nth + 1, parent: 1, kind: CLIENT, attributes: { ...HTTP, 'server.address': `shared-${nth}` } }), { service: `s${service}` })
  }
  const wide = await whole('/api/services?where=service%20~%20s')
  t.ok(wide.edges.length <= 1000)
  t.ok(wide.nodes.length <= 200)
  t.equal(wide.edges.reduce((sum, { calls }) => sum + calls, 0) + wide.more, 40 + 40 * 40 + 3)
})

test('names of any kind are kept apart, cut, and stay on one line in texts', async (t) => {
  const { send, json, port } = await startViewer(t)
  const hostile = ['__proto__', 'constructor', 'client', 'service:shop', '\u001b[31mred', 'one\ntwo', '<script>alert(1)</script>', 'x'.repeat(5000), '', '\u202etxt.exe\u009b31m']
  for (const [index, service] of hostile.entries()) {
    await send([
      { trace: index + 1, kind: SERVER },
      { trace: index + 1, id: 2, parent: 1, kind: CLIENT, attributes: { 'db.system.name': service, 'server.address': service, 'server.port': service } },
      { trace: index + 1, id: 3, parent: 1, kind: CLIENT, attributes: { 'url.full': `http://${service}/`, 'http.request.method': 'GET' } },
      { trace: index + 1, id: 4, parent: 1, kind: CLIENT, attributes: { 'db.system.name': ['a', 'list'], 'messaging.system': true, 'server.port': 1.5 } }
    ], { service })
  }
  const map = await json('/api/services')
  t.equal(map.nodes.filter(({ kind }) => kind === 'service').length, hostile.length)
  t.equal(new Set(map.nodes.map(({ id }) => id)).size, map.nodes.length)
  t.ok(map.nodes.every(({ name, id }) => name.length <= 200 && id.length <= 700))
  t.equal(map.nodes.find(({ kind }) => kind === 'client').requests, hostile.length)
  for (const [command, expected = /./] of [
    [['services'], /one\\u000atwo/], [['services', '--json'], /one\\ntwo/], [['trace', 'last', '--json']], [['trace', 'last', '--by', 'service', '--json']], [['trace', 'last']]
  ]) {
    const { stdout } = await runCommand(t, [...command, '--port', String(port)]).exit
    // eslint-disable-next-line no-control-regex
    t.notMatch(stdout.replaceAll('\n', ''), /[\u0000-\u001f\u009b\u202e]/, command.join(' '))
    t.match(stdout, expected)
  }
})

test('light-trace services prints the map, or what one service depends on', async (t) => {
  const { send, port } = await startViewer(t)
  const run = async (...args) => (await runCommand(t, ['services', ...args, '--port', String(port)]).exit)
  t.match(await run(), { code: 0, stdout: 'No trace has been received yet.\n' })
  for (const trace of [1, 2]) {
    await send([
      { trace, kind: SERVER, at: trace * 10_000, ms: 50 }, { trace, id: 2, parent: 1, kind: CLIENT, ms: 20, attributes: HTTP },
      { trace, id: 3, parent: 1, kind: CLIENT, ms: 4, status: trace === 1 ? 2 : 0, attributes: PG }
    ], { service: 'shop' })
    await send([{ trace, id: 6, parent: 2, kind: SERVER, ms: 10 }], { service: 'stock' })
  }
  const { stdout } = await run()
  t.equal(stdout, `shop  service  2 requests  12/min  p50 50.0 ms  p99 50.0 ms
  → postgresql db:5432/shop  2 calls  1 failed  12/min  p50 4.0 ms  p99 4.0 ms  slowest ${traceId(2)}  failed ${traceId(1)}
  → stock  2 calls  12/min  p50 20.0 ms  p99 20.0 ms  slowest ${traceId(2)}
  ← clients  2 calls  12/min  p50 50.0 ms  p99 50.0 ms  slowest ${traceId(2)}

stock  service  2 requests  12/min  p50 10.0 ms  p99 10.0 ms
  ← shop  2 calls  12/min  p50 20.0 ms  p99 20.0 ms  slowest ${traceId(2)}

Rates are over 10.0 s.
`)
  const of = await run('stock')
  t.match(of.stdout, /^stock {2}service/m)
  t.notMatch(of.stdout, /postgresql/)
  t.match(await run('nothing'), { code: 1, stderr: 'light-trace: No trace has this service. The services are: shop, stock.\n' })
  t.equal(JSON.parse((await run('shop', '--json')).stdout).nodes.length, 4)
})

test('the answer has the places for a map of a width on request', async (t) => {
  const { send, json, get } = await startViewer(t)
  await send([{ kind: SERVER, ms: 9 }, { id: 2, parent: 1, kind: CLIENT, ms: 2, attributes: PG }, { id: 3, parent: 1, kind: CLIENT, ms: 2, attributes: HTTP }], { service: 'shop' })
  await send([{ id: 4, parent: 3, kind: SERVER, ms: 1 }, { id: 5, parent: 4, kind: CLIENT, ms: 1, attributes: PG }], { service: 'stock' })
  t.notOk('layout' in await json('/api/services'))
  const { nodes, edges, layout } = await json('/api/services?layout=1250')
  const xOf = Object.fromEntries(layout.nodes.map(({ id, x }) => [id.split(':')[0] === 'service' ? id : id.split(/[: ]/)[0], x]))
  t.ok(xOf.client < xOf['service:shop'] && xOf['service:shop'] < xOf['service:stock'] && xOf['service:stock'] < xOf.db, 'callers are to the left of what they call')
  t.same(layout.nodes.map(({ id }) => id).sort(), nodes.map(({ id }) => id).sort())
  t.same(layout.edges.map(({ from, to }) => `${from} → ${to}`).sort(), edges.map(({ from, to }) => `${from} → ${to}`).sort())
  t.equal(layout.dense, false)
  t.ok(layout.width <= 1250 && layout.nodes.every(({ x, y, height }) => x >= 0 && y >= 0 && y + height <= layout.height))
  const shop = layout.nodes.find(({ id }) => id === 'service:shop')
  t.match([layout.edges[shop.left], layout.edges[shop.right].from], [{ to: 'service:shop' }, 'service:shop'], 'the edges at its sides, for the arrow keys')
  t.match(layout.edges[0], { path: /^M\d+,\d+C[\d,. -]+$/, head: /^M/, left: /^client/, right: 'service:shop' })
  t.same((await json('/api/services?layout=1250')).layout, layout, 'it stays the same')
  t.ok((await json('/api/services?layout=300')).layout.width < layout.width, 'labels need their room')
  for (const wrong of ['0', 'wide', '1e9']) t.equal((await get(`/api/services?layout=${wrong}`)).status, 400, wrong)
})

test('a map in a circle, and one in which everyone calls everyone, are laid out', (t) => {
  const names = (count) => Array.from({ length: count }, (_, nth) => ({ id: `s${nth}` }))
  const circle = layOut(names(3), [['s0', 's1'], ['s1', 's2'], ['s2', 's0'], ['s2', 's2']].map(([from, to]) => ({ from, to })), 900)
  t.equal(new Set(circle.nodes.map(({ x }) => x)).size, 3)
  t.match(circle.edges.find(({ from, to }) => from === to), { left: 's2', right: 's2' })
  const all = names(30)
  const mesh = layOut(all, all.flatMap(({ id }) => all.map((to) => ({ from: id, to: to.id }))), 900)
  t.equal(mesh.dense, true)
  t.equal(mesh.edges.length, 900)
  t.equal(new Set(mesh.nodes.map(({ x, y }) => `${x} ${y}`)).size, 30, 'no node is on another one')
  t.end()
})
