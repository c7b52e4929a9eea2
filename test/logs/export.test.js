'use strict'

// Which lines are exported, with which trace, and what happens to them.
// Feature: logs

const { execFileSync } = require('node:child_process')
const { devNull } = require('node:os')
const { once } = require('node:events')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')
const { setImmediate: turn } = require('node:timers/promises')
const Fastify = require('fastify')
const pino = require('pino')
const lightTrace = require('../..')
const { testing } = require('../support/collector')
const { loggingApp, isAccounted } = require('../support/logging-app')
const { startMetricSink } = require('../support/metric-sink')
const { runInChild } = require('../support/child')
const { signal } = require('../support/raw-client')
const { without } = require('../support/features')

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0'
const bodies = (records) => records.map(({ body }) => body)

test('without the option nothing is loaded, and the logger keeps its destination', async (t) => {
  const { code, said } = await runInChild(t, async ({ Fastify, lightTrace, say }) => {
    const stream = { write () {} }
    const app = Fastify({ logger: { stream } })
    await app.register(lightTrace, { exporter: 'none' })
    await app.ready()
    const symbol = Object.getOwnPropertySymbols(app.log).find(({ description }) => description === 'pino.stream')
    const destination = app.log[symbol] === stream
    say({ destination, loaded: Object.keys(require.cache).filter((file) => /\/(?:lib\/logs\/|config\/logs\.js)/.test(file)) })
    await app.close()
  }).exit
  t.equal(code, 0)
  t.same(said, [{ destination: true, loaded: [] }])
})

test('a line has the active span, outside of its context the request\'s ids, and outside of requests no ids', { skip: without('log-ids') }, async (t) => {
  let request
  const { app, exported } = await loggingApp(t, {
    routes: (app) => app.get('/', async (req) => {
      request = req
      req.log.info('in the request')
      await req.trace.withSpan('step', async (span) => {
        req.child = span.spanContext().spanId
        req.log.info('in a step')
        app.log.info('by another logger')
      })
      return 'ok'
    })
  })
  app.log.info('before')
  await app.inject('/')
  request.log.info('after, outside of its context')
  const records = await exported()
  const { traceId, spanId } = request.trace
  const found = Object.fromEntries(records.map((record) => [record.body, [record.traceId, record.spanId, record.flags & 1]]))
  t.same(found.before, ['', '', 0])
  t.same(found['in the request'], [traceId, spanId, 1])
  t.same(found['in a step'], [traceId, request.child, 1])
  t.same(found['by another logger'], [traceId, request.child, 1])
  t.same(found['after, outside of its context'], [traceId, spanId, 1])
  t.same(found['request completed'], [traceId, spanId, 1])
  t.same(found['incoming request'], [traceId, spanId, 1])
  for (const { attributes } of records) for (const key of ['trace_id', 'span_id', 'trace_flags', 'pid', 'hostname', 'time', 'level']) t.notOk(key in attributes)
})

for (const factory of [false, true]) {
  test(`with ids: false lines have no ids, and their records have them${factory ? ', except from a shared logger outside of its request' : ''}`, { skip: without('log-ids') }, async (t) => {
    let request
    const { app, lines, exported } = await loggingApp(t, {
      logs: { ids: false, export: true, buffer: 'debug' },
      fastify: factory ? { childLoggerFactory: (logger) => logger } : {},
      routes: (app) => app.get('/', async (req, reply) => {
        request = req
        req.log.info('in the request')
        if (!factory) req.log.child({ part: 'cart' }).debug('held')
        return reply.code(500).send('no')
      })
    })
    await app.inject('/')
    request.log.info('after, outside of its context')
    t.notMatch(lines.join(), 'trace_id')
    const records = await exported()
    const found = Object.fromEntries(records.map(({ body, traceId, spanId }) => [body, [traceId, spanId]]))
    const own = [request.trace.traceId, request.trace.spanId]
    t.same(found['in the request'], own)
    t.same(found['incoming request'], own)
    t.same(found['after, outside of its context'], factory ? ['', ''] : own)
    if (!factory) t.same(found.held, own)
  })
}

