'use strict'

const { hasSubscribers } = require('node:diagnostics_channel')
const { test } = require('tap')
const Fastify = require('fastify')
const fp = require('fastify-plugin')
const lightTrace = require('..')
const { collectorFor } = require('./support/collector')
const { without } = require('./support/features')
const { tracedApp } = require('./support/traced-app')
const { picture } = require('./support/picture')

async function setUp (t, options = {}) {
  const { collector, options: collecting } = await collectorFor(t)
  const logged = []
  const lines = []
  const logger = { level: 'debug', child: () => logger }
  for (const level of ['trace', 'info', 'error', 'fatal']) logger[level] = () => {}
  logger.debug = (message) => { if (typeof message === 'string') lines.push(message) }
  logger.warn = (fields, message) => logged.push(fields?.code ?? message)
  const app = Fastify({ loggerInstance: logger, ...options })
  t.teardown(() => app.close())
  return { app, collector, logged, lines, trace: { ...collecting, registerGlobals: false } }
}

// F09, and the four tests that follow
test('registered twice, the first registration applies, the second warns, and there is one span per request', async (t) => {
  const { app, collector, logged, trace } = await setUp(t)
  const { collector: second, options: toSecond } = await collectorFor(t)
  await app.register(lightTrace, { ...trace, serviceName: 'first' })
  await app.register(lightTrace, { ...toSecond, serviceName: 'second' })
  await app.register(lightTrace, {})
  app.get('/', async () => 'ok')
  await app.inject('/')
  t.same(await picture(collector), ['GET / 200'])
  t.equal((await collector.spans())[0].resource['service.name'], 'first')
  t.same(await second.spans(), [])
  t.same(logged, ['LT_WARN_REGISTERED'])
})

test('registered at the root and again in a child, the child is traced once', async (t) => {
  const { app, collector, logged, trace } = await setUp(t)
  await app.register(lightTrace, trace)
  await app.register(async (child) => {
    await child.register(lightTrace, {})
    child.get('/child', async () => 'ok')
  })
  app.get('/', async () => 'ok')
  await app.inject('/')
  await app.inject('/child')
  t.same(await picture(collector), ['GET / 200', 'GET /child 200'])
  t.same(logged, ['LT_WARN_REGISTERED'])
})

test('registered in a child scope, only that scope is traced', async (t) => {
  const { app, collector, trace } = await setUp(t)
  let inner
  await app.register(async (child) => {
    await child.register(lightTrace, trace)
    child.get('/in', async (request) => ({ traced: request.trace.sampled }))
    child.register(async (grandchild) => {
      inner = grandchild
      grandchild.get('/deeper', async () => 'ok')
    }, { prefix: '/in' })
  })
  app.get('/out', async (request) => ({ trace: typeof request.trace }))
  t.same((await app.inject('/in')).json(), { traced: true })
  await app.inject('/in/deeper')
  t.same((await app.inject('/out')).json(), { trace: 'undefined' })
  await app.inject('/nowhere')
  t.same(await picture(collector), ['GET /in 200', 'GET /in/deeper 200'])
  t.equal(app.lightTrace, undefined)
  t.equal(inner.lightTrace.stats().spans.ended, 2)
})

test('sibling scopes share the first one\'s tracer and options', async (t) => {
  const { app, collector, logged, trace } = await setUp(t)
  const { collector: second, options: toSecond } = await collectorFor(t)
  for (const [path, options] of [['/a', trace], ['/b', { ...trace, ...toSecond }]]) {
    await app.register(async (child) => {
      await child.register(lightTrace, options)
      child.get(path, async () => 'ok')
    })
  }
  await app.inject('/a')
  await app.inject('/b')
  t.same(await picture(collector), ['GET /a 200', 'GET /b 200'])
  t.same(await picture(second), [])
  t.same(logged, ['LT_WARN_REGISTERED'])
})

test('registered in a child and then at the root, there is one span per request everywhere', async (t) => {
  const { app, collector, logged, trace } = await setUp(t)
  app.register(async (child) => {
    await child.register(lightTrace, trace)
    child.get('/in', async (request) => ({ current: lightTrace.current() === request.trace }))
  })
  app.register(lightTrace, trace)
  app.get('/out', async (request) => ({ current: lightTrace.current() === request.trace }))
  t.same((await app.inject('/in')).json(), { current: true })
  t.same((await app.inject('/out')).json(), { current: true })
  t.same(await picture(collector), ['GET /in 200', 'GET /out 200'])
  t.same(logged, ['LT_WARN_REGISTERED'])
})

test('registered after routes, those are traced, too', async (t) => {
  const { app, collector, trace } = await setUp(t)
  app.get('/before', { config: { trace: { attributes: { tier: 'gold' } } } }, async () => 'ok')
  await app.register(async (child) => { child.get('/child-before', async () => 'ok') })
  await app.register(lightTrace, trace)
  app.get('/after', async () => 'ok')
  await app.inject('/before')
  await app.inject('/after')
  await app.inject('/child-before')
  const spans = await collector.spans()
  const names = spans.map(({ name }) => name)
  t.ok(names.includes('GET /after'))
  // When the app starts, Fastify gives a route the hooks of its scope.
  t.ok(names.includes('GET /before'))
  t.equal(spans.find(({ name }) => name === 'GET /before').attributes.tier, 'gold')
})

