'use strict'

// Feature: log-ids

const { test } = require('tap')
const pino = require('pino')
const { tracedApp } = require('../support/traced-app')
const { without } = require('../support/features')

function linesOf (options = {}) {
  const lines = []
  const stream = { write: (line) => lines.push(JSON.parse(line)) }
  return { lines, stream, logger: { level: 'info', stream, ...options } }
}

const idsOf = ({ trace_id: traceId, span_id: spanId, trace_flags: flags }) => [traceId, spanId, flags]
const NONE = [undefined, undefined, undefined]

const routes = (app) => {
  app.get('/', async (request, reply) => {
    request.log.info('by the request')
    reply.log.info('by the reply')
    request.log.child({ part: 'x' }).info('by a child')
    app.log.info('by the app')
    return request.trace.traceparent
  })
  app.get('/error', async () => { throw new Error('no') })
}

function expected (traceparent) {
  const [, traceId, spanId, flags] = traceparent.split('-')
  return [traceId, spanId, flags]
}

test('the lines of a request have its ids, including Fastify\'s own lines', async (t) => {
  const { lines, logger } = linesOf()
  const { app } = await tracedApp(t, { listen: false, fastify: { logger }, routes })
  const ids = expected((await app.inject('/')).body)
  const at = (message) => lines.find(({ msg }) => msg === message)
  t.same(idsOf(at('incoming request')), NONE, 'it is written before any hook')
  for (const message of ['by the request', 'by the reply', 'by a child', 'request completed']) t.same(idsOf(at(message)), ids, message)
  t.same(idsOf(at('by the app')), NONE)
  t.equal(at('by a child').part, 'x')
  t.equal(at('request completed').reqId, 'req-1')

  await app.inject('/error')
  const error = lines.find(({ err }) => err !== undefined)
  t.match(error, { trace_id: /^[0-9a-f]{32}$/, span_id: /^[0-9a-f]{16}$/, trace_flags: '03', reqId: 'req-2' })
  t.not(error.trace_id, ids[0])
})

test('the application\'s redaction and serializers apply to the ids of each request', async (t) => {
  const { lines, logger } = linesOf({ redact: ['span_id'] })
  const { app } = await tracedApp(t, {
    listen: false,
    fastify: { logger },
    routes (app) {
      routes(app)
      app.get('/short', { logSerializers: { trace_id: (id) => id.slice(0, 8) } }, async (request) => {
        request.log.info('short')
        return request.trace.traceparent
      })
    }
  })
  for (const path of ['/', '/short', '/', '/short', '/']) {
    lines.length = 0
    const [traceId, , flags] = expected((await app.inject(path)).body)
    const own = lines.filter(({ trace_id: id }) => id !== undefined)
    t.ok(own.length >= 2)
    for (const line of own) t.same(idsOf(line), [path === '/' ? traceId : traceId.slice(0, 8), '[Redacted]', flags])
  }
})

test('the ids are added to the text of a logger\'s bindings only as pino would add them', async (t) => {
  const { lines, logger } = linesOf({ serializers: { trace_flags: (flags) => flags === '00' ? 'unsampled' : flags } })
  const { app } = await tracedApp(t, { listen: false, fastify: { logger }, trace: { trustIncoming: true }, routes })
  for (const [sent, seen] of [['01', '01'], ['00', 'unsampled'], ['01', '01']]) {
    lines.length = 0
    await app.inject({ url: '/', headers: { traceparent: `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-${sent}` } })
    const { trace_flags: flags } = lines.find(({ msg }) => msg === 'by the request')
    t.equal(flags, seen)
  }
})