test('`logs: false` exports nothing, whatever the variables are; `logs: true` uses the variables', async (t) => {
  for (const [logs, count, events] of [[false, 0, 1], [true, 3, 0]]) {
    const sink = await startMetricSink(t)
    const { code } = await runInChild(t, async ({ Fastify, lightTrace }, logs) => {
      const app = Fastify({ logger: { stream: { write () {} } } })
      await app.register(lightTrace, { logs })
      app.get('/', async () => { throw new Error('no') })
      await app.inject('/')
      await app.close()
    }, { args: [logs], env: { OTEL_EXPORTER_OTLP_ENDPOINT: sink.origin, OTEL_LOGS_EXPORTER: 'otlp', OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN: 'logs' } }).exit
    t.equal(code, 0)
    t.equal(sink.records.filter(({ eventName }) => eventName === '').length, count)
    t.equal(sink.records.filter(({ eventName }) => eventName !== '').length, 1 - events)
    t.equal(sink.requests.flatMap(({ spans = [] }) => spans)[0].events.length, events, 'an exception is unchanged')
  }
})

test('Fastify\'s `incoming request` has its own request\'s trace or none, and is not exported if the trace is not sampled', { skip: without('log-ids') }, async (t) => {
  const sink = await startMetricSink(t)
  const stream = { write () {} }
  const app = Fastify({ logger: { stream } })
  t.teardown(() => app.close())
  const shared = app.log.child({ shared: true })
  app.addHook('onRequest', async ({ query }) => { for (let turns = Number(query.turns ?? 0); turns > 0; turns--) await turn() })
  await app.register(lightTrace, { exporter: { url: sink.url }, registerGlobals: false, logs: { export: true } })
  const own = {}
  const handler = async ({ id, trace }) => { own[id] = trace.traceId }
  app.get('/', handler)
  app.get('/shared', { childLoggerFactory: () => shared }, handler)
  await Promise.all(['/', '/shared', '/?turns=9', '/shared?turns=5', '/'].map((url) => app.inject(url)))
  await app.inject('/')
  await app.inject({ url: '/', headers: { traceparent: `${PARENT}0` } })
  await app.lightTrace.flush()
  const records = sink.records.filter(({ body }) => body === 'incoming request')
  t.equal(records.length, 6)
  for (const { attributes: { reqId }, traceId } of records) if (traceId !== '') t.equal(traceId, own[reqId])
  t.equal(records.find(({ attributes }) => attributes.reqId === 'req-6').traceId, own['req-6'])
  t.ok(isAccounted(app.lightTrace.stats().logs.records))
})

test('`incoming request` keeps its trace when a registration in code replaces that of light-trace/register', { skip: without('log-ids') || without('testing') }, async (t) => {
  const child = runInChild(t, async ({ Fastify, root, say }) => {
    const app = Fastify({ logger: { stream: { write () {} } } })
    const { createCollector } = require(`${root}/lib/features/testing/testing`)
    const collector = createCollector()
    await app.register(require(root), { spanProcessors: [collector], logs: { export: true } })
    app.get('/', async () => 'x')
    await app.inject('/')
    say((await collector.logs()).filter(({ body }) => body === 'incoming request').map(({ traceId }) => traceId))
    say((await collector.spans()).map(({ traceId }) => traceId))
    await app.close()
  }, { nodeArgs: ['--require', require.resolve('../../register.js')] })
  const { said } = await child.exit
  t.equal(said[0].length, 1)
  t.same(said[0], said[1])
})

test('`incoming request` has its trace whatever the ids of requests are, and however its message begins', { skip: without('log-ids') }, async (t) => {
  for (const [genReqId, logger] of [[(n) => n, {}], [(n) => `quo"te \\ ${n}`, {}], [(n) => `req-${n}`, { msgPrefix: '[shop] ' }]]) {
    let n = 0
    const { app, exported } = await loggingApp(t, {
      logger,
      fastify: { genReqId: () => genReqId(++n) },
      routes: (app) => app.get('/', async ({ trace }) => trace.traceId)
    })
    const answers = []
    for (let i = 0; i < 2; i++) answers.push((await app.inject('/')).payload)
    await app.inject({ url: '/', headers: { traceparent: `${PARENT}0` } })
    const records = (await exported()).filter(({ body }) => body.endsWith('incoming request'))
    t.same(records.map(({ traceId }) => traceId), answers)
  }
})

test('a line outside of requests is exported whatever it contains', async (t) => {
  const { app, exported } = await loggingApp(t)
  app.log.info({ trace_flags: '00' }, 'first')
  app.log.info({ nested: { trace_flags: '00' } }, 'second')
  app.log.child({ trace_flags: '00' }).info('third')
  t.same(bodies(await exported()), ['first', 'second', 'third'])
})

