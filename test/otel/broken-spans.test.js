'use strict'

// SDK mode with a provider whose spans throw in every method, as a failing onEnd of a processor can cause. The application notices nothing,
// each span is ended once, and our code calls them only through its one guard.
// Feature: sdk

const diagnosticsChannel = require('node:diagnostics_channel')
const { readdirSync, readFileSync } = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const { test } = require('tap')
const lightTrace = require('../..')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')
const { upstream } = require('../support/upstream')
const { tellingLogger } = require('../support/telling-logger')

const LIB = path.join(__dirname, '../../lib')
const METHODS = ['setAttribute', 'setAttributes', 'addEvent', 'addLink', 'addLinks', 'setStatus', 'updateName', 'recordException', 'end', 'isRecording']

/** A provider whose spans throw in these methods. `calls`: the span's name, the method, and the calling function, for each call. */
function brokenProvider (broken = METHODS) {
  const calls = []
  let count = 0
  const startSpan = (name) => {
    const spanId = (++count).toString(16).padStart(16, '0')
    const span = { spanContext: () => ({ traceId: 'a'.repeat(32), spanId, traceFlags: 1 }) }
    for (const method of METHODS) {
      span[method] = () => {
        const [, , caller] = new Error().stack.split('\n')
        calls.push({ name, method, caller: caller.trim() })
        if (broken.includes(method)) throw new Error(`no ${method}`)
        return method === 'isRecording' ? true : span
      }
    }
    return span
  }
  return { calls, getTracer: () => ({ startSpan }), forceFlush: async () => {}, shutdown: async () => {} }
}

// A wait has a span only if it takes more than a millisecond and more than one turn of the event loop. A timer may fire at the end of a
// turn.
const nextTurn = () => new Promise((resolve) => setTimeout(() => setImmediate(setImmediate, resolve), 5))

// A minimal imitation of pg's client.
class Client {
  host = 'db.internal'
  async query () { return { rows: [1] } }
}

const pg = without('trace-client') ? new Client() : lightTrace.traceClient(new Client())
const kafka = diagnosticsChannel.tracingChannel('plt:kafka:producer:sends')
const pool = diagnosticsChannel.tracingChannel('mssql:pool:acquire')
const redis = diagnosticsChannel.tracingChannel('node-redis:command')

for (const broken of [...METHODS.map((method) => [method]), METHODS, METHODS.filter((method) => method !== 'isRecording')]) {
  test(`spans that throw in ${broken.length === 1 ? broken[0] : `${broken.length} methods`} do not affect the application`, async (t) => {
    const provider = brokenProvider(broken)
    const { origin } = await upstream(t)
    const logger = tellingLogger()
    const { app } = await tracedApp(t, {
      listen: false,
      fastify: { loggerInstance: logger },
      trace: {
        spanProcessors: undefined,
        tracerProvider: provider,
        spans: { handler: true, hooks: ['preHandler'] },
        attributes: () => ({ a: 1 }),
        spanName: () => 'named',
        headers: { response: ['x-one'] },
        trustIncoming: false,
        metrics: true
      },
      routes: (app) => {
        app.addHook('preHandler', async () => {})
        app.get('/fine', async (request, reply) => {
          reply.header('x-one', '1')
          const rows = await pg.query('SELECT 1')
          const redisAnswer = await redis.tracePromise(async () => 'OK', { command: 'GET', args: ['GET', 'k'] })
          await kafka.tracePromise(async () => {}, { options: Object.freeze({ messages: Object.freeze([{ topic: 'orders' }]) }) })
          await pool.tracePromise(nextTurn, {})
          const got = await fetch(origin).then((answer) => answer.json())
          const worked = await request.trace.withSpan('work', () => 'worked')
          await new Promise((resolve, reject) => http.get(origin, (answer) => answer.resume().on('end', resolve)).on('error', reject))
          return { rows, redisAnswer, traceparent: got.traceparent, worked }
        })
        app.get('/failed', async (request) => {
          request.trace.fail(new Error('reported'))
          await redis.tracePromise(async () => { throw new Error('redis') }, { command: 'GET', args: ['GET', 'k'] }).catch(() => {})
          await fetch('http://127.0.0.1:1').catch(() => {})
          throw new Error('on purpose')
        })
      }
    })
    const fine = await app.inject({ path: '/fine', headers: { traceparent: `00-${'b'.repeat(32)}-${'c'.repeat(16)}-01` } })
    t.equal(fine.statusCode, 200)
    t.match(fine.json(), { rows: { rows: [1] }, redisAnswer: 'OK', traceparent: /^00-a{32}-/, worked: 'worked' })
    t.match((await app.inject('/failed')).json(), { statusCode: 500, message: 'on purpose' })
    if (!without('jobs')) t.match(await lightTrace.run({}, () => 'done'), 'done')
    await app.lightTrace.flush()

    const strangers = provider.calls.map(({ caller }) => caller).filter((caller) => !/#call/.test(caller))
    t.same(strangers, [], 'every call of a span goes through the guard')
    if (!broken.includes('isRecording')) {
      const ended = provider.calls.filter(({ method }) => method === 'end').map(({ name }) => name)
      const ofFeatures = [
        ...(without('stages') ? [] : ['handler', 'preHandler']), ...(without('trace-client') ? [] : ['SELECT']), ...(without('jobs') ? [] : ['process']),
        ...(without('libraries') ? [] : ['send orders', 'wait for connection'])
      ]
      for (const name of ['GET /fine', 'GET /failed', 'GET', 'work', ...ofFeatures]) {
        t.ok(ended.includes(name), `${name} is ended`)
      }
    }
    const said = logger.logged.filter(([code]) => code === 'LT_WARN_PROVIDER')
    const used = new Set(provider.calls.map(({ method }) => method).filter((method) => broken.includes(method)))
    t.equal(said.length, used.size, 'the loss is logged once for each method')
    t.notOk(logger.logged.some(([code]) => code === 'LT_WARN_BUG' || code === 'LT_WARN_CALLBACK'), 'and not as a bug of ours')
  })
}

test('no file of ours calls the application\'s span directly', async (t) => {
  const files = readdirSync(LIB, { recursive: true }).filter((file) => file.endsWith('.js'))
  t.ok(files.length > 50)
  t.same(files.filter((file) => /\b(?:apiSpan|sdkSpan|context\.span)\.(?!traceId\b|spanId\b)\w/.test(readFileSync(path.join(LIB, file), 'utf8'))), [])
})

test('a provider whose spans fail does not end the process in blockedLoop\'s timer', { skip: without('blocked-loop') }, async (t) => {
  const provider = brokenProvider(['addEvent'])
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { spanProcessors: undefined, tracerProvider: provider, blockedLoop: { afterMs: 20 } },
    routes: (app) => app.get('/', async () => {
      for (let turn = 0; turn < 100 && !provider.calls.some(({ method }) => method === 'addEvent'); turn++) {
        const until = performance.now() + 100
        while (performance.now() < until) JSON.stringify({ turn })
        await new Promise((resolve) => setImmediate(resolve))
      }
      return 'fine'
    })
  })
  t.equal((await app.inject('/')).body, 'fine')
  t.ok(provider.calls.some(({ method }) => method === 'addEvent'))
})
