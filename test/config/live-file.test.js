'use strict'

// configFile: the file's values override the options while the application runs.

const { test } = require('tap')
const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const { tmpdir } = require('node:os')
const { dirname, join } = require('node:path')
const { isatty } = require('node:tty')
const { setTimeout: sleep } = require('node:timers/promises')
const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-base')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { resolveLive } = require('../../lib/config/options')
const { LiveFile } = require('../../lib/features/live-file')
const { Report, Said } = require('../../lib/runtime/report')
const { collectorFor } = require('../support/collector')
const { without } = require('../support/features')

const DEADLINE_MS = 20_000
const isWindows = process.platform === 'win32'

async function liveApp (t, content, options = {}, logger = {}, routes = undefined) {
  const file = options.configFile ?? join(t.testdir({}), 'light-trace.json')
  const write = (value) => {
    fs.writeFileSync(`${file}.new`, typeof value === 'string' ? value : JSON.stringify(value))
    for (;;) {
      try {
        return fs.renameSync(`${file}.new`, file)
      } catch (error) {
        if (error.code !== 'EPERM') throw error // on Windows, while the file is being read
      }
    }
  }
  // For tests that are not about the check once a second.
  const change = (value) => {
    write(value)
    process.emit('SIGHUP') // in a terminal and on Windows there is no SIGHUP, so the next check finds the change
  }
  if (content !== undefined) write(content)
  const lines = []
  const { collector, options: collecting } = await collectorFor(t)
  const app = Fastify({ logger: { level: 'info', stream: { write: (line) => lines.push(JSON.parse(line)) }, ...logger } })
  t.teardown(() => app.close())
  await app.register(lightTrace, { ...('spanProcessors' in options ? {} : collecting), registerGlobals: false, configFile: file, ...options })
  app.get('/', async () => 'ok')
  app.get('/health', async () => 'ok')
  app.get('/failing', async () => { throw new Error('x') })
  routes?.(app)
  await app.ready()
  const names = async (...urls) => {
    collector.reset()
    for (const url of urls) await app.inject(url)
    return (await collector.spans()).map(({ name }) => name)
  }
  return { app, file, write, change, lines, collector, names, warnings: () => lines.filter(({ code }) => code === 'LT_WARN_CONFIG_FILE') }
}

async function until (holds) {
  for (const end = performance.now() + DEADLINE_MS; performance.now() < end; await sleep(20)) if (await holds()) return true
  return false
}

test('sampler, keep and ignore of the file apply from the first request, and each change at once', { skip: without('keep') }, async (t) => {
  const { write, names, lines, warnings } = await liveApp(t, { sampler: 'always_off', keep: { errors: true } }, { ignore: '/health', sampler: 'always_on' })
  t.same(await names('/', '/health', '/failing'), ['GET /failing'])
  write({ ignore: ['/'] })
  t.ok(await until(async () => (await names('/')).length === 0 && (await names('/health')).length === 1))
  t.same(await names('/', '/health', '/failing'), ['GET /health', 'GET /failing'], 'a removed value falls back to the options')
  write({ sampler: 0, ignore: [] })
  t.ok(await until(async () => (await names('/health')).length === 0))
  t.same(await names('/', '/health', '/failing'), [], 'keep is off again')
  write({})
  t.ok(await until(async () => (await names('/')).length === 1))
  t.same(await names('/', '/health'), ['GET /'])
  t.same(warnings(), [])
  t.equal(lines.filter(({ msg }) => msg.endsWith('has changed and is applied')).length, 3)
})

test('`slow` of the file keeps and explains slow requests from then on, except on routes with a limit of their own', { skip: without('keep') || without('accounts') }, async (t) => {
  const { change, collector, names, warnings } = await liveApp(t, {}, { sampler: 'always_off', keep: { slow: true }, slow: false }, {}, (app) => {
    app.get('/own', { config: { trace: { slow: { afterMs: 1e6 } } } }, async () => 'ok')
  })
  const explained = async () => (await collector.spans()).filter(({ attributes }) => 'light_trace.time.busy' in attributes).length
  t.same(await names('/', '/own'), [])
  change({ slow: { afterMs: 0 } })
  t.ok(await until(async () => (await names('/', '/own')).join() === 'GET /' && await explained() === 1))
  change({ slow: false })
  t.ok(await until(async () => (await names('/', '/own')).length === 0))
  change({ slow: { afterMs: 0 } })
  t.ok(await until(async () => (await names('/', '/own')).length === 1))
  change({})
  t.ok(await until(async () => (await names('/', '/own')).length === 0), 'the options apply again')
  t.same(warnings(), [])
})