test('a collector that throws at `incoming request` does not change the request\'s trace', { skip: without('testing') }, async (t) => {
  const collector = testing.createCollector()
  collector.onLog = () => { throw new Error('never') }
  const app = Fastify({ logger: { stream: { write () {} } } })
  t.teardown(() => app.close())
  await app.register(lightTrace, { spanProcessors: [collector], registerGlobals: false, logs: { export: true } })
  app.get('/', async ({ trace }) => trace.traceId)
  const { payload } = await app.inject('/')
  const [span] = await collector.spans()
  t.equal(span.traceId, payload)
})

test('lines are exported from warn up, and below it only in sampled traces', async (t) => {
  const areAnswered = signal()
  const later = []
  const { app, exported } = await loggingApp(t, {
    routes: (app) => app.get('/', async ({ log, query: { name } }) => {
      for (const level of ['debug', 'info', 'warn']) log[level](`${name} ${level}`)
      later.push(areAnswered.promise.then(() => log.info(`${name} later`)))
      return 'ok'
    })
  })
  await app.inject({ url: '/?name=sampled', headers: { traceparent: `${PARENT}1` } })
  for (const flags of [0, 2]) await app.inject({ url: '/?name=not', headers: { traceparent: `${PARENT}${flags}` } })
  await turn()
  areAnswered.give()
  await Promise.all(later)
  const said = bodies(await exported()).filter((body) => /^(?:sampled|not)/.test(body))
  t.same(said, ['sampled info', 'sampled warn', 'not warn', 'not warn', 'sampled later'])
})

test('level and unsampledLevel apply, also to the logger\'s own levels', async (t) => {
  const { app, lines, exported } = await loggingApp(t, {
    logger: { customLevels: { notice: 35 } },
    logs: { export: true, level: 'notice', unsampledLevel: 'info' },
    routes: (app) => app.get('/', async ({ log }) => {
      for (const level of ['info', 'notice', 'warn']) log[level](level)
      return 'ok'
    })
  })
  await app.inject({ url: '/', headers: { traceparent: `${PARENT}0` } })
  t.same(bodies(await exported()), ['notice', 'warn'])
  t.equal(lines.length, 5)
})

test('each level option must be one of the logger\'s levels', async (t) => {
  for (const [option, logger] of [['level', {}], ['unsampledLevel', {}], ['buffer', {}], ['level', { customLevels: { notice: 35 }, useOnlyCustomLevels: true, level: 'notice' }]]) {
    const app = Fastify({ logger: { stream: { write () {} }, ...logger } })
    const name = option === 'level' && logger.level !== undefined ? 'info' : 'warning'
    await t.rejects(app.register(lightTrace, { logs: { export: true, [option]: name } }).ready(), { code: 'LT_ERR_OPTION_INVALID', message: new RegExp(`\`logs.${option}\` must be one of the logger's levels: .*(?:fatal|notice), received '${name}'`) })
    await app.close().catch(() => {})
  }
  const { lines } = await loggingApp(t, { logger: { customLevels: { notice: 35 } }, logs: { export: true, level: 'notice', unsampledLevel: 'silent', buffer: 'trace' } })
  t.notMatch(lines.join(), 'LT_WARN')
})

test('levels that count down, like syslog\'s, work', async (t) => {
  const customLevels = { emerg: 0, alert: 1, crit: 2, error: 3, warning: 4, notice: 5, info: 6, debug: 7, odd: 8 }
  const { app, lines, exported } = await loggingApp(t, {
    logger: { customLevels, useOnlyCustomLevels: true, levelComparison: 'DESC', level: 'info' },
    logs: { export: true, level: 'notice', buffer: 'debug' },
    fastify: { logController: new (Fastify.LogController ?? Object)({ disableRequestLogging: true }), disableRequestLogging: true },
    routes: (app) => app.get('/', async ({ log }, reply) => {
      for (const level of ['emerg', 'warning', 'notice', 'info', 'debug']) log[level](`request ${level}`)
      return reply.code(500).send('no')
    })
  })
  for (const level of Object.keys(customLevels)) app.log[level](level)
  await app.inject({ url: '/', headers: { traceparent: `${PARENT}0` } })
  const records = await exported()
  t.same(records.filter(({ body }) => !body.includes(' ')).map(({ severityText, severityNumber }) => [severityText, severityNumber]), [
    ['emerg', 21], ['alert', 19], ['crit', 18], ['error', 17], ['warning', 13], ['notice', 10]
  ])
  t.same(records.filter(({ body }) => body.startsWith('request')).map(({ body }) => body), ['request emerg', 'request warning', 'request debug'])
  t.same(lines.map((line) => JSON.parse(line).msg).filter((msg) => msg.startsWith('request ')), ['emerg', 'warning', 'notice', 'info', 'debug'].map((level) => `request ${level}`))
})