for (const when of ['before the first request', 'after it']) {
  test(`a setBindings of the user's own is called if it was set ${when}`, async (t) => {
    const { lines, logger } = linesOf()
    const { app } = await tracedApp(t, { listen: false, fastify: { logger }, routes })
    if (when === 'after it') await app.inject('/')
    const { setBindings } = app.log
    const seen = []
    app.log.setBindings = function (bindings) {
      seen.push(idsOf(bindings))
      setBindings.call(this, bindings)
    }
    lines.length = 0
    const ids = [expected((await app.inject('/')).body), expected((await app.inject('/')).body)]
    t.same(seen, ids)
    t.same(lines.filter(({ msg }) => msg === 'by the request').map(idsOf), ids)

    delete app.log.setBindings
    lines.length = 0
    const after = expected((await app.inject('/')).body)
    t.same(idsOf(lines.find(({ msg }) => msg === 'by the request')), after)
    t.equal(seen.length, 2)
  })
}

test('lines have every digit of an id', async (t) => {
  const { lines, logger } = linesOf()
  const { app } = await tracedApp(t, { listen: false, fastify: { logger }, trace: { trustIncoming: true }, routes })
  const traceIds = ['0123456789abcdeffedcba9876543210', 'ffffffffffffffffffffffffffffffff', '00000000000000000000000000000001', '80000000000000007fffffff00000000']
  for (const traceId of [...traceIds, ...traceIds]) {
    lines.length = 0
    await app.inject({ url: '/', headers: { traceparent: `00-${traceId}-b7ad6b7169203331-01` } })
    const own = lines.filter(({ reqId, trace_id: id }) => reqId !== undefined && id !== undefined)
    t.ok(own.length >= 3)
    for (const { trace_id: id } of own) t.equal(id, traceId)
  }
})

test('unsampled requests have ids, ignored ones do not', async (t) => {
  const { lines, logger } = linesOf()
  const { app } = await tracedApp(t, {
    listen: false,
    fastify: { logger },
    trace: { sampler: 'always_off', ignore: '/ignored' },
    routes (app) {
      routes(app)
      app.get('/ignored', async (request) => { request.log.info('ignored') })
    }
  })
  const ids = expected((await app.inject('/')).body)
  t.equal(ids[2], '02')
  t.same(idsOf(lines.find(({ msg }) => msg === 'by the request')), ids)
  await app.inject('/ignored')
  t.same(idsOf(lines.find(({ msg }) => msg === 'ignored')), NONE)
})

for (const logs of [false, { ids: false }, { ids: false, buffer: 'debug' }]) {
  test(`logs: ${JSON.stringify(logs)} leaves every line unchanged`, { skip: logs.buffer !== undefined && without('logs') }, async (t) => {
    const { lines, logger } = linesOf()
    const { app } = await tracedApp(t, { listen: false, fastify: { logger }, trace: { logs }, routes })
    await app.inject('/')
    await app.inject('/error')
    t.ok(lines.length > 5)
    for (const line of lines) t.same(idsOf(line), NONE)
  })
}

for (const logs of [true, {}, { ids: true }, { export: false, buffer: false }]) {
  test(`logs: ${JSON.stringify(logs)} adds the ids and exports nothing`, async (t) => {
    const { lines, logger } = linesOf()
    const { app } = await tracedApp(t, { listen: false, fastify: { logger }, trace: { logs }, routes })
    const ids = expected((await app.inject('/')).body)
    t.same(idsOf(lines.find(({ msg }) => msg === 'by the request')), ids)
    t.equal(app.lightTrace.stats().logs, undefined)
  })
}

test('the user\'s own keys are unchanged', async (t) => {
  const { lines, logger } = linesOf({ base: { service: 'shop' }, mixin: () => ({ mixed: 1 }), formatters: { level: (level) => ({ level }) } })
  const { app } = await tracedApp(t, {
    listen: false,
    fastify: { logger },
    routes: (app) => app.get('/', { logLevel: 'debug' }, async (request) => { request.log.debug({ trace_id: 'mine', user: 7 }, 'keys') })
  })
  await app.inject('/')
  t.match(lines.find(({ msg }) => msg === 'keys'), { trace_id: 'mine', user: 7, service: 'shop', mixed: 1, level: 'debug', span_id: /^[0-9a-f]{16}$/ })
})

