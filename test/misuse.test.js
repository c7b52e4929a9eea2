'use strict'

// Mistakes of users who have not read the docs. For each, one line gives the fix, and no app exits unnecessarily.

const { spawnSync } = require('node:child_process')
const { join } = require('node:path')
const { test } = require('tap')
const fastify = require('fastify')
const lightTrace = require('..')
const { collectorFor } = require('./support/collector')
const { without } = require('./support/features')
const { listenAnew } = require('./support/new-port')
const { tracedApp } = require('./support/traced-app')

test('withSpan without a function throws an error that names it, and starts no span', async (t) => {
  const { app, collector } = await tracedApp(t, {
    routes: (app) => app.get('/', async (request) => {
      try {
        return request.trace.withSpan('x')
      } catch ({ name, code, message }) {
        return { name, code, message }
      }
    })
  })
  const { name, code, message } = (await app.inject('/')).json()
  t.match({ name, code, message }, { name: 'TypeError', code: 'LT_ERR_USAGE', message: /withSpan\(name, \[options\], fn\)/ })
  t.equal(await collector.tree(), 'SERVER GET /')
})

test('destructured methods of request.trace work for the current request', async (t) => {
  const { app, collector } = await tracedApp(t, {
    routes: (app) => app.get('/:id', async (request) => {
      const { withSpan, get, set, run, bind, inject } = request.trace
      set('id', request.params.id)
      await new Promise((resolve) => setImmediate(resolve)) // so that the other requests run in between
      return withSpan('load', { attributes: { a: 1 } }, async () => [
        get('id'), request.trace.get('id'), run(() => lightTrace.current().traceId), bind(() => lightTrace.current().traceId)(),
        inject().traceparent.split('-')[1], request.trace.traceId
      ])
    })
  })
  const answers = await Promise.all(['1', '2', '3'].map((id) => app.inject(`/${id}`).then((response) => response.json())))
  answers.forEach(([got, own, ...traceIds], i) => {
    t.same([got, own], [String(i + 1), String(i + 1)])
    t.equal(new Set(traceIds).size, 1)
  })
  t.equal(await collector.tree(), Array(3).fill('SERVER GET /:id\n  INTERNAL load').join('\n'))
})

test('outside of a request, a destructured method throws an error that shows how to call it', async (t) => {
  const { app } = await tracedApp(t, { routes: (app) => app.get('/', async (request) => { taken = request.trace.withSpan }) })
  let taken
  await app.inject('/')
  t.throws(() => taken('x', () => {}), { code: 'LT_ERR_USAGE', message: /request\.trace\.withSpan/ })
})

test('flushAfter without an application or a handler names the received value', { skip: without('serverless') }, (t) => {
  const app = fastify()
  t.throws(() => lightTrace.flushAfter('shop', () => {}), { code: 'LT_ERR_OPTION_INVALID', message: "`flushAfter(app)` must be a Fastify application, received 'shop'" })
  t.throws(() => lightTrace.flushAfter(app, 7), { code: 'LT_ERR_OPTION_INVALID', message: '`flushAfter(app, handler)` must be a function, received 7' })
  t.throws(() => lightTrace.flushAfter(app, () => {}, { timeoutMs: -1 }), { code: 'LT_ERR_OPTION_INVALID' })
  t.end()
})