test('a flood of one level is limited and counted, without affecting other levels', async (t) => {
  const { app, exported } = await loggingApp(t, { logs: { export: true, maxPerSecond: 10 } })
  for (let i = 0; i < 1000; i++) app.log.info(`line ${i}`)
  app.log.error('an error')
  const records = await exported()
  const { records: counts } = app.lightTrace.stats().logs
  const lines = records.filter(({ body }) => body.startsWith('line'))
  t.ok(lines.length >= 10 && lines.length <= 20, `${lines.length} lines`) // a second may end in between
  t.equal(counts.dropped.rate, 1000 - lines.length)
  t.ok(isAccounted(counts))
  t.ok(records.some(({ body }) => body === 'an error'))
  t.ok(records.some(({ attributes }) => attributes.code === 'LT_WARN_LOSS'), 'it is logged')
})

test('lines are printed unchanged, byte by byte, with metadata if the destination asks for it', async (t) => {
  const printed = { plain: [], wanting: [] }
  const wanting = { [Symbol.for('pino.metadata')]: true, write (line) { printed.wanting.push([line, this.lastLevel, this.lastMsg, this.lastLogger.bindings().part]) } }
  const stream = pino.multistream([{ level: 'trace', stream: { write: (line) => printed.plain.push(line) } }, { level: 'warn', stream: wanting }])
  const { app, exported } = await loggingApp(t, { logger: { stream, timestamp: () => ',"time":"now"' } })
  printed.plain.length = 0
  const child = app.log.child({ part: 'cart' })
  child.info({ a: 1 }, 'one')
  child.warn('two')
  t.match(printed.plain, [/^\{"level":30,"time":"now",.*"part":"cart","a":1,"msg":"one"\}\n$/, /"msg":"two"\}\n$/])
  t.same(printed.wanting, [[printed.plain[1], 40, 'two', 'cart']])
  t.match(bodies(await exported()), ['one', 'two'])
})

test('other members of the destination are unchanged, and the next application can use it again', async (t) => {
  const destination = pino.destination({ dest: devNull, sync: false })
  const logger = pino(destination)
  const { app, exported } = await loggingApp(t, { fastify: { loggerInstance: logger, logger: undefined } })
  await new Promise((resolve, reject) => app.log.flush((error) => error ? reject(error) : resolve()))
  t.equal(app.log[pino.symbols.streamSym].fd, destination.fd)
  logger.info('by the logger that was given')
  app.log.info('by the application')
  t.match(bodies(await exported()), ['by the logger that was given', 'by the application'])
  await app.close()
  logger.info('the application is gone')
  t.same({ ...app.lightTrace.stats().logs.records.dropped }, { after_shutdown: 1 }, 'until then losses are counted')
  const next = await loggingApp(t, { fastify: { loggerInstance: logger, logger: undefined } })
  logger.info('by the next one')
  t.match(bodies(await next.exported()), ['by the next one'])
  t.equal(Object.getPrototypeOf(logger[pino.symbols.streamSym]).fd, destination.fd)
  t.same({ ...app.lightTrace.stats().logs.records.dropped }, { after_shutdown: 1 })
})

test('two applications with one logger export a line once', async (t) => {
  const sink = await startMetricSink(t)
  const logger = pino({ write () {} })
  const { app } = await loggingApp(t, { sink, fastify: { loggerInstance: logger, logger: undefined } })
  const second = Fastify({ loggerInstance: logger })
  t.teardown(() => second.close())
  await second.register(lightTrace, { exporter: { url: sink.url }, registerGlobals: false, logs: { export: true } })
  await second.ready()
  logger.info('once')
  await Promise.all([app.lightTrace.flush(), second.lightTrace.flush()])
  t.equal(sink.records.filter(({ body }) => body === 'once').length, 1)
})

