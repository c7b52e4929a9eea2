'use strict'

// Tests of the bench's own logic: what it counts, what it reports as invalid, and that its cases are consistent. `npm run bench:ci` runs
// the whole bench.

const fs = require('node:fs')
const http = require('node:http')
const { once } = require('node:events')
const path = require('node:path')
const { test } = require('tap')
const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root.js')
const countSpans = require('../../bench/sink/count-spans')
const checkOtlp = require('../../bench/sink/check-samples')
const findFaults = require('../../bench/run/find-faults')
const summarise = require('../../bench/report/summary')
const { replaceBetween } = require('../../bench/report/markdown')
const { readResults, resultKinds } = require('../../bench/report/results-file')
const { stored } = require('../../bench/report/stored')
const { compare, verdict } = require('../../bench/faults/compare')
const { readProfile } = require('../../bench/instructions/callgrind')
const { nameFunctions } = require('../../bench/instructions/symbols')
const { chooseCases, table } = require('../../bench/instructions/cases')
const { overInTurns } = require('../../bench/instructions')
const { targets, judge } = require('../../bench/targets')
const { mean95 } = require('../../bench/run/statistics')
const { routes } = require('../../bench/routes')
const { cases, seeds } = require('../../bench/cases')
const accountsIn = require('../../bench/server/accounts')
const runLoad = require('../../bench/load/run-load')
const { seedsTable } = require('../../bench/report/seeds-table')

const { ExportTraceServiceRequest } = opentelemetry.proto.collector.trace.v1

test('the accounts of a tree are used if the tree has them, and not requested otherwise', async (t) => {
  for (const place of ['features', 'runtime']) {
    const tree = t.testdir({ lib: { [place]: { 'accounts.js': 'exports.spaceBy = () => 7' } } })
    t.equal(accountsIn(tree).spaceBy(), 7, place)
    delete require.cache[path.join(tree, 'lib', place, 'accounts.js')]
  }
  t.same(accountsIn(t.testdir({ lib: {} })), {})
  t.type(accountsIn(path.join(__dirname, '../..')).spaceBy, 'function')
})

test('a slice with a fault is compared with its neighbours, and a verdict needs more than a median', async (t) => {
  const slice = (ms) => Array(100).fill(ms)
  // The collector is not to blame if the machine becomes slower all the time.
  const result = compare([slice(1), slice(3), slice(5)], [slice(4), slice(6)])
  t.equal(result.over.median, 2)
  const row = { isStalled: false, wrong: 0, hasHappened: true, over: { median: 0, low: -0.2, high: 0.2 } }
  t.equal(verdict(row), '')
  t.match(verdict({ ...row, wrong: 1 }), /WRONG/)
  t.match(verdict({ ...row, hasHappened: false }), /INVALID/)
  t.match(verdict({ ...row, over: { median: 0.9, low: 0, high: 1.4 } }), /UNDECIDED/)
  t.match(verdict({ ...row, over: { median: 2, low: 1.1, high: 2.4 } }), /MORE/)
  t.match(verdict({ ...row, isStalled: true }), /INVALID/)
})

test('the sink counts as many spans as a decoder, over resources and scopes', async (t) => {
  const body = encode([[3, 1], [200], []])
  t.equal(countSpans(body), 204)
  t.equal(countSpans(Buffer.alloc(0)), 0)
})

test('the sink reports a truncated or invalid body as unreadable', async (t) => {
  const body = encode([[3]])
  t.equal(countSpans(body.subarray(0, body.length - 1)), -1)
  t.equal(countSpans(Buffer.from('{"resourceSpans":[]}')), -1)
})

