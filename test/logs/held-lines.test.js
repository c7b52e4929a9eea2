'use strict'

// `logs: { buffer: 'debug' }`: debug lines of requests that fail, and of no other requests.
// Feature: logs

const { once } = require('node:events')
const { connect } = require('node:net')
const { Readable } = require('node:stream')
const { test } = require('tap')
const { setImmediate: turn } = require('node:timers/promises')
const { loggingApp, isAccounted } = require('../support/logging-app')
const { runInChild } = require('../support/child')
const { without } = require('../support/features')

const SLOW_MS = 300 // so long that /ok is not slow on a busy machine
const said = (lines) => lines.map((line) => JSON.parse(line)).filter(({ msg }) => /^(?:ok|bad|slow|late|own|out)/.test(msg)).map(({ msg, buffered = false }) => [msg, buffered])

function routes (app) {
  app.get('/ok', async ({ log }) => {
    log.debug('ok 1')
    log.info('ok 2')
    return 'ok'
  })
  app.get('/bad', async ({ log, trace }) => {
    log.debug({ step: 1 }, 'bad 1')
    await trace.withSpan('step', async () => log.child({ part: 'cart' }).trace('bad unseen'))
    log.info('bad 2')
    for (const at = Date.now(); Date.now() < at + 2;) await turn() // so that the previous lines have an earlier time
    log.child({ part: 'cart' }).debug('bad 3')
    throw new Error('no')
  })
  app.decorate('isOver', null)
  app.get('/slow', async ({ log }, { raw }) => {
    log.debug('slow 1')
    await new Promise((resolve) => setTimeout(resolve, SLOW_MS + 10))
    app.isOver = once(raw, 'finish').then(turn).then(() => log.debug('late'))
    return 'ok'
  })
  app.get('/own', { logLevel: 'debug' }, async ({ log }) => {
    log.debug('own 1')
    return 'ok'
  })
}

for (const isExported of [true, false]) {
  test(`only failed requests have their held lines, ${isExported ? 'also over OTLP' : 'printed only'}`, async (t) => {
    const { app, lines, exported } = await loggingApp(t, { logs: { export: isExported, buffer: 'debug' }, routes })
    app.log.debug('out of requests')
    for (const url of ['/ok', '/bad', '/slow', '/own']) await app.inject(url)
    t.same(said(lines), [['ok 2', false], ['bad 2', false], ['bad 1', true], ['bad 3', true], ['own 1', false]])
    const records = (await exported()).filter(({ body }) => /^bad [13]/.test(body))
    t.equal(records.length, isExported ? 2 : 0)
    if (!isExported) return t.equal(app.lightTrace.stats().logs.records.accepted, 0)
    for (const { attributes, severityText, time, observedTime, traceId } of records) {
      t.equal(attributes.buffered, true)
      t.equal(severityText, 'debug')
      t.equal(traceId.length, 32)
      t.ok(observedTime >= time)
    }
    t.ok(records[0].observedTime > records[0].time, 'and the time when the code wrote it')
    t.ok(isAccounted(app.lightTrace.stats().logs.records))
  })
}

test('held lines of slow requests, and their later lines, are printed, even without `keep`', async (t) => {
  const { app, lines } = await loggingApp(t, { logs: { buffer: 'debug' }, trace: { slow: { afterMs: SLOW_MS } }, routes })
  for (const url of ['/ok', '/slow']) await app.inject(url)
  await app.isOver
  t.same(said(lines), [['ok 2', false], ['slow 1', true], ['late', true]])
})

test('a route can have its own slow limit, and without any limit no request is slow', async (t) => {
  const { app, lines } = await loggingApp(t, {
    logs: { buffer: 'debug' },
    trace: { slow: false, sampler: 'always_off' },
    routes (app) {
      const says = async ({ log, url }) => log.debug(`slow ${url}`)
      app.get('/', says)
      app.route({ method: ['GET', 'HEAD', 'POST'], url: '/own', config: { trace: { slow: { afterMs: 0 } } }, handler: says })
    }
  })
  await app.inject('/')
  for (const method of ['GET', 'HEAD', 'POST']) await app.inject({ method, url: '/own' })
  t.same(said(lines), Array(3).fill(['slow /own', true]))
})

test('a request whose span has status ERROR from the application prints its lines', async (t) => {
  const { app, lines } = await loggingApp(t, {
    logs: { buffer: 'debug' },
    routes: (app) => app.get('/:code', async ({ log, trace, params }) => {
      log.debug(`own ${params.code}`)
      trace.span.setStatus({ code: Number(params.code) })
      return 'ok'
    })
  })
  for (const code of [0, 1, 2]) await app.inject(`/${code}`)
  t.same(said(lines), [['own 2', true]])
})