test('when one of several applications with one logger closes, another open one exports the lines', async (t) => {
  const sink = await startMetricSink(t)
  const logger = pino({ write () {} })
  const [first, second, third] = await Promise.all(['first', 'second', 'third'].map(async (serviceName) => {
    const app = Fastify({ loggerInstance: logger })
    t.teardown(() => app.close())
    await app.register(lightTrace, { exporter: { url: sink.url }, registerGlobals: false, serviceName, logs: { export: true } })
    await app.ready()
    return app
  }))
  await second.close()
  await first.close()
  logger.info('by the third')
  await third.lightTrace.flush()
  t.equal(sink.records.filter(({ body }) => body === 'by the third').length, 1)
  await third.close()
  logger.info('none is open')
})

test('if a start fails before any span, close and flush deliver its lines', async (t) => {
  const sink = await startMetricSink(t)
  const started = async () => {
    const app = Fastify({ logger: { stream: { write () {} } } })
    t.teardown(() => app.close())
    await app.register(lightTrace, { exporter: { url: sink.url }, registerGlobals: false, logs: { export: true } })
    app.log.info('about to fail')
    app.register(async () => { throw new Error('no database') })
    await t.rejects(app.ready(), /no database/)
    app.log.error('start failed')
    return app
  }
  const closed = await started()
  await closed.close()
  t.match(sink.records.map(({ body }) => body), ['about to fail', 'start failed'])
  const flushed = await started()
  await flushed.lightTrace.flush()
  t.equal(sink.records.length, 4)
  t.match(flushed.lightTrace.stats().logs.records, { delivered: 2, dropped: {} })
})

test('a registration in code takes over the earlier lines from the preload', async (t) => {
  const sink = await startMetricSink(t)
  const app = Fastify({ logger: { stream: { write () {} } } })
  t.teardown(() => app.close())
  await app.register(lightTrace, { [Symbol.for('light-trace.automatic')]: true, registerGlobals: false, exporter: 'none', logs: { export: true } })
  app.log.info('before the code registers')
  await app.register(lightTrace, { exporter: { url: sink.url }, registerGlobals: false, logs: { export: true } })
  await app.ready()
  await app.lightTrace.flush()
  t.match(sink.records.map(({ body }) => body), ['before the code registers'])
})

test('without a pino logger, one warning is logged and nothing else happens', async (t) => {
  const said = []
  const own = Object.fromEntries(['fatal', 'error', 'warn', 'info', 'debug', 'trace'].map((level) => [level, (...args) => { if (level === 'warn') said.push(args[0].code) }]))
  own.child = () => own
  own.level = 'info'
  const { app } = await loggingApp(t, { fastify: { loggerInstance: own, logger: undefined } })
  app.log.info('x')
  t.same(said, ['LT_WARN_LOGGER'])
  t.equal(app.lightTrace.stats().logs.records.accepted, 0)
})

test('a logger that is switched off is not changed', async (t) => {
  const sink = await startMetricSink(t)
  const app = Fastify({ logger: false })
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: { url: sink.url }, registerGlobals: false, logs: { export: true, buffer: 'debug' } })
  app.get('/', async ({ log }) => {
    log.error('nobody prints it')
    return 'ok'
  })
  t.equal((await app.inject('/')).body, 'ok')
  await app.lightTrace.flush()
  t.same(sink.records, [])
  t.match(app.lightTrace.stats(), { spans: { delivered: 1 }, logs: { records: { accepted: 0 } } })
})

test('with a childLoggerFactory of the application, bindings are attributes, its level applies, and each line has its request', async (t) => {
  const { app, lines, exported } = await loggingApp(t, {
    routes (app) {
      app.setChildLoggerFactory((logger, bindings, options, { headers: { tenant } }) => logger.child({ ...bindings, tenant }, { ...options, level: tenant === 'quiet' ? 'error' : 'info' }))
      app.get('/', async ({ log, trace }) => {
        log.warn(trace.traceId)
        return 'ok'
      })
    }
  })
  for (const tenant of ['a', 'b', 'quiet']) await app.inject({ url: '/', headers: { tenant } })
  const records = (await exported()).filter(({ severityText }) => severityText === 'warn')
  t.same(records.map(({ attributes }) => attributes.tenant), ['a', 'b'])
  for (const { body, traceId } of records) t.equal(traceId, body)
  t.notMatch(lines.join(), 'quiet')
})