// A factory may return a logger that others use, too. It must never carry a request's ids.
for (const [how, make] of [
  ['the instance\'s own logger', (shared) => (logger) => logger],
  ['one shared logger', (shared) => () => shared],
  ['a fresh child each time', (shared) => (logger, bindings, options) => logger.child(bindings, options)]
]) {
  for (const place of ['option', 'setChildLoggerFactory', 'route']) {
    test(`a childLoggerFactory (${place}) can return ${how}`, async (t) => {
      const { lines, logger, stream } = linesOf()
      const shared = pino({ level: 'info' }, stream)
      const factory = make(shared)
      const { app } = await tracedApp(t, {
        listen: false,
        fastify: { logger, ...(place === 'option' ? { childLoggerFactory: factory } : {}) },
        before: (app) => { if (place === 'setChildLoggerFactory') app.setChildLoggerFactory(factory) },
        routes: (app) => app.get('/', place === 'route' ? { childLoggerFactory: factory } : {}, async (request, reply) => {
          request.log.info('by the request')
          reply.log.info('by the reply')
          shared.info('shared')
          app.log.info('by the app')
          return request.trace.traceparent
        })
      })
      const first = expected((await app.inject('/')).body)
      const second = expected((await app.inject('/')).body)
      t.not(first[0], second[0])
      const all = (message) => lines.filter(({ msg }) => msg === message).map(idsOf)
      for (const message of ['by the request', 'by the reply', 'request completed']) t.same(all(message), [first, second], message)
      t.same(all('shared'), [NONE, NONE])
      t.same(all('by the app'), [NONE, NONE])
      t.same(all('incoming request'), [NONE, NONE])
    })
  }
}

// The logger is known to belong to the request if its last binding is the request's id, as with Fastify's own factory.
for (const [how, make, isOwn] of [
  ['passes on its arguments', () => (logger, bindings, options) => logger.child(bindings, options), true],
  ['adds bindings behind the id', () => (logger, bindings, options) => logger.child({ ...bindings, tenant: 'a' }, options), false],
  ['makes one logger for all', (made) => (logger, bindings, options) => made[0] ?? logger.child({ tenant: 'a' }, options), false]
]) {
  test(`a childLoggerFactory like Fastify's own that ${how} is called for requests alone, and each line has its request`, async (t) => {
    const { lines, logger } = linesOf()
    const made = []
    const factory = make(made)
    let count = 0
    const { app } = await tracedApp(t, {
      listen: false,
      fastify: { logger },
      before: (app) => app.setChildLoggerFactory(function (logger, bindings, options) {
        count++
        return made[made.push(factory(logger, bindings, options)) - 1]
      }),
      routes (app) {
        routes(app)
        app.get('/own', async ({ log }) => made.includes(log))
      }
    })
    t.equal(count, 0)
    t.equal((await app.inject('/own')).json(), isOwn)
    for (let i = 0; i < 3; i++) {
      const ids = expected((await app.inject('/')).body)
      t.same(idsOf(lines.findLast(({ msg }) => msg === 'by the request')), ids)
    }
    t.equal(count, 4)
  })
}

// A07, F15
test('loggers that are switched off or cannot take ids do no harm', async (t) => {
  const silent = pino({ level: 'silent' })
  const frozen = { level: 'info', child: () => ({ ...frozen }), setBindings () { throw new Error('frozen') } }
  for (const level of ['trace', 'debug', 'info', 'warn', 'error', 'fatal']) frozen[level] = () => {}
  for (const loggerInstance of [silent, frozen]) {
    const { app, collector } = await tracedApp(t, { listen: false, fastify: { loggerInstance }, routes })
    t.equal((await app.inject('/')).statusCode, 200)
    t.equal(await collector.tree(), 'SERVER GET /')
    await app.close()
  }
  t.equal(JSON.stringify(silent.bindings()), '{}')
})

test('without a logger, nothing is set', async (t) => {
  const { app } = await tracedApp(t, { listen: false, routes: (app) => app.get('/', async (request) => ({ same: request.log === app.log, keys: Object.keys(request.log).length })) })
  const before = Object.keys(app.log).length
  const { keys } = (await app.inject('/')).json()
  t.equal(keys, before)
})
