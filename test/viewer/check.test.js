'use strict'

// npx light-trace check

const { readFileSync, writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')
const { runCommand } = require('./command')

const ROOT = join(__dirname, '../..')

/** An app that sends itself `items` requests, one after the other, and exits. */
const app = (items, more = '') => `
  const { SpanKind } = require('@opentelemetry/api')
  const app = require('fastify')()
  const query = (name, work = () => {}) => app.lightTrace.tracer.startActiveSpan(name, { kind: SpanKind.CLIENT, attributes: { 'db.system.name': 'postgresql' } }, async (span) => { await work(); span.end() })
  app.get('/orders/:id', async ({ trace }) => {
    await query('SELECT orders')
    await trace.withSpan('load items', async () => { for (let i = 0; i < ${items}; i++) await query('SELECT items') })
    ${more}
    return 'ok'
  })
  app.get('/health', async () => 'ok')
  Promise.all(['/orders/1', '/orders/2', '/health'].map((url) => app.inject(url))).then(() => app.close())`

const span = (id, { parent = 0, name = 'work', kind = 1, at = 0, ms = 10, attributes = {}, trace = 1, status } = {}) => ({
  traceId: String(trace).padStart(32, '0'),
  spanId: String(id).padStart(16, '0'),
  ...(parent !== 0 && { parentSpanId: String(parent).padStart(16, '0') }),
  name,
  kind,
  startTimeUnixNano: `${1700000000000 + at}000000`,
  endTimeUnixNano: `${1700000000000 + at + ms}000000`,
  attributes: Object.entries(attributes).map(([key, value]) => ({ key, value: { stringValue: value } })),
  ...(status && { status: { code: status } })
})
const request = (id, more = {}) => span(id, { kind: 2, name: 'GET /orders', ...more, attributes: { 'http.request.method': 'GET', 'http.route': '/orders', ...more.attributes } })
const redis = (id, parent, more = {}) => span(id, { parent, kind: 3, name: 'GET', ...more, attributes: { 'db.system.name': 'redis', ...more.attributes } })
const saved = (spans, service = 'shop') => JSON.stringify({ resourceSpans: [{ resource: { attributes: [{ key: 'service.name', value: { stringValue: service } }] }, scopeSpans: [{ spans }] }] }) + '\n'

async function check (t, files, args) {
  const cwd = t.testdir(files)
  return await runCommand(t, ['check', ...args], { cwd }).exit
}

test('check compares the --save files of two runs, and holds them against a budget', async (t) => {
  const cwd = t.testdir({
    node_modules: { fastify: t.fixture('symlink', join(ROOT, 'node_modules/fastify')), '@opentelemetry': t.fixture('symlink', join(ROOT, 'node_modules/@opentelemetry')) },
    'before.js': app(1),
    'after.js': app(3, "trace.span.setAttribute('order.id', 1)"),
    'budget.json': JSON.stringify({ repeats: 2, routes: { 'GET /orders/:id': { calls: { postgresql: 9 } } } })
  })
  const record = (program, file) => runCommand(t, ['--port', '0', '--save', file, program], { cwd }).exit
  for (const [program, file] of [['before.js', 'main.jsonl'], ['after.js', 'now.jsonl'], ['before.js', 'again.jsonl']]) t.match(await record(program, file), { code: 0 })
  const run = (...args) => runCommand(t, ['check', ...args], { cwd }).exit
  t.match(await run('again.jsonl', '--against', 'main.jsonl'), { code: 0, stdout: 'No route has changed.\n', stderr: '' })
  t.match(await run('again.jsonl', '--budget', 'budget.json'), { code: 0, stdout: '3 requests checked, all within budget.\n' })
  const { code, stdout } = await run('now.jsonl', '--against', 'main.jsonl')
  t.equal(code, 0, 'a change is no failure')
  t.equal(stdout, `Changed: 1 route.

GET /orders/:id
  ! spans: 5 → 7
  ! calls of postgresql: 2 → 4
  ! INTERNAL handler > INTERNAL load items > CLIENT postgresql SELECT items: 1 → 3
  + SERVER: order.id
`)
  const over = await run('now.jsonl', '--budget', 'budget.json')
  t.equal(over.code, 1)
  t.match(over.stdout, /^Over budget: 1 route\.\n\nGET \/orders\/:id: postgresql SELECT items repeated 3 times in sequence under INTERNAL load items, 2 allowed \(in 2 requests\)\n\n {2}SERVER GET \/orders\/:id/)
  t.equal(over.stdout.match(/CLIENT postgresql SELECT items {2}<-- repeated/g).length, 6)
})

test('the --save file marks spans that end after the response and spans that never end', async (t) => {
  const cwd = t.testdir({
    node_modules: { fastify: t.fixture('symlink', join(ROOT, 'node_modules/fastify')), '@opentelemetry': t.fixture('symlink', join(ROOT, 'node_modules/@opentelemetry')) },
    'app.js': `
      const app = require('fastify')()
      const answered = Promise.withResolvers?.() ?? (() => { let resolve; const promise = new Promise((r) => { resolve = r }); return { promise, resolve } })()
      const over = answered.promise.then(() => new Promise((resolve) => setImmediate(resolve)))
      app.get('/orders', async ({ trace }) => {
        trace.withSpan('mail', () => over)
        trace.withSpan('report', () => new Promise(() => {}))
        return 'ok'
      })
      app.inject('/orders').then(async () => { answered.resolve(); await over; await app.close() })`,
    'late.json': '{ "afterResponse": false }',
    'open.json': '{ "open": false }'
  })
  t.match(await runCommand(t, ['--port', '0', '--save', 'now.jsonl', 'app.js'], { cwd }).exit, { code: 0 })
  const tree = (late, open) => `
  SERVER GET /orders  (app.js:5)
    INTERNAL handler
      INTERNAL mail${late}
      INTERNAL report${open}
`
  const over = async (budget) => (await runCommand(t, ['check', 'now.jsonl', '--budget', budget], { cwd }).exit).stdout.split('\n\n').slice(1).join('\n')
  t.equal(await over('late.json'), 'GET /orders: 2 spans continued after the response' + tree('  <-- after the response', '  <-- after the response'))
  t.equal(await over('open.json'), 'GET /orders: 1 span never ended' + tree('', '  <-- never ended'))
})

test('the mark of a late span counts where its request is in another file, or ended in the same millisecond', async (t) => {
  const marked = JSON.stringify({ key: 'light_trace.after_response', value: { boolValue: true } })
  const withMark = (text) => text.replaceAll('"attributes":[]', `"attributes":[${marked}]`)
  const budget = '{ "afterResponse": false }'
  const alone = await check(t, { 'now.jsonl': withMark(saved([span(2, { parent: 1, name: 'mail' })])), 'budget.json': budget }, ['now.jsonl', '--budget', 'budget.json'])
  t.match(alone, { code: 1, stdout: 'mail: 1 span continued after the response' })
  const same = await check(t, { 'now.jsonl': withMark(saved([request(1), span(2, { parent: 1, name: 'mail' })])), 'budget.json': budget }, ['now.jsonl', '--budget', 'budget.json'])
  t.match(same, { code: 1, stdout: 'GET /orders: 1 span continued after the response' })
})

test('text of a budget\'s file is printed without control characters', async (t) => {
  for (const budget of [{ routes: { 'GET /\u001b[2J\nx\u202e': { repeats: 1 } } }, { calls: { '\u001b[31mredis': 1 } }, { '\u001b]0;x\u0007': 1 }]) {
    const { code, stderr } = await check(t, { 'now.jsonl': saved([request(1)]), 'budget.json': JSON.stringify(budget) }, ['now.jsonl', '--budget', 'budget.json'])
    t.equal(code, 2)
    t.notMatch(stderr.trimEnd(), /[\u0000-\u001f\u007f-\u009f\u202e]/) // eslint-disable-line no-control-regex
  }
})

test('order, ids, times, ports and the number of requests make no difference', async (t) => {
  const http = (id, port) => span(id, { parent: 1, kind: 3, name: 'GET', attributes: { 'http.request.method': 'GET', 'url.full': `http://127.0.0.1:${port}/items/${id}`, 'server.address': '127.0.0.1', 'server.port': `${port}` } })
  const { code, stdout } = await check(t, {
    'main.jsonl': saved([request(1), redis(2, 1), http(3, 1000)]) + '\n' + saved([request(1, { trace: 2 }), { ...redis(2, 1), traceId: '2'.padStart(32, '0') }, { ...http(3, 1000), traceId: '2'.padStart(32, '0') }]),
    'now.jsonl': saved([http(9, 2000), redis(8, 7, { at: 5 }), request(7, { at: 100, trace: 1, attributes: { 'light_trace.time.busy': '0.3' } })]).replaceAll('"parentSpanId":"0000000000000001"', '"parentSpanId":"0000000000000007"')
  }, ['now.jsonl', '--against', 'main.jsonl'])
  t.same([code, stdout], [0, 'No route has changed.\n'])
})

test('check reports routes that come and go, errors, shapes and folded calls', async (t) => {
  const { stdout } = await check(t, {
    'main.jsonl': saved([request(1), redis(2, 1), span(3, { parent: 1, name: 'old' }), request(4, { trace: 2, attributes: { 'http.route': '/gone' } })]),
    'now.jsonl': saved([
      request(1, { status: 2, attributes: { 'error.type': 'TypeError' } }), span(3, { parent: 1, name: 'new' }), redis(2, 3, { attributes: { 'light_trace.fold.count': '20' } }),
      request(4, { trace: 2, attributes: { 'http.route': '/fresh' } }), { ...redis(5, 4), traceId: '2'.padStart(32, '0') }
    ])
  }, ['now.jsonl', '--against', 'main.jsonl'])
  t.equal(stdout, `Changed: 3 routes.

GET /fresh (new)
  + spans: 2
  + calls of redis: 1

GET /gone (no longer seen)
  - spans: 1

GET /orders
  ! spans: 3 → 22
  ! calls of redis: 1 → 20
  - CLIENT redis GET
  - INTERNAL old
  + INTERNAL new
  + INTERNAL new > CLIENT redis GET (20)
  + error: SERVER TypeError
  + SERVER: error.type
  + CLIENT redis GET: light_trace.fold.count
`)
})

test('each service has its own spans, and spans without their parent are not compared', async (t) => {
  const stock = [request(5, { parent: 2, kind: 2, attributes: { 'http.route': '/stock' } }), redis(6, 5)]
  const { stdout } = await check(t, {
    'main.jsonl': saved([request(1), redis(2, 1)]) + saved([stock[0]], 'stock'),
    'now.jsonl': saved([request(1), redis(2, 1)]) + saved(stock, 'stock') + saved([redis(9, 8, { trace: 3 })])
  }, ['now.jsonl', '--against', 'main.jsonl'])
  t.equal(stdout, `Changed: 1 route. now.jsonl: 1 tree not compared, because the parent span is missing.

stock: GET /stock
  ! spans: 1 → 2
  ! calls of redis: 0 → 1
  + CLIENT redis GET
`)
})

test('the budgets afterResponse and open apply to files, too', async (t) => {
  const { code, stdout } = await check(t, {
    'now.jsonl': saved([request(1), redis(2, 1, { ms: 11 }), redis(3, 9)]),
    'budget.json': '{ "afterResponse": false, "open": false }'
  }, ['now.jsonl', '--budget', 'budget.json'])
  t.equal(code, 1)
  t.match(stdout, 'GET /orders: 1 span continued after the response\n')
  t.match(stdout, 'CLIENT redis GET  <-- its parent never ended or was lost')
})

test('--markdown prints a text for a pull request, in which no text of a span is Markdown or starts a line', async (t) => {
  const { code, stdout } = await check(t, {
    'main.jsonl': saved([request(1)]),
    'now.jsonl': saved([request(1), span(2, { parent: 1, name: '```\n# hostile\u202e\u001b[31m' }), redis(3, 1), redis(4, 1, { at: 20 })]),
    'budget.json': '{ "repeats": 1 }'
  }, ['now.jsonl', '--against', 'main.jsonl', '--budget', 'budget.json', '--markdown'])
  t.equal(code, 1)
  t.equal(stdout, `### light-trace

Over budget: 1 route. Changed: 1 route.

\`\`\`
GET /orders: redis GET repeated 2 times in sequence, 1 allowed

  SERVER GET /orders
    INTERNAL ''' # hostile\\u202e [31m
    CLIENT redis GET  <-- repeated
    CLIENT redis GET  <-- repeated
\`\`\`

#### \`GET /orders\`

\`\`\`diff
! spans: 1 → 4
! calls of redis: 0 → 2
+ INTERNAL '''\\u000a# hostile\\u202e\\u001b[31m
+ CLIENT redis GET (2)
\`\`\`
`)
})

test('a wrong file is named with its line, and ends the command with code 2', async (t) => {
  const good = saved([request(1)])
  const files = {
    'now.jsonl': good,
    'cut.jsonl': `${good}\n${good}{"resourceSpans":[{`,
    'wrong.jsonl': `${good}{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":7}]}]}]}\n`,
    'ids.jsonl': '{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x"}]}]}]}',
    'empty.jsonl': '',
    'none.jsonl': '{}\n',
    'bad.json': '{ "repeats": ',
    'list.json': '[]',
    'typo.json': '{ "repeat": 3 }',
    'kind.json': '{ "calls": { "postgres": 3 } }',
    'route.json': '{ "routes": { "GET /order": { "repeats": 3 } } }',
    'void.json': '{}'
  }
  const cwd = t.testdir(files)
  const says = async (args, message) => {
    const { code, stdout, stderr } = await runCommand(t, ['check', ...args], { cwd }).exit
    t.equal(code, 2, args.join(' '))
    t.equal(stdout, '')
    t.match(stderr, message)
    t.notMatch(stderr, /\n +at /)
  }
  await Promise.all([
    says([], 'check needs a file written by --save'),
    says(['now.jsonl'], 'check needs --against <file>, --budget <file> or both'),
    says(['now.jsonl', '--against', 'missing.jsonl'], /missing\.jsonl cannot be read: ENOENT/),
    says(['now.jsonl', '--against', 'cut.jsonl'], 'cut.jsonl: line 4 is not JSON'),
    says(['wrong.jsonl', '--against', 'now.jsonl'], 'wrong.jsonl: line 2: name is not text'),
    says(['ids.jsonl', '--against', 'now.jsonl'], 'ids.jsonl: 1 span without valid ids'),
    says(['now.jsonl', '--against', 'none.jsonl'], 'none.jsonl has no spans'),
    says(['now.jsonl', '--against', 'empty.jsonl'], 'empty.jsonl has no spans'),
    says(['now.jsonl', '--budget', 'bad.json'], 'bad.json: '),
    says(['now.jsonl', '--budget', 'list.json'], 'list.json: the file and its `routes` must be objects'),
    says(['now.jsonl', '--budget', 'typo.json'], 'typo.json: unknown option `repeat`: did you mean `repeats`?'),
    says(['now.jsonl', '--budget', 'kind.json'], 'kind.json: `calls.postgres`: no calls of this kind, did you mean `postgresql`?'),
    says(['now.jsonl', '--budget', 'route.json'], "route.json: now.jsonl has no request of 'GET /order'; did you mean 'GET /orders'?"),
    says(['now.jsonl', '--budget', 'void.json'], 'void.json: the budget allows everything')
  ])
  t.equal(readFileSync(join(cwd, 'now.jsonl'), 'utf8'), good)
})

test('check reads a chain deeper than the call stack, and parents in a circle', async (t) => {
  const chain = [request(1), ...Array.from({ length: 12_000 }, (_, i) => span(i + 2, { parent: i + 1, name: 'step' }))]
  const cwd = t.testdir({ 'main.jsonl': saved([request(1)]), 'budget.json': '{ "repeats": 1, "open": false, "afterResponse": false }' })
  writeFileSync(join(cwd, 'now.jsonl'), saved([...chain, span(30_001, { parent: 30_002, trace: 2 }), span(30_002, { parent: 30_001, trace: 2 })]))
  const { code, stdout } = await runCommand(t, ['check', 'now.jsonl', '--against', 'main.jsonl', '--budget', 'budget.json'], { cwd }).exit
  t.equal(code, 0)
  t.match(stdout, '  + … > INTERNAL step > INTERNAL step > INTERNAL step > INTERNAL step\n')
  t.match(stdout, '… 11961 more lines')
})
