'use strict'

// What is registered globally and what is not. Each test runs in a separate process, which prints its observations as JSON.

const { test } = require('tap')
const { mkdirSync, writeFileSync, readFileSync, cpSync } = require('node:fs')
const { join } = require('node:path')
const { execFile } = require('node:child_process')
const { without } = require('../support/features')

const ROOT = join(__dirname, '..', '..')
const SLOTS = "globalThis[Symbol.for('opentelemetry.js.api.1')]"
const PROCESSOR = '{ onStart () {}, onEnd: (span) => spans.push(span.name), async forceFlush () {}, async shutdown () {} }'
const { version } = JSON.parse(readFileSync(join(ROOT, 'node_modules', '@opentelemetry', 'api', 'package.json')))

// P03: the API is a required peer dependency, but light-trace does not need it to be loaded
test('light-trace does not load the API, and works with an API that is loaded later', { skip: without('sdk') }, async (t) => {
  const { seen, spans, after } = await run(t, `
    const app = Fastify()
    await app.register(lightTrace, { spanProcessors: [${PROCESSOR}] })
    seen.push(Object.keys(require.cache).some((path) => path.includes('@opentelemetry')), ${SLOTS}.version)
    const api = require('@opentelemetry/api')
    app.get('/', async (request) => {
      api.trace.getTracer('late').startActiveSpan('late', (span) => span.end())
      seen.push(api.trace.getActiveSpan() === request.trace.span)
      const headers = {}
      api.propagation.inject(api.context.active(), headers)
      seen.push(headers.traceparent === request.trace.traceparent)
    })
    await app.inject('/')
    await app.close()`)
  t.same(seen, [false, version, true, true])
  t.same(spans, ['late', 'GET /'])
  t.equal(after, null, 'nothing is left')
})

// P02, and the two tests that follow
test('if another API version has registered before, nothing is added, and it is logged', async (t) => {
  const { seen, after, stderr } = await run(t, `
    ${SLOTS} = { version: '1.4.1', metrics: {} }
    const app = Fastify()
    await app.register(lightTrace, { spanProcessors: [${PROCESSOR}] })
    app.get('/', async (request) => { seen.push(lightTrace.current() === request.trace) })
    await app.inject('/')
    await app.close()`)
  t.match(stderr, /LT_WARN_API_VERSION.*1\.4\.1/)
  t.equal(stderr.match(/LT_WARN_API_VERSION/g).length, 1)
  t.same(after, { version: '1.4.1', metrics: {} })
  t.same(seen, [true])
})

test('if the application gets another API version, nothing is registered, and it is logged', { skip: without('sdk') }, async (t) => {
  const { after, stderr, spans } = await run(t, `
    const app = Fastify()
    await app.register(lightTrace, { spanProcessors: [${PROCESSOR}] })
    seen.push(typeof ${SLOTS})
    app.get('/', async (request) => request.trace.withSpan('child', () => {}))
    await app.inject('/')
    await app.close()`, { apiVersion: '1.11.0' })
  t.match(stderr, /LT_WARN_API_VERSION.*1\.11\.0/)
  t.equal(after, null)
  t.same(spans, ['child', 'GET /'])
})

test('a context manager of another API version is used', async (t) => {
  const { seen } = await run(t, `
    const { AsyncLocalStorage } = require('node:async_hooks')
    const storage = new AsyncLocalStorage()
    const values = new Map()
    const root = { getValue: () => undefined, setValue (key, value) { return { ...root, getValue: (asked) => asked === key ? value : this.getValue(asked) } }, deleteValue () { return this } }
    ${SLOTS} = { version: '1.4.1', context: { active: () => storage.getStore() ?? root, with: (context, fn, self, ...args) => storage.run(context, () => fn.apply(self, args)) } }
    const app = Fastify()
    await app.register(lightTrace, { spanProcessors: [${PROCESSOR}] })
    app.get('/', async (request) => {
      await null
      seen.push(storage.getStore() === request.trace, lightTrace.current() === request.trace)
    })
    await app.inject('/')
    await app.close()`)
  t.same(seen, [true, true])
})

