'use strict'

// What a registration loads: what its options, its environment and its routes ask for, and no more.

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { test, setTimeout } = require('tap')

// Some fifty processes, one after the other: a minute is not enough for them on a machine with other work.
setTimeout(240_000)

const root = path.join(__dirname, '..')

// Runs `code` in an application of its own process and gives the files of lib that are loaded then.
function loadedBy (code, env = {}) {
  const script = `
    const lightTrace = require(${JSON.stringify(root)})
    const app = require(${JSON.stringify(require.resolve('fastify'))})()
    const loaded = () => Object.keys(require.cache).map((file) => require('node:path').relative(${JSON.stringify(path.join(root, 'lib'))}, file)).filter((file) => !file.startsWith('..'))
    async function main () { ${code}; await app.ready(); process.stdout.write(JSON.stringify(loaded())); await app.close() }
    main()`
  const { PATH } = process.env
  return JSON.parse(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8', env: { PATH, ...env } })).map((file) => file.split(path.sep).join('/'))
}

// For what the application's own options ask for.
const inOther = (fastifyOptions, code) => `{ const other = require(${JSON.stringify(require.resolve('fastify'))})(${fastifyOptions}); other.register(lightTrace); other.get('/', async () => 'ok'); await other.ready(); ${code}; await other.close() }`

const CALLER = "{ traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'a=b', baggage: 'tenant=x' }"
const called = `app.get('/', async () => 'ok'); await app.inject({ url: '/', headers: ${CALLER} })`

const register = (options = '') => `app.register(lightTrace, { ${options} })`

const FILES_MAX = 72

const ON_DEMAND = [
  ['config/nearest-name.js', `try { require(${JSON.stringify(path.join(root, 'lib/config/options'))}).resolveOptions({ sampelr: 1 }) } catch {}`],
  ['config/errors.js', `try { require(${JSON.stringify(path.join(root, 'lib/config/options'))}).resolveOptions({ logs: 1 }) } catch {}`],
  ['config/sampler.js', register('sampler: 0.5')],
  ['config/captured-headers.js', register("requestHeaders: ['x-tenant']")],
  ['span/ratio-sampler.js', register('sampler: 0.5')],
  ['span/rate-limit.js', register('maxSampledPerSecond: 10')],
  ['span/tail-sampled-server-span.js', register('keep: true')],
  ['span/remote-span.js', `process.env.TRACEPARENT = ${CALLER}.traceparent; ${register()}`],
  ['span/forwarded.js', inOther('{ trustProxy: true }', "await other.inject('/')")],
  ['fastify/callbacks.js', register('onEnd () {}')],
  ['fastify/callbacks.js', `${register()}; app.register(async () => { app.get('/', { config: { trace: { spanName: 'a' } } }, async () => 'ok') }); await app.inject('/')`],
  ['fastify/log-correlation.js', inOther("{ logger: { level: 'silent' } }", '')],
  ['context/traceparent.js', `${register()}; ${called}`],
  ['context/tracestate.js', `${register()}; ${called}`],
  ['context/baggage.js', `${register("baggage: ['tenant']")}; ${called}`],
  ['context/caller-headers.js', `${register('trustIncoming: false')}; ${called}`],
  ['config/exporter-headers.js', register("exporter: { url: 'http://127.0.0.1:1', headers: { 'x-scope-orgid': 'a' } }")],
  ['config/tls-files.js', register("exporter: { url: 'https://127.0.0.1:1' }")],
  ['config/entities.js', `process.env.OTEL_ENTITIES = 'host{host.id=1}'; ${register()}`],
  ['config/ignore.js', register("ignore: ['/health']")],
  ['span/sdk-sampler.js', register('sampler: { shouldSample: () => ({ decision: 0 }) }')],
  ['serverless/flush-after.js', `${register()}; lightTrace.flushAfter(app, async () => {})`],
  ['serverless/vercel.js', `process.env.VERCEL = '1'; ${register()}`],
  ['serverless/sigterm.js', `process.env.K_SERVICE = 'shop'; ${register()}`],
  ['span/per-second.js', register('sampler: { perSecond: 50 }')],
  ['span/sdk-spans.js', register('tracerProvider: { getTracer: () => ({ startSpan () {} }) }')],
  ['otel/sdk-interop.js', register('tracerProvider: { getTracer: () => ({ startSpan () {} }) }')],
  ['otel/propagators.js', `process.env.OTEL_PROPAGATORS = 'tracecontext'; ${register()}`],
  ['otel/w3c-propagator.js', `await ${register()}; globalThis[Symbol.for('opentelemetry.js.api.1')].propagation.fields()`],
  ['otel/injection.js', `${register()}; app.get('/', async (request) => request.trace.inject({})); await app.inject('/')`],
  ['span/credential-names.js', `${register()}; app.get('/', async () => 'ok'); await app.inject('/?a=1'); await app.lightTrace.flush()`],
  ['fastify/handler-spans.js', `${register()}; app.register(async () => { app.get('/', { config: { trace: { spans: { handler: true } } } }, async () => 'ok') })`],
  ['fastify/hook-spans.js', register("spans: { hooks: ['preHandler'] }")],
  ['fastify/unrouted.js', register('unrouted: true')],
  ['outbound/trace-client.js', `${register()}; lightTrace.traceClient({ query () {} })`],
  ['outbound/libraries/user-descriptor.js', register("outbound: { channels: { 'my:op': {} } }")],
  // Outside of any request, as when a library connects.
  ['outbound/http.js', `await ${register()}; require('node:diagnostics_channel').channel('http.client.response.finish').publish({ request: {}, response: {} })`],
  ['outbound/http2.js', `await ${register()}; require('node:diagnostics_channel').channel('http2.client.stream.close').publish({ stream: {} })`],
  ['outbound/undici.js', `await ${register()}; require('node:diagnostics_channel').channel('undici:request:error').publish({ request: {} })`],
  ['outbound/libraries/databases.js', `await ${register()}; require('node:diagnostics_channel').channel('tracing:mysql2:query:start').publish({})`],
  ['outbound/libraries/kafka.js', `await ${register()}; require('node:diagnostics_channel').channel('tracing:plt:kafka:producer:sends:start').publish({})`],
  ['export/sinks/console.js', register("exporter: 'console'")],
  ['export/sinks/processors.js', register('spanProcessors: [{ onStart () {}, onEnd () {} }]')],
  ['export/sinks/otlp-stdout.js', register("exporter: 'otlp/stdout'")],
  ['export/sinks/none.js', register("exporter: 'none'")]
]

// What every tracer has: counters, the resource, and where ended spans go.
const ALWAYS_OF_EXPORT = ['export/pipeline.js', 'export/resource.js', 'export/stats.js']

test('a registration without options loads none of what some option asks for', async (t) => {
  const loaded = loadedBy(register())
  t.ok(loaded.includes('tracer.js'))
  for (const [file] of ON_DEMAND) t.notOk(loaded.includes(file), file)
  t.equal(loaded.includes('fastify/pipelined.js'), Number(process.versions.node.split('.')[0]) < 24)
  // Each file is some 400,000 instructions of every start, one that nobody needs too.
  t.ok(loaded.length <= FILES_MAX, `${loaded.length} files`)
})

test('the first answer loads none of it either', async (t) => {
  const loaded = loadedBy(`await ${register()}; app.get('/', async () => 'ok'); await app.inject('/')`)
  t.ok(loaded.includes('otlp/span-encoder.js'))
  for (const [file] of ON_DEMAND) if (file !== 'config/captured-headers.js') t.notOk(loaded.includes(file), file) // of which the exporter has a pattern
})

test('what is asked for is loaded before the application is ready', async (t) => {
  for (const [file, code] of ON_DEMAND) t.ok(loadedBy(code).includes(file), file)
})

test('the encoder and the exporter are loaded when the first span has ended', async (t) => {
  const isLate = (file) => /^(otlp|export)\//.test(file) && !ALWAYS_OF_EXPORT.includes(file)
  t.same(loadedBy(register()).filter(isLate), [])
  const loaded = loadedBy(`await ${register()}; app.get('/', async () => 'ok'); await app.inject('/'); await new Promise((resolve) => setImmediate(resolve))`)
  t.ok(loaded.includes('otlp/span-encoder.js'))
  t.ok(loaded.includes('export/exporter.js'))
})

test('a variable asks as an option does', async (t) => {
  t.ok(loadedBy(register(), { OTEL_EXPORTER_OTLP_HEADERS: 'x-scope-orgid=a' }).includes('config/exporter-headers.js'))
  t.ok(loadedBy(register(), { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://127.0.0.1:1' }).includes('config/tls-files.js'))
  t.ok(loadedBy(register(), { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://user:password@127.0.0.1:1' }).includes('config/exporter-headers.js'))
  t.ok(loadedBy(register(), { OTEL_FASTIFY_IGNORE_PATHS: '/health' }).includes('config/ignore.js'))
})

test('what is loaded at each start is Latin-1', (t) => {
  // V8 reads another text as two bytes a character: it parses slower and takes twice the memory.
  for (const file of ['../index.js', ...loadedBy(register())]) {
    t.notMatch(fs.readFileSync(path.join(root, 'lib', file), 'utf8'), /[^\x00-\xff]/, file) // eslint-disable-line no-control-regex
  }
  t.end()
})
