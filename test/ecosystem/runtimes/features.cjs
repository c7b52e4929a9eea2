'use strict'

// Tries each feature of light-trace separately in the current runtime. Prints a line of JSON, { name: true or an error }.

const assert = require('node:assert/strict')
const http = require('node:http')
const { PassThrough } = require('node:stream')
const { setTimeout: wait } = require('node:timers/promises')
const { metrics, trace } = require('@opentelemetry/api')
const fastify = require('fastify')
const lightTrace = require('light-trace')
const { createCollector } = require('light-trace/testing')
const undici = require('undici')

const { UPSTREAM, SINK } = process.env // a server that answers with the headers that it got, and a collector; both run in Node
const DEADLINE_MS = 10_000
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

const FEATURES = {
  'SERVER spans with route and status' () {
    return serve({}, ({ app }) => {
      app.get('/users/:id', async () => 'ok')
      app.get('/broken', async () => { throw new RangeError('no') })
    }, async ({ ask, spans }) => {
      await ask('/users/7')
      await ask('/broken')
      await ask('/none')
      assert.deepEqual((await spans(3)).map(({ name, attributes, status, events }) => [name, attributes['http.route'], attributes['http.response.status_code'], status.code, events.length]), [
        ['GET /users/:id', '/users/:id', 200, 'UNSET', 0], ['GET /broken', '/broken', 500, 'ERROR', 1], ['GET', undefined, 404, 'UNSET', 0]
      ])
    })
  },

  'the caller’s trace' () {
    return serve({}, ({ app }) => app.get('/', async () => 'ok'), async ({ ask, spans }) => {
      await ask('/', { headers: { traceparent: TRACEPARENT } })
      const [span] = await spans(1)
      assert.equal(`00-${span.traceId}-${span.parentSpanId}-01`, TRACEPARENT)
    })
  },

  '`lightTrace.current()`, `trace.getActiveSpan()`' () {
    return serve({}, ({ app }) => app.get('/:id', async (request) => {
      for (let i = 0; i < 3; i++) {
        await wait(Math.random() * 5)
        await new Promise((resolve) => setImmediate(resolve))
        assert.equal(lightTrace.current(), request.trace)
        assert.equal(trace.getActiveSpan().spanContext().spanId, request.trace.spanId)
      }
      return request.params.id
    }), async ({ ask }) => {
      const ids = Array.from({ length: 50 }, (_, id) => String(id))
      assert.deepEqual(await Promise.all(ids.map((id) => ask(`/${id}`))), ids)
      assert.equal(lightTrace.current(), undefined)
    })
  },

  'child spans' () {
    return serve({}, ({ app }) => app.get('/', (request) => request.trace.withSpan('outer', () => trace.getTracer('shop').startActiveSpan('inner', async (span) => { await wait(1); span.end(); return 'ok' }))),
      async ({ ask, collector }) => {
        await ask('/')
        assert.equal(await collector.tree(), 'SERVER GET /\n  INTERNAL outer\n    INTERNAL inner')
      })
  },

  'clients that disconnect' () {
    const body = new PassThrough()
    body.write('a')
    return serve({}, ({ app }) => app.get('/', (request, reply) => reply.send(body)), async ({ origin, spans }) => {
      await new Promise((resolve) => { const call = http.get(origin, (response) => response.once('data', () => { call.destroy(); resolve() })).on('error', () => {}) })
      const [{ status, attributes }] = await spans(1)
      assert.deepEqual([status.code, attributes['error.type']], ['ERROR', 'aborted'])
    })
  },

  'export and `app.close()`' () {
    return serve({ spanProcessors: undefined, exporter: { url: SINK } }, ({ app }) => app.get('/', async () => 'ok'), async ({ app, ask }) => {
      await ask('/')
      await app.close()
      const { spans } = app.lightTrace.stats()
      assert.deepEqual([spans.delivered, spans.dropped], [1, {}])
    })
  },

  'trace ids on log lines' () {
    const lines = []
    return serve({}, ({ app }) => app.get('/', async (request) => { request.log.info('hello'); return request.trace.traceId }), async ({ ask }) => {
      const traceId = await ask('/')
      assert.equal(lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'hello').trace_id, traceId)
    }, { logger: { stream: { write: (line) => lines.push(line) } } })
  },

  '`app.inject`' () {
    return serve({}, ({ app }) => app.get('/', async () => 'ok'), async ({ app, collector }) => {
      assert.equal((await app.inject('/')).body, 'ok')
      assert.equal(await collector.tree(), 'SERVER GET /')
    })
  },

  '`fetch`: CLIENT spans' () { return calls(fetchUpstream, (spans) => assert.ok(spans.some(({ kind }) => kind === 'CLIENT'))) },
  '`fetch`: trace headers' () { return calls(fetchUpstream, ([server], headers) => assert.equal(headers.traceparent?.split('-')[1], server.traceId)) },
  '`node:http`: CLIENT spans' () { return calls(getUpstream, (spans) => assert.ok(spans.some(({ kind }) => kind === 'CLIENT'))) },
  '`node:http`: trace headers' () { return calls(getUpstream, ([server], headers) => assert.equal(headers.traceparent?.split('-')[1], server.traceId)) },

  '`fetch` of npm’s `undici`: spans and headers' () {
    return calls(async () => (await undici.fetch(UPSTREAM)).json(), ([server, call], headers) => assert.deepEqual([call?.kind, headers.traceparent?.slice(3, 52)], ['CLIENT', `${server.traceId}-${call?.spanId}`]))
  },

  '`request.trace.inject()`' () {
    return calls(async (request) => (await fetch(UPSTREAM, { headers: request.trace.inject() })).json(), ([server], headers) => assert.equal(headers.traceparent.split('-')[1], server.traceId))
  },

  'metrics' () {
    return serve({ metrics: true }, ({ app }) => app.get('/', async () => { metrics.getMeter('shop').createCounter('orders').add(1); return 'ok' }), async ({ ask, collector }) => {
      await ask('/')
      const found = await collector.metrics()
      assert.equal(found.find(({ name }) => name === 'http.server.request.duration').points[0].count, 1)
      assert.equal(found.find(({ name }) => name === 'orders').points[0].value, 1)
    })
  },

  'runtime metrics' () {
    return serve({ metrics: { runtime: true } }, ({ app }) => app.get('/', async () => 'ok'), async ({ ask, collector }) => {
      await ask('/')
      const names = (await collector.metrics()).map(({ name }) => name)
      for (const name of ['nodejs.eventloop.utilization', 'v8js.memory.heap.used']) assert.ok(names.includes(name), name)
    })
  }
}