test('`slow: true` in the file uses the limit of the variable', (t) => {
  t.teardown(() => { delete process.env.LIGHT_TRACE_SLOW_AFTER_MS })
  t.same(resolveLive({ slow: true }).slow, { afterMs: 250 })
  process.env.LIGHT_TRACE_SLOW_AFTER_MS = '70'
  t.same(resolveLive({ slow: true }).slow, { afterMs: 70 })
  t.same(resolveLive({ slow: false }).slow, { afterMs: Infinity })
  t.equal(resolveLive({}).slow, undefined)
  t.end()
})

test('keep.slowerThanMs in the file is rejected with its replacement', (t) => {
  t.throws(() => resolveLive({ keep: { slowerThanMs: 500 } }), { code: 'LT_ERR_OPTION_UNKNOWN', message: 'unknown option `configFile.keep.slowerThanMs`: use keep: { errors: true, slow: true } and slow: { afterMs: 1000 }' })
  t.end()
})

test('a byte order mark in the file is ignored', async (t) => {
  const { names, warnings } = await liveApp(t, '\ufeff{ "sampler": "always_off" }', { sampler: 'always_on' })
  t.same(await names('/'), [])
  t.same(warnings(), [])
})

test('a ratio of the file is in the trace state of the spans', async (t) => {
  const { change, names, collector } = await liveApp(t, {}, { sampler: 'always_on' })
  change({ sampler: 0.5 })
  t.ok(await until(async () => {
    await names('/', '/', '/', '/')
    return (await collector.spans()).some(({ traceState }) => traceState === 'ot=th:8')
  }))
})

for (const [what, content] of Object.entries({
  'no JSON': '{ "sampler": secret',
  'a list': [],
  'a wrong value': { sampler: 2, ignore: ['/'] },
  'a wrong member': { keep: { error: true } },
  'an option that needs a start': { serviceName: 'x' },
  'a file of two megabytes': `{"sampler": 0}${' '.repeat(2 * 1024 * 1024)}`
})) {
  test(`${what}: nothing changes, and this is logged once`, async (t) => {
    const { change, names, warnings } = await liveApp(t, { sampler: 'always_on' }, { sampler: 'always_off' })
    change(content)
    t.ok(await until(() => warnings().length > 0))
    t.match(warnings()[0].msg, /light-trace\.json is ignored: /)
    t.notMatch(warnings()[0].msg, 'secret')
    t.same(await names('/'), ['GET /'])
    change({ sampler: 'always_off' })
    t.ok(await until(async () => (await names('/')).length === 0))
    t.equal(warnings().length, 1)
  })
}

test('repeated errors in a file are one line, and another after 30 s with their number', async (t) => {
  const folder = join(fs.mkdtempSync(join(tmpdir(), 'light-trace-')), 'a'.repeat(200)) // the line is whole behind a long path, too
  fs.mkdirSync(folder)
  t.teardown(() => fs.rmSync(dirname(folder), { recursive: true }))
  const path = join(folder, 'x.json')
  fs.writeFileSync(path, '{}')
  const clock = { ms: 0 }
  const said = []
  const holds = []
  const log = { info: (message) => said.push(message), warn: ({ code }, message) => said.push(`${code} ${message}`) }
  const report = new Report(log, 'info', new Said(() => clock.ms))
  const file = new LiveFile(path, (live) => holds.push(live), report)
  const write = (value) => { fs.writeFileSync(path, JSON.stringify(value)); file.read() }
  file.read()
  for (let sampler = 2; sampler < 6; sampler++) write({ sampler })
  t.match(said, [/^LT_WARN_CONFIG_FILE .* is ignored: .*sampler/])
  clock.ms = 30_000
  file.watch()
  t.teardown(() => file.close())
  t.ok(await until(() => said.length === 2), 'the last error is logged without a further change')
  t.match(said[1], /x\.json is ignored, after 2 others that changed nothing: /)
  write({ sampler: 7 })
  write({ sampler: 1 })
  write({ sampler: 0.5 })
  t.match(said.slice(2), [/has changed and is applied, after 1 other that changed nothing$/, /has changed and is applied$/])
  t.equal(said.length, 4)
  t.equal(holds.length, 3)
})