test('a sample with a duplicate span id, another route or another status is detected', async (t) => {
  const expected = { route: '/', status: 200 }
  t.same(checkOtlp([encode([[5]])], expected).faults, [])
  t.match(checkOtlp([encode([[5]], { sameId: true })], expected).faults, [/4 of 5 span ids came twice/])
  t.match(checkOtlp([encode([[5]])], { route: '/other', status: 200 }).faults, [/http\.route \//])
  t.match(checkOtlp([encode([[5]])], { route: '/', status: 404 }).faults, [/status code 200/])
})

test('a round is valid if both sides count the same', async (t) => {
  t.same(findFaults(round()), [])
})

test('a round is invalid if the server delivered more than the sink received', async (t) => {
  t.match(findFaults(round({ received: { spans: 99, unreadable: 0 } })), [/100 spans delivered by the server's count, 99 by the sink's/, /100 spans created, 99 received/])
})

test('a round is invalid if the server cannot account for its spans', async (t) => {
  t.match(findFaults(round({ counts: { ...counts, dropped: 1 } })), [/100 spans created, but/])
})

test('a round is invalid if a request created no span, or failed', async (t) => {
  t.match(findFaults(round({ sent: { requests: 101, failed: 0 } })), [/100 spans created by 101 requests/])
  t.match(findFaults(round({ sent: { requests: 100, failed: 1 } })), [/1 requests failed/])
})

test('a rival that drops spans is valid', async (t) => {
  const lossy = { counts: { ...counts, delivered: 60, dropped: 40 }, received: { spans: 60, unreadable: 0 } }
  t.same(findFaults(round({ testCase: { spans: 1 }, ...lossy })), [])
  t.match(findFaults(round(lossy)), [/100 spans created, 60 received/])
})

test('a difference is computed within each round', async (t) => {
  const measured = [entry('bare', [10, 20, 30]), entry('traced', [11, 22, 31])]
  const [, traced] = summarise(measured)
  t.same(traced.overMicros, { median: 1, min: 1, max: 2 })
  t.same(traced.relativeCpu, { median: 1.1, min: 31 / 30, max: 1.1 })
})

test('the table of seeds compares the spans that arrived with those created', async (t) => {
  const row = (name, spans) => ({ name, label: name, requests: 100, spans, requestsPerSecond: 1, relativeRps: [1, 1, 1], relativeCpu: [1, 1, 1], cpuMicrosPerRequest: [1, 1, 1], latencyP99Ms: [1, 1, 1], rssMB: [1, 1, 1], busy: [] })
  const text = seedsTable({
    route: 'hello', date: '2026-11-26', node: 'v24.0.0', commit: 'f'.repeat(40), machine: 'one', versions: {}, profile: {}, rows: [row('bare', [0, 0]), row('lighttrace-100', [100, 100]), row('lossy', [300, 250])]
  })
  t.match(text, /^\| bare \|.*\| {2}\| 1\.0 /m)
  t.match(text, /^\| \*\*lighttrace-100\*\* \|.*\| all of 100, 1 a request \| 1\.0 /m)
  t.match(text, /^\| lossy \|.*\| 250 of 300, 3 a request \| 1\.0 /m)
})

test('the cases of the seeds exist on each Node, with its newest SDK', async (t) => {
  const names = new Set(cases.map(({ name }) => name))
  for (const casesOf of Object.values(seeds)) {
    for (const major of [20, 22, 24, 26]) t.same(casesOf(major).filter((name) => !names.has(name) || cases.find((testCase) => testCase.name === name).minNode > major), [])
  }
  t.ok(seeds.hello(22).includes('nodesdk-auto-sdk3'))
})

test('a body with {n} never repeats, even with requests in flight', async (t) => {
  const bodies = []
  const server = http.createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    bodies.push(body)
    response.end('ok')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { requests, failed } = await runLoad({ url: `http://127.0.0.1:${server.address().port}`, requests: [{ method: 'POST', path: '/', body: 'order-{n}' }], connections: 2, pipelining: 2, seconds: 0.1 })
  t.same({ requests, failed }, { requests: bodies.length, failed: 0 })
  t.ok(bodies.length > 2)
  t.match(bodies[0], /^order-\d{8}$/)
  t.equal(new Set(bodies).size, bodies.length)
})

test('a results file has what a table reads, whether it is new or stored', async (t) => {
  const counted = { name: 'delivered', label: 'each', commit: 'c', hot: 'h', guard: true, processes: 3, requests: 10_000, warmUp: 20_000, isCollected: true, total: { median: 50, halfWidth: 2 }, javascript: 9, over: { median: 5, halfWidth: null, javascript: 1, builtins: 2, gc: 3, native: 4 }, seconds: 60 }
  const result = { machine: {}, profile: { warmUp: 120_000, requests: 10_000 }, nodes: { 24: { node: 'v24.0.0', date: 'today', rows: [{ ...counted, name: 'bare-query', over: null }, counted] } } }
  const rows = [{ name: 'delivered', commit: 'c', hot: 'h', processes: 3, warmUp: 20_000, total: [50, 2], over: [5], kinds: [1, 2, 3, 4] }]
  t.same(stored('instructions', result), { profile: result.profile, nodes: { 24: { node: 'v24.0.0', date: 'today', rows } } })
  for (const kind of resultKinds()) t.same(stored(kind, readResults(kind)), readResults(kind), kind)
})

test('bench/results has at most 4,000 lines, and RESULTS.md 480', async (t) => {
  const lines = (file) => fs.readFileSync(path.join(__dirname, '../../bench', file), 'utf8').split('\n').length - 1
  const results = fs.readdirSync(path.join(__dirname, '../../bench/results'))
  t.ok(results.reduce((sum, file) => sum + lines(`results/${file}`), 0) <= 4000)
  t.ok(lines('RESULTS.md') <= 480)
})

test('generated text replaces the text between its markers and nothing else', async (t) => {
  const text = 'a\n<!-- x:start -->\nold\n<!-- x:end -->\nb\n'
  t.equal(replaceBetween(text, 'x', 'new'), 'a\n<!-- x:start -->\nnew\n<!-- x:end -->\nb\n')
  t.throws(() => replaceBetween(text, 'y', 'new'), /no <!-- y:start -->/)
})

test('cases have unique names, and their setups, routes and baselines exist', async (t) => {
  const names = new Set(cases.map((testCase) => testCase.name))
  t.equal(names.size, cases.length)
  t.same(cases.filter((testCase) => !hangsTogether(testCase, names)), [])
})

function hangsTogether ({ setup, route = 'hello', against = 'bare' }, names) {
  return fs.existsSync(path.join(__dirname, '../../bench', `${setup}.js`)) && route in routes && names.has(against)
}

const counts = { created: 100, delivered: 100, rejected: 0, dropped: 0, waiting: 0 }

function round (over) {
  return {
    testCase: { spans: 1, delivers: true },
    sent: { requests: 100, failed: 0 },
    counts,
    received: { spans: 100, unreadable: 0 },
    check: { checked: 100, faults: [] },
    ...over
  }
}

function entry (name, micros) {
  return {
    testCase: { name, label: name },
    rounds: micros.map((cpuMicrosPerRequest) => ({ cpuMicrosPerRequest, latencyMs: {}, spans: {}, faults: [] }))
  }
}

// resources: the number of spans of each scope of each resource
function encode (resources, { sameId = false } = {}) {
  let id = 0
  const resourceSpans = resources.map((scopes) => ({
    resource: { attributes: [{ key: 'service.name', value: { stringValue: 'a' } }] },
    scopeSpans: scopes.map((count) => ({
      scope: { name: 'a-scope' },
      spans: Array.from({ length: count }, () => span(sameId ? 1 : ++id))
    }))
  }))
  return Buffer.from(ExportTraceServiceRequest.encode({ resourceSpans }).finish())
}

function span (id) {
  const spanId = Buffer.alloc(8)
  spanId.writeUInt32BE(id)
  return {
    traceId: Buffer.alloc(16, 1),
    spanId,
    name: 'GET /',
    kind: 2,
    startTimeUnixNano: 1,
    endTimeUnixNano: 2,
    attributes: [
      { key: 'http.route', value: { stringValue: '/' } },
      { key: 'http.response.status_code', value: { intValue: 200 } }
    ]
  }
}

// In the format of callgrind 3.19: names occur once, later ones are numbers. The line after `calls=` has the inclusive cost of the callee.
const PROFILE = `
version: 1
positions: line
events: Ir

ob=(1) ???
fn=(1) 0x0000000028000000
0 400
cfn=(2) Builtins_LoadIC
calls=10 0
0 100
+3 5
fn=(2)
0 100
fn=(3) v8::internal::Runtime_CompileOptimized(int, unsigned long*, v8::internal::Isolate*)
cfn=(4) _int_malloc
calls=1 0
* 60
0 40
fn=(4) _int_malloc
0 60
fn=(5) Builtins_CEntry
cfn=(3)
calls=1 0
0 100
cfn=(6) v8::internal::Heap::CollectGarbage(v8::internal::AllocationSpace)
calls=1 0
0 30
0 2
fn=(6)
0 30
fn=(7) uv_run'2
0 8

totals: 645
`

test("instructions are counted by kind, without V8's compiler and all that it calls", async (t) => {
  const file = path.join(t.testdir({ profile: PROFILE }), 'profile')
  const { functions, ...kinds } = readProfile(file)
  t.same(kinds, { total: 545, javascript: 405, builtins: 102, gc: 30, native: 8, compiler: 100 })
  t.equal(functions.get('_int_malloc'), 60)
  t.equal(functions.get('uv_run'), 8, 'a recursive function has one name')
  const named = nameFunctions(functions, [{ start: 0x28000000, end: 0x28000100, name: 'begin light-trace/fastify/request-start.js:40' }], 5)
  t.equal(named.get('begin light-trace/fastify/request-start.js:40'), 81)
})

test('a garbage collection is counted once, even if it runs its own lambda through another function', async (t) => {
  const collect = 'v8::internal::Heap::CollectGarbage(int, char const*)'
  const profile = ['fn=(1) uv_run', '0 10', `cfn=(2) ${collect}`, 'calls=1 0', '0 90',
    'fn=(2)', '0 20', 'cfn=(3) heap::base::Stack::SetMarker', 'calls=1 0', '0 70',
    'fn=(3)', '0 30', `cfn=(4) ${collect}::{lambda()#1}::operator()() const`, 'calls=1 0', '0 40',
    'fn=(4)', '0 40', '']
  const { total, gc, native } = readProfile(path.join(t.testdir({ profile: profile.join('\n') }), 'profile'))
  t.same({ total, gc, native }, { total: 100, gc: 90, native: 10 })
})

test('a case is counted after its baseline, and an unknown case is rejected', async (t) => {
  t.same(chooseCases(['delivered', 'logger']).map(({ name }) => name), ['bare', 'delivered', 'bare-logger', 'logger'])
  t.throws(() => chooseCases(['deliverd']), /there are bare, /)
})

test('alternating counts are compared with the adjacent window, in either order', (t) => {
  const window = (state, total) => ({ state, total, javascript: total, builtins: 0, gc: 0, native: 0 })
  const windows = [window('nobody', 100), window('spans', 110), window('spans', 211), window('nobody', 200), window('nobody', 300), window('spans', 312)]
  const { median, halfWidth, javascript } = overInTurns([{ windows }, { windows }], { turns: ['nobody', 'spans'] })
  t.same({ median, javascript }, { median: 11, javascript: 11 })
  t.ok(halfWidth > 0.5 && halfWidth < 1.5)
  t.end()
})

test('one value has no interval, and equal values have a narrow one', async (t) => {
  t.same(mean95([7]), { median: 7, halfWidth: Infinity })
  t.equal(mean95([5, 5, 5]).halfWidth, 0)
  const { median, halfWidth } = mean95([1, 2, 3])
  t.equal(median, 2)
  t.ok(halfWidth > 2.4 && halfWidth < 2.5) // 4.30 × 1 / √3
})

test('a target is reached or missed if its whole interval is on one side of the limit', async (t) => {
  const target = targets.find(({ label }) => label.startsWith('every request sampled and delivered'))
  const counted = (...over) => judge(target, { instructions: { nodes: { 24: { rows: [{ name: 'delivered', over }] } } } }).verdict
  t.equal(counted(target.atMost - 100, 50), 'reached')
  t.equal(counted(target.atMost + 100, 50), 'missed')
  t.equal(counted(target.atMost + 100, 150), 'within the interval')
  t.equal(counted(target.atMost + 1), 'missed', 'one process has no interval')
  t.same(judge(target, {}), { measured: null, verdict: '' })
})

test('each target in instructions names counted cases, and gives the reason if it can be missed', async (t) => {
  const rows = table.map(({ name }) => ({ name, over: [1], kinds: [1, 1, 1, 1] }))
  const nodes = Object.fromEntries([20, 22, 24, 26].map((major) => [major, { rows }]))
  for (const target of targets) {
    if (target.unit.includes('instructions')) t.ok(target.measured({ instructions: { nodes } }), target.label)
    if (target.atMost !== undefined || target.atLeast !== undefined) t.ok(target.why, `${target.label}: why`)
  }
})