test('unsampled requests print their lines, too', async (t) => {
  const { app, exported } = await loggingApp(t, { logs: { export: true, buffer: 'debug' }, trace: { sampler: 0 }, routes })
  for (const url of ['/ok', '/bad']) await app.inject(url)
  t.same((await exported()).map(({ body }) => body).filter((body) => /^(?:ok|bad)/.test(body)), ['bad 1', 'bad 3'])
})

test('a request holds its last sixty-four lines, and at most 64 KiB', async (t) => {
  const { app, lines } = await loggingApp(t, {
    logs: { buffer: 'debug' },
    routes: (app) => app.get('/', async ({ log, query: { length } }) => {
      for (let i = 0; i < 100; i++) log.debug(`bad ${i} ${'x'.repeat(length)}`)
      throw new Error('no')
    })
  })
  await app.inject('/?length=1')
  const short = said(lines).map(([msg]) => Number(msg.split(' ')[1]))
  t.same(short, Array.from({ length: 64 }, (_, i) => 36 + i))
  lines.length = 0
  await app.inject('/?length=10000')
  const long = said(lines).map(([msg]) => Number(msg.split(' ')[1]))
  t.same(long, [94, 95, 96, 97, 98, 99])
  t.equal(app.lightTrace.stats().logs.forgotten, 36 + 94)
})

test('the logger\'s level is the application\'s, which may change it', async (t) => {
  const { app, lines } = await loggingApp(t, { logs: { buffer: 'debug' }, routes })
  app.log.level = 'warn'
  await app.inject('/bad')
  t.same(said(lines), [['bad 1', true], ['bad 2', true], ['bad 3', true]])
  t.equal(app.log.level, 'warn')
  lines.length = 0
  app.log.level = 'trace'
  await app.inject('/ok')
  t.same(said(lines), [['ok 1', false], ['ok 2', false]])
})