test('two apps in one process are independent', async (t) => {
  const one = await tracedApp(t, { listen: false, trace: { serviceName: 'one' }, routes: (app) => app.get('/one', async () => 'ok') })
  const two = await tracedApp(t, { listen: false, trace: { serviceName: 'two' }, routes: (app) => app.get('/two', async () => (await one.app.inject('/one')).body) })
  await two.app.inject('/two')
  t.equal(await one.collector.tree(), 'SERVER GET /one')
  t.equal(await two.collector.tree(), 'SERVER GET /two')
  const [[inner], [outer]] = [await one.collector.spans(), await two.collector.spans()]
  t.equal(inner.parentSpanId, outer.spanId, 'an injected request is a child of the one that injects it')
  t.same([inner.resource['service.name'], outer.resource['service.name']], ['one', 'two'])
  await one.app.close()
  await two.app.inject('/two').catch(() => {})
  t.equal((await two.collector.spans()).length, 2, 'the other app continues')
})

test('one of two apps in a process can be switched off, and the other is traced', async (t) => {
  const lines = []
  const logger = { level: 'info', stream: { write: (line) => lines.push(JSON.parse(line)) } }
  const one = await tracedApp(t, { trace: { logs: true }, routes: (app) => app.get('/one', async () => 'ok') })
  const two = await tracedApp(t, {
    fastify: { logger, disableRequestLogging: true },
    trace: { enabled: false, logs: true, metrics: { path: '/metrics' } },
    routes (app) {
      app.get('/two', async (request) => {
        request.log.info('a line')
        app.lightTrace.tracer.startSpan('by hand').end()
        return (await fetch(`${one.origin}/one`)).text()
      })
    }
  })
  t.equal(await (await fetch(`${two.origin}/two`)).text(), 'ok')
  t.equal(await one.collector.tree(), 'SERVER GET /one')
  const [span] = await one.collector.spans()
  t.notOk(span.parentSpanId, 'the app that is off sends no trace of its own')
  t.equal(await two.collector.tree(), '')
  t.same(lines.filter(({ msg }) => msg === 'a line').map(({ trace_id: id }) => id), [undefined])
  t.equal((await fetch(`${two.origin}/metrics`)).status, 404, 'and counts nothing')
  t.match(two.app.lightTrace.stats(), { mode: 'disabled', spans: { started: 0 } })
})

test('a hundred apps, closed and created again, leave no listeners and no warnings', async (t) => {
  const warnings = []
  const onWarning = (warning) => warnings.push(warning.name)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const listeners = () => process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)
  let before
  for (let i = 0; i < 100; i++) {
    const { app, collector, trace } = await setUp(t)
    await app.register(lightTrace, { ...trace, spans: { unrouted: true } })
    app.get('/', async () => 'ok')
    await app.inject('/')
    t.equal((await collector.spans()).length, 1)
    await app.close()
    before ??= listeners()
  }
  t.equal(listeners(), before)
  t.same(warnings, [])
})

test('a span that ends after close is counted as after_shutdown', async (t) => {
  const { app, trace } = await setUp(t)
  await app.register(lightTrace, trace)
  let span
  app.get('/', async (request) => { span = app.lightTrace.tracer.startSpan('late', {}, request.trace); return 'ok' })
  await app.inject('/')
  await app.close()
  span.end()
  const { started, ended, accepted, dropped } = app.lightTrace.stats().spans
  t.same({ started, ended, accepted, dropped: { ...dropped } }, { started: 2, ended: 2, accepted: 2, dropped: { after_shutdown: 1 } })
  await app.lightTrace.flush()
})

test('an application that already uses the name lightTrace does not start, and leaves nothing behind', async (t) => {
  const { openApps } = globalThis[Symbol.for('light-trace.globals')]
  const before = openApps.all().length
  const { app } = await setUp(t)
  app.decorate('lightTrace', 'mine')
  await t.rejects(async () => app.register(lightTrace, { exporter: 'none' }), { code: 'FST_ERR_DEC_ALREADY_PRESENT' })
  t.equal(openApps.all().length, before)
})

test('a user\'s own request.trace is kept', async (t) => {
  const { app, collector, trace } = await setUp(t)
  app.decorateRequest('trace', 'mine')
  await app.register(lightTrace, trace)
  app.get('/', async (request) => ({ mine: request.trace, current: lightTrace.current() !== undefined }))
  t.same((await app.inject('/')).json(), { mine: 'mine', current: true })
  t.same(await picture(collector), ['GET / 200'])
})

test('inside a user\'s plugin that breaks encapsulation, the whole app is traced', async (t) => {
  const { app, collector, trace } = await setUp(t)
  await app.register(fp(async (instance) => { await instance.register(lightTrace, trace) }))
  app.get('/', async () => 'ok')
  await app.inject('/')
  t.same(await picture(collector), ['GET / 200'])
})

