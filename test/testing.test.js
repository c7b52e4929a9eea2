'use strict'

const { once } = require('node:events')
const { promisify } = require('node:util')
const { execFile: execFileWithCallback, spawn } = require('node:child_process')
const { join } = require('node:path')
const { test } = require('tap')
const { tracedApp } = require('./support/traced-app')
const { createCollector } = require('../lib/features/testing/testing')
const { ConsoleSink } = require('../lib/features/console')
const { without } = require('./support/features')

const execFile = promisify(execFileWithCallback)

test('the collector shows a request as a tree in start order', async (t) => {
  const { app, collector } = await tracedApp(t, { routes: familyRoutes, listen: false })
  await app.inject('/family/1')
  t.equal(await collector.tree(), [
    'SERVER GET /family/:id ERROR error.type=500',
    '  INTERNAL older',
    '    INTERNAL grandchild',
    '  INTERNAL younger ERROR error.type=TypeError'
  ].join('\n'))
})

test('spans are plain objects in start order', async (t) => {
  const { collector, origin } = await tracedApp(t, { routes: familyRoutes, trace: { serviceName: 'shop' } })
  await fetch(`${origin}/family/1?q=2`)
  const spans = await collector.spans()
  t.same(spans.map(({ name }) => name), ['GET /family/:id', 'older', 'grandchild', 'younger'])
  const [server, older, grandchild, younger] = spans
  t.match(server, {
    kind: 'SERVER',
    traceId: /^[0-9a-f]{32}$/,
    spanId: /^[0-9a-f]{16}$/,
    parentSpanId: undefined,
    attributes: { 'http.route': '/family/:id', 'url.query': 'q=2', 'http.response.status_code': 500 },
    status: { code: 'ERROR', message: '' },
    resource: { 'service.name': 'shop' },
    scope: { name: 'light-trace', version: require('../package.json').version }
  })
  t.equal(older.parentSpanId, server.spanId)
  t.equal(grandchild.parentSpanId, older.spanId)
  t.match(younger.events, [{ name: 'exception', attributes: { 'exception.type': 'TypeError', 'exception.message': 'no' } }])
  t.ok(server.duration > 0)
  t.ok(Math.abs(server.endTime - server.startTime - server.duration) < 0.01)
  t.same(JSON.parse(JSON.stringify(server.attributes)), server.attributes)
})

test('the collector waits for open spans, and draws those that do not end', async (t) => {
  const collector = createCollector({ timeoutMs: 20 })
  let finish
  const started = new Promise((resolve) => { finish = resolve })
  const { app } = await tracedApp(t, {
    trace: { spanProcessors: [collector] },
    routes: (app) => app.get('/held', (request, reply) => { finish({ reply }) }),
    listen: false
  })
  const answer = app.inject('/held').then((response) => response.statusCode) // .then() starts the request
  const { reply } = await started // destructured, because a reply is a thenable
  t.same(await collector.spans(), [])
  t.equal(await collector.tree(), 'SERVER GET /held (running)')
  const tree = collector.tree()
  reply.send('now')
  t.equal(await tree, 'SERVER GET /held')
  await answer
})

test('a collector that is passed twice has each span once, and waits for no ended span', async (t) => {
  const collector = createCollector({ timeoutMs: 60_000 })
  const { app } = await tracedApp(t, { trace: { spanProcessors: [collector, collector] }, routes: (app) => app.get('/', async () => 'ok'), listen: false })
  await app.inject('/')
  t.equal((await collector.spans()).length, 1)
})

test('with keep, the collector shows the kept requests and does not wait for others', { skip: without('keep') }, async (t) => {
  const { app, collector } = await tracedApp(t, {
    trace: { sampler: 'always_off', keep: { errors: true } },
    listen: false,
    routes: (app) => {
      app.get('/fine', async ({ trace }) => trace.withSpan('work', async () => 'ok'))
      app.get('/broken', ({ trace }) => trace.withSpan('work', async () => { throw new TypeError('no') }))
    }
  })
  await app.inject('/fine')
  t.equal(await collector.tree(), '')
  await app.inject('/broken')
  t.equal(await collector.tree(), [
    'SERVER GET /broken ERROR error.type=TypeError',
    '  INTERNAL work ERROR error.type=TypeError'
  ].join('\n'))
})

test('reset removes all spans', async (t) => {
  const { app, collector } = await tracedApp(t, { routes: familyRoutes, listen: false })
  await app.inject('/family/1')
  collector.reset()
  t.same(await collector.spans(), [])
  t.equal(await collector.tree(), '')
  await app.inject('/plain')
  t.equal(await collector.tree(), 'SERVER GET /plain')
})

test('exporter: console writes to standard output', async (t) => {
  const program = `
    const app = require('fastify')()
    app.register(require('./'), { exporter: 'console', registerGlobals: false })
    app.get('/hello', async (request) => request.trace.withSpan('greet', () => 'hello'))
    app.inject('/hello').then(() => app.close())`
  const { stdout } = await execFile(process.execPath, ['-e', program], { cwd: join(__dirname, '..') })
  t.match(stdout, /^SERVER GET \/hello [\d.]+ ms trace_id=[0-9a-f]{32}\n {2}INTERNAL greet [\d.]+ ms\n$/)
})