test('a file that is missing at the start is logged, and applies once it exists', async (t) => {
  const { write, names, warnings } = await liveApp(t, undefined, { sampler: 'always_off' })
  t.match(warnings(), [{ msg: /ENOENT/ }])
  t.same(await names('/'), [])
  write({ sampler: 'always_on' })
  t.ok(await until(async () => (await names('/')).length === 1))
  t.equal(warnings().length, 1)
})

test('a change that keeps length and times is detected, as are two within one tick of a clock', async (t) => {
  const folder = t.testdir({ 'x.json': '{ "sampler": 0 }' })
  const configFile = join(folder, 'x.json')
  const { stat, statSync } = fs
  const stopped = (stats) => Object.assign(stats, { mtimeMs: 1, ctimeMs: 1 })
  t.teardown(() => Object.assign(fs, { stat, statSync }))
  fs.statSync = (path) => stopped(statSync(path))
  fs.stat = (path, done) => stat(path, (error, stats) => done(error, error === null ? stopped(stats) : undefined))
  const { names, lines } = await liveApp(t, undefined, { configFile })
  t.same(await names('/'), [])
  fs.writeFileSync(configFile, '{ "sampler": 1 }')
  t.ok(await until(async () => (await names('/')).length === 1))
  t.equal(lines.filter(({ msg }) => msg.endsWith('has changed and is applied')).length, 1)
})

test('a link to a new target is a change, as when Kubernetes updates a ConfigMap', { skip: isWindows && 'Windows cannot rename a link over another' }, async (t) => {
  const folder = t.testdir({ a: { 'x.json': '{ "sampler": 0 }' }, b: { 'x.json': '{ "sampler": 1 } ' } })
  const link = join(folder, 'now')
  fs.symlinkSync(join(folder, 'a'), link)
  const { names } = await liveApp(t, undefined, { configFile: join(link, 'x.json') })
  t.same(await names('/'), [])
  fs.symlinkSync(join(folder, 'b'), `${link}.new`)
  fs.renameSync(`${link}.new`, link)
  t.ok(await until(async () => (await names('/')).length === 1))
})

test('SIGHUP reads the file at once, and after the close neither the signal nor the file is watched', { skip: isWindows ? 'Windows has no SIGHUP' : isatty(0) && 'a terminal sends it when it closes' }, async (t) => {
  const before = process.listenerCount('SIGHUP')
  const { app, write, names } = await liveApp(t, { sampler: 0 })
  t.equal(process.listenerCount('SIGHUP'), before + 1)
  write({ sampler: 1 })
  process.kill(process.pid, 'SIGHUP')
  t.ok(await until(async () => (await names('/')).length === 1))
  await app.close()
  t.equal(process.listenerCount('SIGHUP'), before)
})

test('a hundred applications share one listener for the signal', { skip: process.platform === 'win32' || isatty(0) }, async (t) => {
  const before = process.listenerCount('SIGHUP')
  const apps = []
  for (let i = 0; i < 20; i++) apps.push((await liveApp(t, undefined, { configFile: '/nowhere/light-trace.json' })).app)
  t.equal(process.listenerCount('SIGHUP'), before + 1)
  for (const app of apps) await app.close()
  t.equal(process.listenerCount('SIGHUP'), before)
})

test('a pipe in place of the file does not block', { skip: process.platform === 'win32' }, async (t) => {
  const { file, names, warnings } = await liveApp(t, { sampler: 1 }, { sampler: 0 })
  execFileSync('mkfifo', [`${file}.pipe`])
  fs.renameSync(`${file}.pipe`, file)
  t.ok(await until(() => warnings().length > 0))
  t.match(warnings()[0].msg, 'it is no file')
  t.same(await names('/'), ['GET /'])
})

test('rate limits, also that of keep, continue across a change', async (t) => {
  const { change, names, lines } = await liveApp(t, {}, { sampler: { perSecond: 1e6 }, keep: { errors: true, maxPerSecond: 1e6 } })
  const all = async () => (await names('/', '/', '/', '/failing')).length
  t.equal(await all(), 4)
  for (let changes = 0; changes < 3; changes++) {
    change({ ignore: [`/x${changes}`] })
    t.ok(await until(() => lines.filter(({ msg }) => msg.endsWith('has changed and is applied')).length > changes))
    for (let i = 0; i < 20; i++) await names('/', '/failing')
    t.equal(await all(), 4)
  }
})