test('targets of pino.transport still get the lines in their thread', async (t) => {
  const file = join(t.testdir(), 'lines')
  const transport = pino.transport({ targets: [{ target: 'pino/file', options: { destination: file } }] })
  const { app, exported } = await loggingApp(t, { fastify: { loggerInstance: pino(transport), logger: undefined } })
  for (let i = 0; i < 100; i++) app.log.info({ i }, 'said')
  const records = await exported()
  t.same(records.map(({ attributes }) => attributes.i), Array.from({ length: 100 }, (_, i) => i))
  await app.close()
  transport.end()
  await once(transport, 'close')
  t.same(readFileSync(file, 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line).i), records.map(({ attributes }) => attributes.i))
})

test('a collector without /v1/logs is logged once and rarely retried, and spans continue', async (t) => {
  const sink = await startMetricSink(t)
  sink.answer = (path) => ({ status: path.endsWith('/logs') ? 404 : 200 })
  const { app, lines, exported } = await loggingApp(t, { sink, routes: (app) => app.get('/', async () => 'ok') })
  for (let i = 0; i < 5; i++) {
    await app.inject('/')
    await exported()
  }
  t.equal(sink.requests.filter(({ path }) => path.endsWith('/logs')).length, 1)
  t.equal(sink.requests.flatMap(({ spans = [] }) => spans).length, 5)
  t.equal(lines.filter((line) => line.includes('LT_WARN_LOGS_ENDPOINT')).length, 1)
  const { records } = app.lightTrace.stats().logs
  t.equal(records.dropped.non_retryable, records.accepted)
  t.ok(isAccounted(records))
})