test('a value that other code has put into a slot meanwhile is kept', async (t) => {
  const { seen } = await run(t, `
    const api = require('@opentelemetry/api')
    const app = Fastify()
    await app.register(lightTrace, { spanProcessors: [${PROCESSOR}] })
    await app.ready()
    const provider = { getTracer: () => ({ startSpan () {} }) }
    api.trace.disable()
    api.trace.setGlobalTracerProvider(provider)
    await app.close()
    seen.push(api.trace.getTracerProvider().getDelegate() === provider, ${SLOTS}.context === undefined)`)
  t.same(seen, [true, true])
})

test('a taken trace slot is logged, and a no-op in it does not count', { skip: without('sdk') }, async (t) => {
  const { seen, stdout } = await run(t, `
    const api = require('@opentelemetry/api')
    class Theirs { getTracer () { return { startSpan: () => api.trace.wrapSpanContext(api.INVALID_SPAN_CONTEXT) } } }
    api.trace.setGlobalTracerProvider(new Theirs())
    const app = Fastify({ logger: true })
    await app.register(lightTrace, { spanProcessors: [${PROCESSOR}] })
    await app.ready()
    seen.push(app.lightTrace.stats().mode)
    await app.close()
    api.trace.disable()
    api.trace.setGlobalTracerProvider(new api.ProxyTracerProvider())
    for (const [options, expected] of [[{}, 'native'], [{ tracerProvider: false }, 'native'], [{ exporter: 'none' }, 'none']]) {
      const other = Fastify()
      await other.register(lightTrace, options)
      await other.ready()
      seen.push(other.lightTrace.stats().mode === expected)
      await other.close()
    }`)
  t.match(stdout, /trace slot of @opentelemetry\/api is already used by Theirs/)
  t.same(seen, ['processors', true, true, true])
})

test('two copies of the package can run in one process', { skip: without('sdk') }, async (t) => {
  const { seen, spans } = await run(t, `
    const copy = require(process.env.COPY)
    seen.push(copy !== lightTrace)
    const api = require('@opentelemetry/api')
    const processor = ${PROCESSOR}
    const first = Fastify()
    await first.register(lightTrace, { spanProcessors: [processor] })
    const second = Fastify()
    await second.register(copy, { spanProcessors: [processor] })
    await second.register(lightTrace, { spanProcessors: [processor] })
    second.get('/second', async (request) => {
      seen.push(lightTrace.current() === request.trace, copy.current() === request.trace, api.trace.getActiveSpan() === request.trace.span)
      api.trace.getTracer('x').startSpan('child').end()
    })
    await first.ready()
    await second.inject('/second')
    await first.close()
    api.trace.getTracer('x').startSpan('after the first').end()
    await second.close()
    seen.push(${SLOTS} === undefined)`, { copy: true })
  t.same(seen, [true, true, true, true, true])
  t.same(spans, ['child', 'GET /second', 'after the first'])
})

test('no function of Node is patched', async (t) => {
  const { seen } = await run(t, `
    const http = require('node:http')
    const https = require('node:https')
    const http2 = require('node:http2')
    require('node:worker_threads') // wraps process.chdir, and fetch loads it
    const net = require('node:net')
    const { EventEmitter } = require('node:events')
    const watched = { http, https, http2, server: http.Server.prototype, request: http.IncomingMessage.prototype, response: http.ServerResponse.prototype, outgoing: http.OutgoingMessage.prototype, client: http.ClientRequest.prototype, agent: http.Agent.prototype, socket: net.Socket.prototype, emitter: EventEmitter.prototype, promise: Promise.prototype, fn: Function.prototype, object: Object.prototype, fastify: Fastify, process, module: require('node:module'), load: require('node:module').prototype, globals: { fetch, setTimeout, setImmediate, queueMicrotask, Promise } }
    const picture = () => Object.entries(watched).map(([name, object]) => [name, new Map(Reflect.ownKeys(object).map((key) => [key, Object.getOwnPropertyDescriptor(object, key)]))])
    const before = picture()
    const app = Fastify()
    const methods = ['addHook', 'route', 'get', 'setErrorHandler', 'setNotFoundHandler', 'register', 'decorate', 'inject', 'listen', 'ready', 'close']
    const own = methods.map((name) => app[name])
    const { emit } = app.server
    await app.register(lightTrace, { spanProcessors: [${PROCESSOR}] })
    async function handler (request, reply) { return { same: this === app, name: handler.name, length: handler.length } }
    app.addHook('onRoute', (route) => { seen.push(route.handler === handler) })
    app.get('/', handler)
    const origin = await app.listen({ port: 0, host: '127.0.0.1' })
    const answer = await (await fetch(origin)).json()
    seen.push(answer)
    seen.push(methods.filter((name, i) => app[name] !== own[i]), app.server.emit === emit, Object.hasOwn(app.server, 'emit'))
    const changed = []
    picture().forEach(([name, now], i) => {
      const then = before[i][1]
      for (const key of new Set([...now.keys(), ...then.keys()])) {
        const [a, b] = [then.get(key), now.get(key)]
        if (name === 'process' && (key === '_exiting' || typeof key === 'symbol' || String(key).startsWith('_'))) continue
        if (a === undefined || b === undefined || a.value !== b.value || a.get !== b.get || a.set !== b.set) changed.push(name + '.' + String(key))
      }
    })
    seen.push(changed)
    await app.close()`)
  t.same(seen.splice(0, seen.findIndex((item) => typeof item === 'object')).every(Boolean), true)
  t.same(seen, [{ same: true, name: 'handler', length: 2 }, [], true, false, []])
})

