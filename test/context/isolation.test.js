'use strict'

// Many concurrent requests on few connections, with random delays and clients that disconnect. No request ever reads the context of
// another. The randomness is seeded, so that a failure is reproducible.

const { AsyncLocalStorage } = require('node:async_hooks')
const { test } = require('tap')
const lightTrace = require('../..')
const { tracedApp } = require('../support/traced-app')
const { connect, signal } = require('../support/raw-client')
const { randomFrom } = require('../support/random')

const CONNECTIONS = 20
const REQUESTS = 10 // per connection

for (const seed of [1, 2]) {
  // F13
  test(`200 concurrent requests never read each other's context (seed ${seed})`, async (t) => {
    const random = randomFrom(seed)
    const wrong = []
    const late = []
    let handled = 0
    const { collector, port, app } = await tracedApp(t, {
      fastify: {
        logger: { level: 'silent' },
        genReqId: (raw) => { before('genReqId', wrong); return raw.headers.n }
      },
      before (app) {
        app.setChildLoggerFactory((logger, bindings, options) => { before('childLoggerFactory', wrong); return logger.child(bindings, options) })
        app.addHook('onRequest', async () => before('earlier hook', wrong))
      },
      routes (app) {
        for (const hook of ['onRequest', 'preParsing', 'preValidation', 'preHandler', 'onSend', 'onResponse']) {
          app.addHook(hook, async (request) => {
            if (hook === 'onRequest') request.trace.set('n', request.id)
            check(hook, request, wrong)
            await pause(random)
            check(`${hook}, later`, request, wrong)
          })
        }
        app.route({
          method: ['GET', 'POST'],
          url: '/:n',
          async handler (request) {
            handled++
            check('handler', request, wrong)
            await Promise.all([1, 2, 3].map(async () => {
              await pause(random)
              check('parallel work', request, wrong)
            }))
            late.push(new Promise((resolve) => setTimeout(resolve, 5)).then(() => check('late work', request, wrong)))
            return `<${request.id}>`
          }
        })
      }
    })

    await Promise.all(Array.from({ length: CONNECTIONS }, async (_, c) => {
      const client = await connect(port)
      const leavesAfter = c % 5 === 0 ? Math.floor(random() * REQUESTS) : REQUESTS
      for (let r = 0; r < REQUESTS; r++) {
        const n = `${c}-${r}`
        if (random() < 0.3) client.request('POST', `/${n}`, { body: '{}', headers: { n, 'content-type': 'application/json' } })
        else client.request('GET', `/${n}`, { headers: { n } })
        if (r >= leavesAfter) {
          await pause(random)
          break
        }
        if (random() < 0.5) await client.until(`<${n}>`) // else the next request is pipelined
      }
      if (leavesAfter === REQUESTS) await client.until(`<${c}-${REQUESTS - 1}>`)
      await client.leave()
    }))

    const spans = await collector.spans()
    await Promise.all(late)
    t.same(wrong, [])
    t.ok(handled >= 160)
    t.ok(spans.length >= handled)
    t.equal(new Set(spans.map(({ spanId }) => spanId)).size, spans.length)
    t.equal(new Set(spans.map(({ traceId }) => traceId)).size, spans.length, 'no request became a child of another')
    const { started, ended } = app.lightTrace.stats().spans
    t.equal(started, ended)
  })
}

function before (place, wrong) {
  if (lightTrace.current() !== undefined) wrong.push(`${place} sees ${lightTrace.current().get('n')}`)
}

function check (place, request, wrong) {
  const current = lightTrace.current()
  if (current !== request.trace || current.get('n') !== request.id) wrong.push(`${place} of ${request.id} sees ${current?.get('n')}`)
}

function pause (random) {
  const kind = random()
  if (kind < 0.3) return undefined
  if (kind < 0.6) return new Promise((resolve) => setImmediate(resolve))
  return new Promise((resolve) => setTimeout(resolve, random() * 4))
}

for (const [what, trace] of [['recorded', {}], ['not sampled', { sampler: 'always_off' }]]) {
  test(`a listener for the end of a pipelined response runs in its own request's context, ${what}`, async (t) => {
    const seen = []
    const appWide = new AsyncLocalStorage()
    const say = (who, n) => seen.push([who, n, lightTrace.current()?.get('n'), appWide.getStore()])
    const first = signal()
    const mixin = () => ({ n: lightTrace.current()?.get('n') })
    const lines = []
    await appWide.run('app', async () => {
      const { port } = await tracedApp(t, {
        trace,
        fastify: { logger: { mixin, stream: { write: (line) => { lines.push(JSON.parse(line)) } } } },
        routes (app) {
          app.get('/quiet/:n', { logLevel: 'silent' }, answer)
          app.get('/:n', { onResponse: async (request) => say('onResponse', request.params.n) }, answer)
          async function answer (request, reply) {
            const { n } = request.params
            request.trace.set('n', n)
            for (const event of ['finish', 'close']) reply.raw.on(event, () => say(event, n))
            request.raw.on('close', () => say('close of the request', n))
            if (n === '1') await first.promise
            if (n === '6') first.give()
            return `<${n}>`
          }
        }
      })
      const client = await connect(port)
      for (const path of ['/1', '/2', '/quiet/3', '/4', '/quiet/5', '/6']) client.request('GET', path)
      await client.until('<6>')
      await client.leave()
    })
    t.same(seen.filter(([, n, own, store]) => own !== n || store !== 'app'), [])
    t.equal(seen.length, 6 * 3 + 4)
    t.same(lines.filter(({ msg }) => msg === 'request completed').map(({ n }) => n), ['1', '2', '4', '6'])
  })
}