test('in an outage lines wait and arrive, and are dropped before spans if memory is short', async (t) => {
  const sink = await startMetricSink(t)
  sink.answer = () => ({ status: 503 })
  const { app, exported } = await loggingApp(t, {
    sink, logs: { export: true, maxPerSecond: 1e6 }, trace: { buffer: { maxBytes: 1024 * 1024 } }, routes: (app) => app.get('/', async () => 'ok')
  })
  for (let i = 0; i < 100; i++) await app.inject('/')
  for (let i = 0; i < 20_000; i++) {
    app.log.info({ i }, 'x'.repeat(200))
    if (i % 1000 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  for (let i = 0; i < 100; i++) await app.inject('/')
  const during = app.lightTrace.stats()
  t.ok(during.buffer.bytes <= 1024 * 1024, `${during.buffer.bytes} bytes`)
  t.ok(during.logs.records.dropped.queue_full > 0)
  t.ok(isAccounted(during.logs.records))
  t.same(during.spans.dropped, {})
  sink.answer = () => ({ status: 200 })
  await exported()
  await exported()
  await app.close()
  const { spans, logs: { records } } = app.lightTrace.stats()
  t.equal(spans.delivered, 200)
  t.equal(records.delivered, sink.records.length)
  t.ok(isAccounted(records))
  const numbers = sink.records.map(({ attributes }) => attributes.i).filter((i) => i !== undefined)
  t.equal(numbers.at(-1), 19_999, 'the newest are there')
  t.same(numbers, numbers.toSorted((a, b) => a - b))
})

test('close delivers the last lines, on the connection of the spans', async (t) => {
  const { app, sink } = await loggingApp(t, { routes: (app) => app.get('/', async () => 'ok') })
  await app.inject('/')
  app.log.warn('the last one')
  await app.close()
  t.ok(bodies(sink.records).includes('the last one'))
  t.equal(sink.connections, 1)
})

test('lines from before the application is ready are exported', async (t) => {
  const sink = await startMetricSink(t)
  const app = Fastify({ logger: { stream: { write () {} } } })
  t.teardown(() => app.close())
  app.register(lightTrace, { exporter: { url: sink.url }, registerGlobals: false, logs: { export: true } })
  await app.after()
  app.log.info('early')
  await app.ready()
  await app.lightTrace.flush()
  t.match(bodies(sink.records), ['early'])
})

test('the environment can switch it on and set another endpoint', async (t) => {
  const sink = await startMetricSink(t)
  const { code, said } = await runInChild(t, async ({ Fastify, lightTrace, say }) => {
    const app = Fastify({ logger: { stream: { write () {} } } })
    await app.register(lightTrace)
    await app.ready()
    app.log.info({ long: 'x'.repeat(50), second: 1 }, 'said')
    await app.lightTrace.flush()
    say(app.lightTrace.stats().logs.records)
    await app.close()
  }, {
    env: {
      OTEL_LOGS_EXPORTER: 'otlp',
      OTEL_TRACES_EXPORTER: 'none',
      OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `${sink.origin}/own/v1/logs`,
      OTEL_EXPORTER_OTLP_LOGS_HEADERS: 'x-key=7',
      OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT: '1',
      OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT: '20'
    }
  }).exit
  t.equal(code, 0)
  t.match(said, [{ accepted: 1, delivered: 1 }])
  t.match(sink.requests, [{ path: '/own/v1/logs', headers: { 'x-key': '7' } }])
  t.match(sink.records, [{ body: 'said', attributes: { long: 'x'.repeat(20) }, droppedAttributesCount: 1 }])
})

test('otlp/stdout writes OTLP JSON next to the lines', async (t) => {
  const source = `
    const app = require('fastify')({ logger: { stream: { write () {} } } })
    app.register(require(${JSON.stringify(require.resolve('../..'))}))
    app.ready().then(() => { app.log.info({ nested: { a: [1, 'b'] } }, 'said'); return app.close() })`
  const output = execFileSync(process.execPath, ['-e', source], { env: { PATH: process.env.PATH, OTEL_LOGS_EXPORTER: 'otlp/stdout', OTEL_TRACES_EXPORTER: 'none' }, cwd: __dirname, encoding: 'utf8' })
  const [{ resourceLogs: [{ scopeLogs: [{ scope, logRecords: [record] }] }] }] = output.trim().split('\n').map((line) => JSON.parse(line))
  t.equal(scope.name, 'pino')
  t.match(record, { severityNumber: 9, severityText: 'info', body: { stringValue: 'said' }, timeUnixNano: /^\d{19}$/ })
  t.same(record.attributes, [{ key: 'nested', value: { kvlistValue: { values: [{ key: 'a', value: { arrayValue: { values: [{ intValue: '1' }, { stringValue: 'b' }] } } }] } } }])
})

test('console writes a line of text for each record', async (t) => {
  const source = `
    const app = require('fastify')({ logger: { stream: { write () {} } } })
    app.register(require(${JSON.stringify(require.resolve('../..'))}))
    app.get('/', async ({ log }) => { log.warn({ order: 7, err: new TypeError('no'), text: 'a\\u2028b' }, 'not\\nplaced') })
    app.inject('/').then(() => app.close())`
  const output = execFileSync(process.execPath, ['-e', source], { env: { PATH: process.env.PATH, OTEL_LOGS_EXPORTER: 'console', OTEL_TRACES_EXPORTER: 'none' }, cwd: __dirname, encoding: 'utf8' })
  const lines = output.trim().split('\n')
  t.equal(lines.length, 3)
  t.match(lines[1], /^LOG warn not placed reqId="req-1" order=7 exception\.type="TypeError" exception\.message="no" text="a b" trace_id=[0-9a-f]{32} span_id=[0-9a-f]{16}$/)
})

test('light-trace/testing collects records', { skip: without('testing') }, async (t) => {
  const before = Date.now()
  const collector = testing.createCollector()
  const app = Fastify({ logger: { stream: { write () {} } } })
  t.teardown(() => app.close())
  await app.register(lightTrace, { spanProcessors: [collector], registerGlobals: false, logs: { export: true } })
  app.get('/', async ({ log }) => {
    log.warn({ order: 7, err: new Error('no') }, 'not placed')
    return 'ok'
  })
  await app.inject('/')
  const [span] = await collector.spans()
  const record = (await collector.logs()).find(({ body }) => body === 'not placed')
  t.match(record, { severityNumber: 13, severityText: 'warn', attributes: { order: 7, 'exception.type': 'Error', 'exception.message': 'no' }, traceId: span.traceId, spanId: span.spanId })
  t.ok(record.time >= before - 1 && record.time <= Date.now() + 1)
  collector.reset()
  t.same(await collector.logs(), [])
})

test('invalid options throw', async (t) => {
  for (const [logs, message] of [
    [{ export: 'kafka' }, /`logs.export` must be true, false, 'otlp', 'otlp\/stdout', 'console', 'none' or an object with a url/],
    [{ export: true, level: 5 }, /`logs.level` must be the name of one of the logger's levels/],
    [{ ids: 'trace' }, /`logs.ids` must be true or false/],
    [{ buffer: true }, /`logs.buffer` must be the name of one of the logger's levels, or false, received true/],
    [{ exports: true }, /did you mean `logs.export`/],
    [{ export: true, maxPerSecond: -1 }, /`logs.maxPerSecond` must be/],
    ['on', /`logs` must be true, false or an object/]
  ]) {
    const app = Fastify()
    await t.rejects(app.register(lightTrace, { logs }).ready(), message)
  }
})

for (const [value, records, events] of [[undefined, 0, 1], ['logs', 1, 0], ['logs/dup', 1, 1]]) {
  test(`exceptions of spans are exported with OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN=${value}`, async (t) => {
    const sink = await startMetricSink(t)
    const { code } = await runInChild(t, async ({ Fastify, lightTrace }) => {
      const app = Fastify({ logger: { stream: { write () {} } } })
      await app.register(lightTrace)
      app.get('/', async () => { throw Object.assign(new RangeError('too far'), { code: 'E_FAR' }) })
      await app.inject('/')
      await app.lightTrace.flush()
      await app.close()
    }, { env: { OTEL_EXPORTER_OTLP_ENDPOINT: sink.origin, ...value !== undefined && { OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN: value } } }).exit
    t.equal(code, 0)
    const [span] = sink.requests.flatMap(({ spans = [] }) => spans)
    t.equal(span.events.length, events)
    t.equal(span.attributes['error.type'], 'E_FAR')
    t.equal(sink.records.length, records, 'no lines')
    for (const record of sink.records) {
      t.match(record, {
        eventName: 'exception',
        scope: 'light-trace',
        severityNumber: 17,
        severityText: 'ERROR',
        body: undefined,
        traceId: span.traceId,
        spanId: span.spanId,
        attributes: { 'exception.type': 'E_FAR', 'exception.message': 'too far', 'exception.stacktrace': /^RangeError: too far\n/ }
      })
    }
  })
}

for (const [what, options, url, count] of [ // a second may end in between
  ['that are kept', { sampler: 0, keep: { errors: true } }, '/?status=500', 5],
  ['that are not sampled', { sampler: 0 }, '/?status=500', 0],
  ['that `keep` does not keep', { sampler: 0, keep: { errors: true } }, '/?status=404', 0],
  ['that are sampled, within the rate', { sampler: 1, logs: { maxPerSecond: 2 } }, '/?status=404', 2],
  ['with many exceptions, within the limit of events', { sampler: 1, limits: { events: 3 } }, '/?status=500&times=10', 15]
]) {
  test(`exceptions as records are exported with their spans: of requests ${what}`, { skip: what === 'that are kept' && without('keep') }, async (t) => {
    const sink = await startMetricSink(t)
    const { code, said } = await runInChild(t, async ({ Fastify, lightTrace, say }, options, url) => {
      const app = Fastify()
      await app.register(lightTrace, options)
      app.get('/', async ({ query: { status, times = 1 }, trace }, reply) => {
        for (let i = 1; i < times; i++) trace.span.recordException(new Error(`${i}`))
        throw Object.assign(new Error('no'), { statusCode: Number(status) })
      })
      for (let i = 0; i < 5; i++) await app.inject(url)
      await app.lightTrace.flush()
      say(app.lightTrace.stats().logs.records)
      await app.close()
    }, { args: [options, url], env: { OTEL_EXPORTER_OTLP_ENDPOINT: sink.origin, OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN: 'logs' } }).exit
    t.equal(code, 0)
    const isOneSecondMore = count === 2 && sink.records.length === 4
    if (!isOneSecondMore) t.equal(sink.records.length, count)
    t.ok(isAccounted(said[0]))
    const spans = sink.requests.flatMap(({ spans = [] }) => spans)
    for (const { traceId } of sink.records) t.ok(spans.some((span) => span.traceId === traceId))
    for (const { events } of spans) t.same(events, [])
  })
}

test('light-trace/register exports lines, and a registration in code replaces it', async (t) => {
  for (const isInCode of [false, true]) {
    const sink = await startMetricSink(t)
    const { code, stderr } = await runInChild(t, async ({ Fastify, lightTrace }, isInCode) => {
      const app = Fastify({ logger: { stream: { write () {} } } })
      if (isInCode) await app.register(lightTrace, { logs: { export: true, level: 'warn' } })
      await app.ready()
      app.log.info('info')
      app.log.warn('warn')
      await app.close()
    }, { args: [isInCode], nodeArgs: ['--require', require.resolve('../../register')], env: { OTEL_LOGS_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_ENDPOINT: sink.origin } }).exit
    t.equal(code, 0)
    t.notMatch(stderr, 'LT_WARN')
    t.same(bodies(sink.records).filter((body) => ['info', 'warn'].includes(body)), isInCode ? ['warn'] : ['info', 'warn'])
  }
})