/** Runs `code` as an application in its own directory. */
async function run (t, code, { apiVersion, copy = false } = {}) {
  const directory = t.testdir({})
  if (apiVersion !== undefined) {
    const api = join(directory, 'node_modules', '@opentelemetry', 'api')
    mkdirSync(api, { recursive: true })
    writeFileSync(join(api, 'package.json'), JSON.stringify({ name: '@opentelemetry/api', version: apiVersion, main: 'index.js' }))
    writeFileSync(join(api, 'index.js'), '')
  }
  if (copy) for (const file of ['index.js', 'package.json', 'lib']) cpSync(join(ROOT, file), join(directory, 'copy', file), { recursive: true })
  const main = join(directory, 'main.js')
  writeFileSync(main, `
    const Fastify = require(${JSON.stringify(join(ROOT, 'node_modules', 'fastify'))})
    const lightTrace = require(${JSON.stringify(ROOT)})
    const seen = []
    const spans = []
    async function app () {${code}
    }
    app().then(() => console.log(JSON.stringify({ seen, spans, after: ${SLOTS} ?? null })))`)
  // tap sets --no-warnings in NODE_OPTIONS on Node 26.
  const env = { ...process.env, NODE_OPTIONS: '', COPY: join(directory, 'copy'), OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }
  const { stdout, stderr } = await new Promise((resolve, reject) => {
    execFile(process.execPath, [main], { cwd: directory, env, timeout: 30_000 }, (error, stdout, stderr) => error ? reject(new Error(stderr)) : resolve({ stdout, stderr }))
  })
  return { ...JSON.parse(stdout.split('\n').find((line) => line.startsWith('{"seen"'))), stdout, stderr }
}

test('if one copy is preloaded and another is registered in code, the one in code is used', { skip: without('metrics') || without('stages') || without('sdk') }, async (t) => {
  const { seen, spans } = await run(t, `
    const copy = require(process.env.COPY)
    const processor = ${PROCESSOR}
    for (const [preloaded, inCode] of [[lightTrace, copy], [copy, lightTrace]]) {
      const app = Fastify()
      await app.register(preloaded, { [Symbol.for('light-trace.automatic')]: true })
      await app.register(inCode, { spanProcessors: [processor], spans: { handler: true }, metrics: { exporter: 'none', path: '/metrics' } })
      app.get('/', async () => 'ok')
      seen.push((await app.inject('/')).statusCode, (await app.inject('/metrics')).statusCode)
      await app.close()
    }`, { copy: true })
  t.same(seen, [200, 200, 200, 200])
  t.same(spans, ['handler', 'GET /', 'handler', 'GET /'])
})

test('values shared by copies of light-trace can be changed, but test runners cannot replace them with accessors', async (t) => {
  require('../..')
  const shared = globalThis[Symbol.for('light-trace.globals')]
  t.same(Reflect.ownKeys(shared).filter((key) => Object.getOwnPropertyDescriptor(shared, key).configurable), [])
  t.ok(Object.values(Object.getOwnPropertyDescriptors(shared)).every(({ writable }) => writable))
})