test('calling the plugin instead of registering it throws an error that shows how to register it', (t) => {
  t.throws(() => lightTrace({}), { code: 'LT_ERR_USAGE', message: /app\.register\(lightTrace/ })
  t.throws(() => lightTrace(), { code: 'LT_ERR_USAGE' })
  t.throws(() => lightTrace(fastify(), {}), { code: 'LT_ERR_USAGE', message: /app\.register\(lightTrace/ })
  t.end()
})

test('an application of Fastify 4 does not start, and its error names the plugin and the required version', async (t) => {
  const app = fastify()
  t.teardown(() => app.close())
  Object.defineProperty(app, 'version', { value: '4.29.1' })
  await t.rejects(app.register(lightTrace).ready(), { code: 'FST_ERR_PLUGIN_VERSION_MISMATCH', message: /light-trace.*'>=5'.*4\.29\.1/ })
  const next = fastify()
  t.teardown(() => next.close())
  Object.defineProperty(next, 'version', { value: '6.0.0-alpha.1' })
  await t.resolves(next.register(lightTrace).ready())
})

test('tools can read the Fastify version that the plugin needs', async (t) => {
  t.same(lightTrace[Symbol.for('plugin-meta')], { name: 'light-trace', fastify: '>=5' })
})

test('another plugin\'s request.trace is kept, and a line suggests what to do', async (t) => {
  const { collector, options } = await collectorFor(t)
  const lines = []
  const app = fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  t.teardown(() => app.close())
  app.decorateRequest('trace', 'theirs')
  await app.register(lightTrace, options)
  app.get('/', async (request) => ({ theirs: request.trace, ours: lightTrace.current().traceId }))
  const { theirs, ours } = (await app.inject('/')).json()
  t.equal(theirs, 'theirs')
  t.match(ours, /^[0-9a-f]{32}$/)
  t.equal(await collector.tree(), 'SERVER GET /')
  t.same(lines.map(({ code }) => code), ['LT_WARN_DECORATOR'])
})

test('a route with its tracing switch in the wrong place is named', async (t) => {
  const lines = []
  const { app, collector } = await tracedApp(t, {
    listen: false,
    fastify: { logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } },
    routes (app) {
      app.get('/beside', { trace: false }, () => 'ok')
      app.get('/otel', { config: { otel: false } }, () => 'ok')
      app.get('/right', { config: { trace: false } }, () => 'ok')
    }
  })
  for (const path of ['/beside', '/otel', '/right']) await app.inject(path)
  t.equal((await collector.spans()).length, 2)
  t.same(lines.map(({ code, msg }) => `${code} ${msg}`), [
    'LT_WARN_OPTION_MEANING route /beside: `trace` is not inside `config`, and has no effect: use config: { trace: false }',
    "LT_WARN_OPTION_MEANING route /otel: `config.otel` is @fastify/otel's, and has no effect: use config: { trace: false }"
  ])
})

test('registered twice, by the preload and in code, request.trace is ours and nothing is logged', (t) => {
  const program = `
    const fastify = require('fastify'), lightTrace = require('light-trace')
    const app = fastify({ logger: { level: 'warn' } })
    app.register(lightTrace, { exporter: 'none' })
    app.get('/', async (request) => request.trace.traceId.length)
    app.inject('/').then(async ({ body }) => { console.log(body); await app.close() })`
  const { stdout, stderr } = runWithRegister(program)
  t.equal(stdout.trim(), '32')
  t.equal(stderr, '')
  t.end()
})

test('light-trace/register logs that an app of Fastify 4 is not traced', (t) => {
  const program = `
    const { channel } = require('node:diagnostics_channel')
    channel('fastify.initialization').publish({ fastify: { version: '4.29.1', register () { throw new Error('touched') } } })`
  const { stderr, status } = runWithRegister(program)
  t.equal(status, 0)
  t.match(stderr, /LT_WARN_REGISTER.*Fastify 4\.29\.1.*Fastify 5/)
  t.end()
})

test('closing an app with a hanging collector logs which option limits the wait', async (t) => {
  const server = require('node:net').createServer(() => {})
  t.teardown(() => server.close())
  const lines = []
  const app = fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  await app.register(lightTrace, { exporter: { url: `http://127.0.0.1:${await listenAnew(server)}/v1/traces` }, buffer: { closeTimeoutMs: 50 } })
  app.get('/', async () => 'ok')
  await app.inject('/')
  await app.close()
  t.match(lines.map(({ msg }) => msg), [/1 span not delivered .* buffer\.closeTimeoutMs/])
})

function runWithRegister (program) {
  const root = join(__dirname, '..')
  // tap sets --no-warnings in NODE_OPTIONS on Node 26.
  return spawnSync(process.execPath, ['--require', join(root, 'register.js'), '-e', program.replaceAll("'light-trace'", JSON.stringify(root))],
    { cwd: root, encoding: 'utf8', env: { ...process.env, NODE_OPTIONS: '', OTEL_TRACES_EXPORTER: 'none' } })
}