test('requests whose client left print their lines if `keep` includes them, even if they waited behind another on their connection', { skip: without('keep') }, async (t) => {
  for (const aborted of [false, true]) {
    let opened = 0
    let allOpen
    const areOpen = new Promise((resolve) => { allOpen = resolve })
    const { app, lines } = await loggingApp(t, {
      logs: { buffer: 'debug' },
      trace: { keep: { errors: true, aborted }, limits: { sampledPerSecond: 0 } },
      routes: (app) => app.get('/:n', ({ log, params: { n } }) => {
        log.debug(`bad ${n}`)
        if (++opened === 3) allOpen()
        return new Promise(() => {})
      })
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    const connections = []
    app.server.on('connection', (connection) => connections.push(connection))
    const socket = connect(app.server.address().port, '127.0.0.1')
    socket.write([1, 2, 3].map((n) => `GET /${n} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''))
    await areOpen
    const [connection] = connections
    socket.destroy()
    await once(connection, 'close')
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    t.same(said(lines).sort(), aborted ? [1, 2, 3].map((n) => [`bad ${n}`, true]) : [])
  }
})

test('a response that the application breaks off after its head has a span with ERROR', async (t) => {
  const { app, lines, sink } = await loggingApp(t, {
    logs: { buffer: 'debug' },
    routes (app) {
      app.get('/stream', async ({ log }, reply) => {
        log.debug('bad 1')
        return reply.send(Readable.from((async function * () {
          yield 'head'
          log.debug('bad 2')
          throw new Error('late')
        })()))
      })
      app.get('/destroy', async ({ log, raw }) => {
        log.debug('bad 3')
        raw.destroy()
      })
    }
  })
  const address = await app.listen({ port: 0, host: '127.0.0.1' })
  for (const path of ['/stream', '/destroy']) await t.rejects(fetch(address + path).then((response) => response.text()))
  await app.close()
  t.same(sink.requests.flatMap(({ spans = [] }) => spans).map(({ status }) => status.code), ['ERROR', 'ERROR'])
  t.same(said(lines), [['bad 1', true], ['bad 2', true], ['bad 3', true]])
})

test('everything that bare Fastify prints is printed, with levels that the application sets', async (t) => {
  const routes = (app) => {
    app.addHook('onRequest', async (request) => {
      if (request.query.level !== undefined) request.log.level = request.query.level
    })
    app.get('/', async ({ log, query }) => {
      for (const level of ['trace', 'debug', 'info', 'warn']) {
        log[level](`own ${level}`)
        log.child({}, { level: query.child }).child({ a: 1 })[level](`own child ${level}`)
      }
      t.equal(log.level, query.level ?? 'info')
      return 'ok'
    })
  }
  for (const level of [undefined, 'trace', 'debug', 'info', 'warn']) {
    for (const child of [undefined, 'trace', 'debug', 'info', 'warn']) {
      const printed = []
      for (const buffer of [undefined, 'debug']) {
        const { app, lines } = await loggingApp(t, { logs: { export: false, buffer }, routes })
        await app.inject({ url: '/', query: JSON.parse(JSON.stringify({ level, child })) })
        printed.push(said(lines))
      }
      t.same(printed[1], printed[0], `${level}, ${child}`)
    }
  }
})

test('a logger\'s level may be lowered during a request, and its listeners are called', async (t) => {
  let changes = 0
  const { app, lines } = await loggingApp(t, {
    logs: { buffer: 'debug' },
    routes: (app) => app.get('/', async ({ log }) => {
      log.debug('ok held')
      app.log.level = 'debug'
      log.debug('ok printed')
      app.log.level = 'info'
      t.equal(log.isLevelEnabled('debug'), true)
      t.equal(log.isLevelEnabled('trace'), false)
      t.equal(log.child({}, { level: 'warn' }).isLevelEnabled('debug'), false)
      return 'ok'
    })
  })
  app.log.on('level-change', () => { changes++ })
  await app.inject('/')
  t.same(said(lines), [['ok printed', false]])
  t.equal(changes, 3) // by the test, not by light-trace
})

test('if memory is short, the largest holder loses lines first', async (t) => {
  const open = []
  const { app, lines } = await loggingApp(t, {
    logs: { buffer: 'debug' },
    routes (app) {
      app.get('/open', ({ log }) => {
        for (let i = 0; i < 60; i++) log.debug(`ok ${'x'.repeat(900)}`)
        return new Promise((resolve) => open.push(resolve))
      })
      app.get('/bad', async ({ log }) => {
        for (let i = 0; i < 20; i++) log.debug(`bad ${i}`)
        throw new Error('no')
      })
    }
  })
  const answers = Array.from({ length: 200 }, () => app.inject('/open'))
  while (open.length < 200) await new Promise((resolve) => setImmediate(resolve))
  for (let i = 0; i < 10; i++) await app.inject('/bad')
  t.equal(said(lines).length, 200)
  t.ok(app.lightTrace.stats().logs.forgotten > 0)
  for (const resolve of open) resolve('ok')
  await Promise.all(answers)
  t.equal(said(lines).length, 200)
})

test('lines of requests that a crash ends are printed, and not those of a process that ends normally', async (t) => {
  for (const end of ['throw', 'exit 1', 'exit 0']) {
    const { code, stderr } = await runInChild(t, async ({ Fastify, lightTrace }, end) => {
      const app = Fastify({ logger: { stream: { write: (line) => require('node:fs').writeSync(2, line) } } })
      await app.register(lightTrace, { exporter: 'none', logs: { buffer: 'debug' } })
      app.get('/', ({ log }) => {
        log.debug('the last words')
        if (end === 'throw') setImmediate(() => { throw new Error('crash') })
        else setImmediate(() => process.exit(Number(end.at(-1))))
        return new Promise(() => {})
      })
      await app.inject('/')
    }, { args: [end] }).exit
    t.equal(code, end === 'exit 0' ? 0 : 1)
    t.equal(stderr.includes('the last words'), end !== 'exit 0', end)
  }
})

test('children with their own level, loggers that requests share, and silent loggers keep their behaviour', async (t) => {
  const { app, lines } = await loggingApp(t, {
    logs: { buffer: 'trace' },
    routes (app) {
      app.get('/', async ({ log }) => {
        log.child({}, { level: 'debug' }).debug('own 1')
        app.log.child({}, { level: 'debug' }).debug('own 2')
        app.log.debug('out of the request\'s logger')
        throw new Error('no')
      })
      app.get('/silent', { logLevel: 'silent' }, async ({ log }) => {
        log.debug('bad silent')
        throw new Error('no')
      })
    }
  })
  for (const url of ['/', '/silent']) await app.inject(url)
  t.same(said(lines), [['own 1', false], ['own 2', false]])

  const shared = await loggingApp(t, {
    logs: { buffer: 'debug' },
    routes (app) {
      app.setChildLoggerFactory((logger) => logger)
      routes(app)
    }
  })
  await shared.app.inject('/bad')
  t.same(said(shared.lines), [['bad 2', false]])
})

test('a destination that throws when held lines are printed does no harm', async (t) => {
  let isBroken = false
  const stream = { write () { if (isBroken) throw new Error('disk full') } }
  const { app } = await loggingApp(t, {
    logger: { stream },
    logs: { buffer: 'debug' },
    routes: (app) => app.get('/', async ({ log }, reply) => {
      log.debug('bad 1')
      reply.raw.once('finish', () => { isBroken = true })
      return reply.code(500).send('no')
    }),
    fastify: { disableRequestLogging: true }
  })
  t.equal((await app.inject('/')).statusCode, 500)
  await new Promise((resolve) => setImmediate(resolve))
  isBroken = false
})
