'use strict'

// light-trace keeps only memory alive that bare Fastify keeps alive, too.

const { test, setTimeout } = require('tap')
const { without } = require('../support/features')
const { runInChild } = require('../support/child')
const { startSink } = require('../support/otlp-sink')

const nodeArgs = ['--expose-gc']
setTimeout(240_000)

// M06
test('an idle keep-alive connection keeps neither its last request nor its response', async (t) => {
  const sink = await startSink(t)
  const child = runInChild(t, async ({ Fastify, lightTrace, say }, url) => {
    const http = require('node:http')
    const aliveOf = async (isTraced) => {
      const app = Fastify()
      if (isTraced) await app.register(lightTrace, { exporter: { url }, registerGlobals: false })
      const watched = []
      app.decorateRequest('session', null)
      app.get('/', async (request, reply) => {
        request.session = { user: 'x'.repeat(100_000) }
        watched.push(new WeakRef(request), new WeakRef(request.raw), new WeakRef(reply.raw), new WeakRef(request.session))
        return 'ok'
      })
      await app.listen({ port: 0, host: '127.0.0.1' })
      const agents = Array.from({ length: 20 }, () => new http.Agent({ keepAlive: true }))
      for (let round = 0; round < 3; round++) {
        await Promise.all(agents.map((agent) => new Promise((resolve, reject) => {
          http.get({ port: app.server.address().port, agent }, (res) => res.resume().on('end', resolve)).on('error', reject)
        })))
      }
      for (let i = 0; i < 10; i++) {
        await new Promise((resolve) => setImmediate(resolve)) // a dereferenced WeakRef keeps its target until the end of the turn
        global.gc()
      }
      const alive = watched.filter((ref) => ref.deref() !== undefined).length
      for (const agent of agents) agent.destroy()
      await app.close()
      return alive
    }
    say({ bare: await aliveOf(false), traced: await aliveOf(true) })
  }, { args: [sink.url], nodeArgs })
  const { bare, traced } = (await child.exit).said[0]
  t.ok(traced <= bare, `${traced} objects are alive, ${bare} without light-trace`)
})

test('the console keeps nothing of requests that are recorded and not printed', { skip: without('console') }, async (t) => {
  const child = runInChild(t, async ({ Fastify, lightTrace, say, root }) => {
    const { bytesInUse } = require(`${root}/test/support/bytes-in-use`)
    const recorder = { shouldSample: () => ({ decision: 1 }), toString: () => 'recorder' }
    for (const options of [{ sampler: 'always_off', keep: { errors: true } }, { sampler: recorder }]) {
      const app = Fastify()
      await app.register(lightTrace, { exporter: 'console', registerGlobals: false, ...options })
      app.get('/', async (request) => { request.trace.withSpan('child', () => {}); return 'ok' })
      // Takes the lowest of several measurements. A leak would show in all of them, but memory that V8 needs at first would not.
      const growth = []
      for (let stretch = 0; stretch < 4; stretch++) {
        const before = await bytesInUse()
        for (let i = 0; i < 800; i++) await app.inject('/')
        growth.push((await bytesInUse() - before) / 800)
      }
      say(Math.min(...growth))
      await app.close()
    }
  }, { killAfterMs: 60_000 })
  for (const bytes of (await child.exit).said) t.ok(bytes < 200, `${bytes} bytes a request`)
})

for (const kind of ['none', 'console', 'delivers', 'is away', 'processors']) {
  test(`an app that is never closed is garbage-collected (exporter: ${kind})`, { skip: kind === 'console' && without('console') }, async (t) => {
    const sink = await startSink(t)
    const child = runInChild(t, async ({ Fastify, lightTrace, say }, kind, url) => {
      const trace = {
        none: { exporter: 'none' },
        console: { exporter: 'console' },
        delivers: { exporter: { url }, buffer: { flushDelayMs: 1 } },
        'is away': { exporter: { url: 'http://127.0.0.1:1/v1/traces' }, buffer: { flushDelayMs: 1 } },
        processors: { spanProcessors: [{ onStart () {}, onEnd () {}, forceFlush: async () => {}, shutdown: async () => {} }] }
      }[kind]
      process.stdout.write = () => true // silences the console exporter
      const refs = []
      async function use (isTraced) {
        const app = Fastify()
        // Closes over the app, as users' functions do.
        if (isTraced) await app.register(lightTrace, { ...trace, attributes: () => ({ routes: app.printRoutes().length }) })
        app.get('/', async () => 'ok')
        for (let i = 0; i < 5; i++) await app.inject('/')
        refs.push(new WeakRef(app))
      }
      // Repeats while the number falls. A delivery takes several turns, and a dereferenced WeakRef keeps its target until the end of the
      // turn.
      const alive = async () => {
        let left = refs.splice(0)
        for (let i = 0; left.length > 0 && i < 100; i++) {
          await new Promise((resolve) => setImmediate(resolve))
          global.gc()
          left = left.filter((ref) => ref.deref() !== undefined)
        }
        return left.length
      }
      for (let i = 0; i < 10; i++) await use(false)
      const bare = await alive()
      for (let i = 0; i < 10; i++) await use(true)
      say({ bare, traced: await alive() })
      // The global API registration goes with the last app.
      const { trace: api } = require('@opentelemetry/api')
      say({ isRecording: api.getTracer('x').startSpan('a').isRecording() })
      process.exit()
    }, { args: [kind, sink.url], nodeArgs, killAfterMs: 60_000 })
    const { said, stderr } = await child.exit
    t.equal(stderr.replace(/.*LT_WARN_LOSS.*\n?|\(Use `node --trace.*\n?/g, ''), '')
    const [{ bare, traced }, { isRecording }] = said
    // The last one may still be on the stack.
    t.ok(traced <= Math.max(bare, 1), `${traced} of 10 are alive, ${bare} without light-trace`)
    if (traced === 0) t.equal(isRecording, false)
  })
}

test('an app in use stays traced, however often garbage is collected', async (t) => {
  const sink = await startSink(t)
  const child = runInChild(t, async ({ Fastify, lightTrace, say }, url) => {
    const app = Fastify()
    await app.register(lightTrace, { exporter: { url }, buffer: { flushDelayMs: 1 } })
    app.get('/', async () => 'ok')
    const address = await app.listen({ port: 0, host: '127.0.0.1' })
    const { trace } = require('@opentelemetry/api')
    for (let i = 0; i < 5; i++) {
      global.gc()
      await (await fetch(address)).text()
      say(trace.getTracer('x').startSpan('own').isRecording())
    }
    await app.close()
  }, { args: [sink.url], nodeArgs })
  t.same((await child.exit).said, [true, true, true, true, true])
})

test('spans of onResponse share a timer', { skip: without('stages') }, async (t) => {
  const child = runInChild(t, async ({ Fastify, lightTrace, say }) => {
    const app = Fastify()
    await app.register(lightTrace, { exporter: 'none', registerGlobals: false, spans: { hooks: ['onResponse'] } })
    app.addHook('onResponse', async () => {})
    app.get('/', async () => 'ok')
    await app.inject('/')
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    for (let i = 0; i < 100; i++) await app.inject('/')
    say(timers() - before)
    await app.close()
  })
  t.ok((await child.exit).said[0] <= 1)
})