// Like light-trace/register.
const MODE = without('testing') ? 'native' : 'processors' // as with the collector
const AUTOMATIC = { [Symbol.for('light-trace.automatic')]: true }

test('an explicit registration replaces an automatic one, and one line names the destination of the spans', async (t) => {
  const { app, collector, lines, trace } = await setUp(t)
  await app.register(lightTrace, { ...AUTOMATIC, registerGlobals: false })
  await app.register(lightTrace, trace)
  app.get('/', async () => 'ok')
  await app.inject('/')
  t.same(await picture(collector), ['GET / 200'])
  t.equal(app.lightTrace.stats().mode, MODE)
  t.match(lines, [`light-trace in mode ${MODE}`])
  t.equal(lines.length, 1)
})

test('an application that is switched off in code stays off under light-trace/register', async (t) => {
  const { app, collector, trace } = await setUp(t)
  await app.register(lightTrace, { ...AUTOMATIC, ...trace })
  await app.register(lightTrace, { ...trace, enabled: false })
  app.get('/', async (request) => ({ sampled: request.trace.sampled }))
  t.same((await app.inject('/')).json(), { sampled: false })
  t.same(await picture(collector), [])
  t.equal(app.lightTrace.stats().mode, 'disabled')
})

test('an explicit registration in a child scope replaces an automatic one, which logs nothing from then on', async (t) => {
  const { app, collector, lines, trace } = await setUp(t)
  await app.register(lightTrace, { ...AUTOMATIC, registerGlobals: false })
  await app.register(async (child) => {
    await child.register(lightTrace, trace)
    child.get('/in', async () => 'ok')
  })
  app.get('/out', async () => 'ok')
  await app.inject('/in')
  await app.inject('/out')
  t.same(await picture(collector), ['GET /in 200'])
  t.equal(app.lightTrace.stats().mode, 'undecided')
  t.match(lines, [`light-trace in mode ${MODE}`])
  t.equal(lines.length, 1)
})

test('explicit registrations in sibling scopes replace an automatic one, with the options of the first', async (t) => {
  const { app, collector, logged, trace } = await setUp(t)
  await app.register(lightTrace, { ...AUTOMATIC, registerGlobals: false })
  for (const path of ['/a', '/b']) {
    await app.register(async (child) => {
      await child.register(lightTrace, trace)
      child.get(path, async () => 'ok')
    })
  }
  await app.inject('/a')
  await app.inject('/b')
  t.same(await picture(collector), ['GET /a 200', 'GET /b 200'])
  t.same(logged, ['LT_WARN_REGISTERED'])
})

test('an explicit registration takes over the metrics path and the locations of routes', async (t) => {
  const { app, collector, trace } = await setUp(t)
  await app.register(lightTrace, { ...AUTOMATIC, registerGlobals: false, codeLocation: false })
  await app.register(lightTrace, { ...trace, metrics: { exporter: 'none', path: '/metrics' }, codeLocation: true })
  app.get('/', async () => 'ok')
  await app.inject('/')
  if (!without('metrics')) t.match((await app.inject('/metrics')).body, /http_server_request_duration/)
  t.match((await collector.spans()).map(({ attributes }) => attributes), [{ 'code.file.path': __filename }])
})

test('an explicit registration without codeLocation records no location after an automatic one that does', async (t) => {
  const { app, collector, trace } = await setUp(t)
  await app.register(lightTrace, { ...AUTOMATIC, registerGlobals: false, codeLocation: true })
  await app.register(lightTrace, { ...trace, codeLocation: false })
  app.get('/', async () => 'ok')
  await app.inject('/')
  t.notOk('code.file.path' in (await collector.spans())[0].attributes)
})

test('registered in sibling scopes with a metrics path, the first scope has it', { skip: without('metrics') }, async (t) => {
  const { app, trace } = await setUp(t)
  for (const path of ['/a', '/b']) {
    await app.register(async (child) => {
      await child.register(lightTrace, { ...trace, metrics: { exporter: 'none', path: '/metrics' } })
      child.get(path, async () => 'ok')
    })
  }
  for (const path of ['/a', '/b']) t.equal((await app.inject(path)).statusCode, 200)
  const { statusCode, body } = await app.inject('/metrics')
  t.equal(statusCode, 200)
  for (const path of ['/a', '/b']) t.ok(body.includes(`http_route="${path}"`), path)
})

test('sibling scopes with handler spans leave no subscriber behind', { skip: without('stages') }, async (t) => {
  const { app, trace } = await setUp(t)
  for (const path of ['/a', '/b']) {
    await app.register(async (child) => {
      await child.register(lightTrace, { ...trace, spans: { handler: true } })
      child.get(path, async () => 'ok')
    })
  }
  for (const path of ['/a', '/b']) await app.inject(path)
  t.ok(hasSubscribers('tracing:fastify.request.handler:start'))
  await app.close()
  t.notOk(hasSubscribers('tracing:fastify.request.handler:start'))
})