test('an unknown level is ignored', { skip: without('logs') }, async (t) => {
  for (const level of ['warning', 'constructor']) {
    const { warnings } = await liveApp(t, { logs: { level } }, { logs: { export: true } })
    t.match(warnings(), [{ msg: /`configFile.logs.level` must be/ }])
  }
})

test('a level that the logger does not have leaves the levels of the options in force', { skip: without('testing') || without('logs') }, async (t) => {
  const { app, collector } = await liveApp(t, { logs: { level: 'nolevel' } }, { logs: { export: true, level: 'error' } })
  app.log.info('own info')
  app.log.error('own error')
  await app.ready()
  t.same((await collector.logs()).map(({ body }) => body), ['own error'])
})

// Short names, because the message has the path of the file and is truncated.
test('the file may set a level of the application\'s own', { skip: without('testing') || without('logs') }, async (t) => {
  const { app, change, collector, names, warnings } = await liveApp(t, { logs: { level: 'notice' } }, { logs: { export: true } }, { customLevels: { notice: 35 } })
  for (const level of ['info', 'notice', 'warn']) app.log[level](`own ${level}`)
  t.same((await collector.logs()).map(({ body }) => body).filter((body) => body.startsWith('own')), ['own notice', 'own warn'])
  change({ sampler: 'always_off', logs: { level: 'warning' } })
  t.ok(await until(() => warnings().some(({ msg }) => msg.includes('`configFile.logs.level` must be one of'))))
  t.same(await names('/'), ['GET /'])
})

test('the file may set the levels of exported lines', { skip: without('testing') || without('logs') }, async (t) => {
  const { app, change, collector } = await liveApp(t, { logs: { level: 'error' } }, { logs: { export: true, unsampledLevel: 'trace' } })
  const bodies = async () => {
    collector.reset()
    app.log.info('one')
    app.log.error('two')
    return (await collector.logs()).map(({ body }) => body).join()
  }
  t.equal(await bodies(), 'two')
  change({ logs: { level: 'info' } })
  t.ok(await until(async () => await bodies() === 'one,two'))
})

test('with the recorder, a file may switch keep off and on again', { skip: without('keep') }, async (t) => {
  const { startFakeCollector } = require('../support/fake-collector')
  const to = await startFakeCollector(t, { keepSpans: true })
  const { app, change } = await liveApp(t, { keep: true }, { spanProcessors: undefined, exporter: { url: to.url }, sampler: 'always_off', recorder: true })
  const kept = async () => {
    const before = to.spans.length
    await app.inject('/failing')
    await app.lightTrace.flush()
    return to.spans.length - before
  }
  t.equal(await kept(), 1)
  change({ keep: false })
  t.ok(await until(async () => await kept() === 0))
  t.ok(app.lightTrace.stats().spans.recorded > 0)
  change({ keep: true })
  t.ok(await until(async () => await kept() === 1))
})

test('a Sampler of the SDK stays in use, and this is logged', async (t) => {
  const { names, warnings } = await liveApp(t, { sampler: 1 }, { sampler: { shouldSample: () => ({ decision: 0 }) } })
  t.same(await names('/'), [])
  t.match(warnings(), [{ msg: /an SDK Sampler decides/ }])
})

test('if a provider creates the spans, sampler and keep of the file are reported without effect, once each', { skip: without('keep') || without('sdk') }, async (t) => {
  const exporter = new InMemorySpanExporter()
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const { app, write, lines } = await liveApp(t, { sampler: 0 }, { tracerProvider, spanProcessors: undefined })
  const said = () => lines.filter(({ code }) => code?.startsWith('LT_WARN_')).map(({ code, msg }) => `${code} ${msg}`)
  const changed = (times) => until(() => lines.filter(({ msg }) => msg.endsWith('has changed and is applied')).length === times)
  t.match(said(), [/^LT_WARN_CONFIG_FILE configFile: sampler has no effect/])
  write({ sampler: 0.5, keep: { errors: true } })
  t.ok(await changed(1))
  write({ sampler: 0.25, keep: { aborted: true } })
  t.ok(await changed(2))
  t.match(said(), [/^LT_WARN_CONFIG_FILE/, /^LT_WARN_KEEP keep has no effect/])
  t.equal(said().length, 2)
  await app.inject('/')
  t.equal(exporter.getFinishedSpans().length, 1)
})