async function main () {
  const results = {}
  for (const [name, run] of Object.entries(FEATURES)) {
    results[name] = await Promise.race([run().then(() => true), wait(DEADLINE_MS, 'deadline', { ref: false })]).catch((error) => String(error.stack ?? error))
  }
  console.log(`RESULTS ${JSON.stringify(results)}`)
  process.exit(0)
}

/** Starts an app with light-trace and these routes, uses it, and closes it. */
async function serve (options, routes, use, fastifyOptions = {}) {
  const collector = createCollector({ timeoutMs: 2000 })
  const app = fastify({ forceCloseConnections: true, ...fastifyOptions })
  await app.register(lightTrace, { spanProcessors: [collector], ...options })
  routes({ app })
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  const ask = async (path, init) => (await fetch(origin + path, init)).text()
  const spans = async (count) => { const all = await collector.spans(); assert.equal(all.length, count, JSON.stringify(all.map(({ name }) => name))); return all }
  try {
    await use({ app, origin, ask, collector, spans })
  } finally {
    await app.close()
  }
}

function calls (call, check) {
  let headers
  return serve({}, ({ app }) => app.get('/', async (request) => { headers = await call(request); return 'ok' }), async ({ ask, collector }) => {
    await ask('/')
    check(await collector.spans(), headers)
  })
}

async function fetchUpstream () { return (await fetch(UPSTREAM)).json() }

function getUpstream () {
  return new Promise((resolve, reject) => {
    http.get(UPSTREAM, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece) => { text += piece }).on('end', () => resolve(JSON.parse(text)))
    }).on('error', reject)
  })
}

main()
