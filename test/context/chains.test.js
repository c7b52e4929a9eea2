'use strict'

// A step that schedules the next one (a poller, a retry, a consumer) does not keep the previous steps alive.

const { test, setTimeout } = require('tap')
const { runInChild } = require('../support/child')
const { without } = require('../support/features')

setTimeout(120_000)

const BYTES_MAX = 8 // per round. V8's count varies by one byte, and by half a megabyte in total if requests are injected

test('a span or value that the next step replaces is not kept alive', async (t) => {
  const child = runInChild(t, async ({ Fastify, lightTrace, say, root }, hasJobs) => {
    const { bytesInUse } = require(`${root}/test/support/bytes-in-use`)
    const { context, createContextKey, propagation, trace } = require('@opentelemetry/api')
    const KEY = createContextKey('cursor')
    const tracer = trace.getTracer('steps')
    let count = 0

    const steps = {
      withSpan: (next) => lightTrace.current().withSpan('step', next),
      startActiveSpan: (next) => tracer.startActiveSpan('step', (span) => {
        next()
        span.end()
      }),
      'a span that is linked to the last one': (next) => {
        const last = trace.getActiveSpan()
        tracer.startActiveSpan('step', { root: true, links: last === undefined ? [] : [{ context: last.spanContext() }] }, (span) => {
          next()
          span.end()
        })
      },
      setValue: (next) => context.with(context.active().setValue(KEY, { count: ++count }), next),
      'span and baggage in turn': (next) => tracer.startActiveSpan('step', (span) => {
        const baggage = propagation.createBaggage({ count: { value: String(++count) } })
        context.with(propagation.setBaggage(context.active(), baggage), next)
        span.end()
      }),
      'a key of each step that it deletes': (next) => {
        const own = Symbol('own')
        context.with(context.active().setValue(own, {}).deleteValue(own), next)
      }
    }

    /** The bytes that each of 50,000 rounds keeps alive, measured in the last one, whose context derives from all others. */
    const keptBy = (step) => new Promise((resolve) => {
      let round = 0
      let before
      const next = () => {
        if (++round === 10_000) measure((bytes) => { before = bytes })
        else if (round === 50_000) measure((bytes) => resolve((bytes - before) / 40_000))
        else setImmediate(step, next)
      }
      // The steps are synchronous, and so is `next`.
      const measure = async (take) => {
        take(await bytesInUse())
        if (round < 50_000) setImmediate(step, next)
      }
      next()
    })

    const app = Fastify()
    await app.register(lightTrace, { exporter: 'none' })
    let start
    app.get('/', async () => { start() })
    await app.ready()
    const around = {
      'after a request': (fn) => new Promise((resolve) => {
        start = () => resolve(fn())
        app.inject('/')
      }),
      ...(hasJobs && { 'in a job': (fn) => lightTrace.run({}, fn) }),
      'without either': (fn) => fn()
    }
    for (const [name, step] of Object.entries(steps)) {
      for (const [place, run] of Object.entries(around)) {
        if (name === 'withSpan' && place === 'without either') continue // without a request there is no request.trace
        say({ name, place, bytes: await run(() => keptBy(step)) })
      }
    }
    await app.close()
  }, { args: [!without('jobs')], killAfterMs: 100_000 })
  const { said, stderr } = await child.exit
  t.equal(stderr, '')
  t.equal(said.length, without('jobs') ? 11 : 17)
  for (const { name, place, bytes } of said) t.ok(bytes < BYTES_MAX, `${name}, ${place}: ${bytes} bytes a round`)
})

test('an injected request keeps nothing of its caller alive, with another context manager registered', { skip: without('sdk') }, async (t) => {
  const child = runInChild(t, async ({ Fastify, lightTrace, say, root }) => {
    const { bytesInUse } = require(`${root}/test/support/bytes-in-use`)
    const { AsyncLocalStorage } = require('node:async_hooks')
    const { context, ROOT_CONTEXT, createContextKey } = require('@opentelemetry/api')
    const storage = new AsyncLocalStorage()
    context.setGlobalContextManager({
      active: () => storage.getStore() ?? ROOT_CONTEXT,
      with: (active, fn, self, ...args) => storage.run(active, () => fn.apply(self, args)),
      bind: (_active, target) => target,
      enable () { return this },
      disable () { return this }
    })
    const KEY = createContextKey('cursor')
    const app = Fastify()
    await app.register(lightTrace, { exporter: 'none' })
    let round = 0
    let before
    app.get('/', async (request) => {
      if (round === 2_000) before = await bytesInUse()
      if (round++ === 8_000) {
        say({ bytes: (await bytesInUse() - before) / 6_000, before: context.active().getValue(KEY) })
        await app.close()
        process.exit()
      }
      request.trace.withSpan('step', () => {
        context.with(context.active().setValue(KEY, round), () => { setImmediate(() => { app.inject('/') }) })
      })
    })
    app.inject('/')
  }, { killAfterMs: 100_000 })
  const { said: [said], stderr } = await child.exit
  t.equal(stderr, '')
  t.ok(said.bytes < 200, `${said.bytes} bytes a request`)
  t.equal(said.before, 8_000, 'and it has the inherited values')
})