test('exporter: console adds a line with what a slow request waited for', { skip: without('accounts') }, async (t) => {
  const program = `
    const app = require('fastify')()
    app.register(require('./'), { exporter: 'console', registerGlobals: false, slow: { afterMs: 10 } })
    app.get('/', (request) => request.trace.withSpan('wait', () => require('node:timers/promises').setTimeout(30, 'waited')))
    const ask = async () => { for (let i = 0; i < 5; i++) await app.inject('/') }
    ask().then(() => app.close())`
  const { stdout } = await execFile(process.execPath, ['-e', program], { cwd: join(__dirname, '..') })
  // On a busy machine some requests may report nothing.
  t.match(stdout, /^SERVER GET \/ [\d.]+ ms trace_id=[0-9a-f]{32}\n {2}slow: \d+ ms waiting(?:, \d+ ms [a-z ]+)*\n {2}INTERNAL wait [\d.]+ ms$/m)
})

test('exporter: console into a closed pipe does not end the app', async (t) => {
  const program = `
    const app = require('fastify')()
    app.register(require('./'), { exporter: 'console', registerGlobals: false })
    app.get('/', async () => 'ok')
    process.stdin.once('data', async () => {
      for (let i = 0; i < 3; i++) {
        console.error((await app.inject('/')).statusCode)
        await new Promise((resolve) => setImmediate(resolve)) // the pipe's error comes in another turn
      }
      process.exitCode = 7
      process.stdin.unref()
    })`
  const child = spawn(process.execPath, ['-e', program], { cwd: join(__dirname, '..') })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text) => { stderr += text })
  child.stdout.destroy()
  child.stdin.end('go')
  const [code] = await once(child, 'close')
  t.equal(stderr, '200\n200\n200\n')
  t.equal(code, 7)
})

test('the console gets the tree of a request when it has ended, and later spans on their own', async (t) => {
  const written = []
  let later
  const app = await consoleApp(t, written, async (app) => {
    await familyRoutes(app)
    app.get('/later', (request, reply) => {
      later = app.lightTrace.tracer.startSpan('late', {}, request.trace)
      reply.send('ok')
    })
  })
  await app.inject('/family/1')
  await app.inject('/later')
  await app.inject('/plain')
  later.end()
  t.match(written.map((text) => text.replace(/\d+\.\d+ ms/g, '# ms').replace(/trace_id=[0-9a-f]{32}/, 'trace_id=…')), [
    'SERVER GET /family/:id ERROR error.type=500 # ms trace_id=…\n' +
    '  INTERNAL older # ms\n' +
    '    INTERNAL grandchild # ms\n' +
    '  INTERNAL younger ERROR error.type=TypeError # ms',
    'SERVER GET /later # ms trace_id=…',
    'SERVER GET /plain # ms trace_id=…',
    'INTERNAL late # ms'
  ])
})

test('the console shortens the reason of a failed request, also of a 4xx, to one line without control characters', async (t) => {
  const written = []
  const reason = `seat 7 is\ntaken \u001b[2J${'é'.repeat(200)}`
  const app = await consoleApp(t, written, async (app) => {
    app.get('/taken', async () => { throw Object.assign(new Error(reason), { statusCode: 409 }) })
    app.get('/broken', async (request) => request.trace.withSpan('work', async () => { throw new TypeError('no') }))
    app.get('/number', async (request) => { request.trace.span.addEvent('exception', { 'exception.message': 7 }); return 'ok' })
    app.get('/silent', async () => { throw Object.assign(new Error(), { code: 'NO_SEAT', statusCode: 409 }) })
    app.get('/typed/:id', { schema: { params: { type: 'object', properties: { id: { type: 'integer' } } } } }, async () => 'ok')
  })
  for (const url of ['/taken', '/broken', '/number', '/silent', '/typed/x', '/nothing-here']) await app.inject(url)
  t.match(written.map((text) => text.replace(/\d+\.\d+ ms/g, '# ms').replace(/trace_id=[0-9a-f]{32}/, 'trace_id=…')), [
    `SERVER GET /taken error.type=Error (seat 7 is taken  [2J${'é'.repeat(97 - 20)}...) # ms trace_id=…`,
    'SERVER GET /broken ERROR error.type=TypeError (no) # ms trace_id=…\n' +
    '  INTERNAL work ERROR error.type=TypeError # ms',
    'SERVER GET /number # ms trace_id=…',
    'SERVER GET /silent error.type=NO_SEAT # ms trace_id=…',
    'SERVER GET /typed/:id error.type=FST_ERR_VALIDATION (params/id type) # ms trace_id=…',
    'SERVER GET # ms trace_id=…'
  ])
})

async function familyRoutes (app) {
  app.get('/plain', async () => 'ok')
  app.get('/family/:id', async (request, reply) => {
    await request.trace.withSpan('older', () => request.trace.withSpan('grandchild', async () => {}))
    await request.trace.withSpan('younger', async () => { throw new TypeError('no') }).catch(() => {})
    reply.code(500)
    return 'broken'
  })
}

// Passes the same spans to the sink as to a processor, and collects what it writes.
async function consoleApp (t, written, routes) {
  const sink = new ConsoleSink({ handedOver: 0 }, (text) => written.push(text))
  const processor = { onStart: (span) => sink.started(span), onEnd: (span) => sink.accept(span) }
  const { app } = await tracedApp(t, { routes, trace: { spanProcessors: [processor] }, listen: false })
  return app
}
