'use strict'

// When `close` settles, everything that an application creates in its own onClose hooks has been delivered, whichever of them was
// registered first.

const { test } = require('tap')
const fp = require('fastify-plugin')
const Fastify = require('fastify')
const lightTrace = require('..')
const { isAccounted } = require('./support/logging-app')
const { startMetricSink } = require('./support/metric-sink')
const { runInChild } = require('./support/child')
const { without } = require('./support/features')

const names = (sink) => sink.requests.flatMap(({ spans = [] }) => spans).map(({ name }) => name).sort()
const bodies = (sink) => sink.records.map(({ body }) => body).sort()

/** An onClose hook that waits, and then creates a span and a line. */
function saying (name, app) {
  return async () => {
    await new Promise((resolve) => setImmediate(resolve))
    app.lightTrace.tracer.startSpan(name).end()
    app.log.info(name)
  }
}

/** An application that is traced to `url`, or to its own collector, and is set up by `register(app, plugin, options)`. */
async function appOf (t, register, { url, trace } = {}) {
  const sink = await startMetricSink(t)
  const lines = []
  const app = Fastify({ logger: { stream: { write: (line) => lines.push(JSON.parse(line)) } } })
  t.teardown(() => app.close())
  await register(app, lightTrace, { exporter: { url: url ?? sink.url }, registerGlobals: false, logs: { export: true }, closeTimeoutMs: 500, ...trace })
  await app.ready()
  return { app, sink, lines }
}

const FORMS = {
  'without await' (app, plugin, options) {
    app.register(plugin, options)
    app.addHook('onClose', saying('one', app))
    app.addHook('onClose', saying('two', app))
  },
  async 'with await' (app, plugin, options) {
    await app.register(plugin, options)
    app.addHook('onClose', saying('one', app))
    app.addHook('onClose', saying('two', app))
  },
  async 'after the hooks' (app, plugin, options) {
    app.addHook('onClose', saying('one', app))
    app.addHook('onClose', saying('two', app))
    await app.register(plugin, options)
  },
  'in a child plugin' (app, plugin, options) {
    app.register(async (child) => {
      child.register(plugin, options)
      child.addHook('onClose', saying('one', child))
    })
    app.register(async () => { app.addHook('onClose', async () => app.log.info('two')) })
  },
  'in a plugin that breaks encapsulation' (app, plugin, options) {
    app.register(fp(async (instance) => { instance.register(plugin, options) }))
    app.addHook('onClose', (instance, done) => saying('one', app)().then(() => done(), done))
    app.addHook('onClose', saying('two', app))
  }
}

for (const [form, register] of Object.entries(FORMS)) {
  test(`registered ${form}, close delivers the spans and lines of two onClose hooks before it settles`, { skip: without('logs') || without('metrics') }, async (t) => {
    const { app, sink, lines } = await appOf(t, register)
    await app.close()
    t.same(names(sink), form === 'in a child plugin' ? ['one'] : ['one', 'two'])
    t.same(bodies(sink), ['one', 'two'])
    t.same(lines.map(({ msg }) => msg).sort(), ['one', 'two'], 'nothing is logged')
  })
}

test('close delivers them with a callback of each kind, with `await using`, and when called twice', { skip: without('logs') || without('metrics') }, async (t) => {
  const kinds = {
    none: (app, resolve) => app.close(() => resolve()),
    error: (app, resolve) => app.close((error) => resolve(error)),
    done: (app, resolve) => app.close((error, done) => { done(); resolve(error) }),
    instance: (app, resolve) => app.close((error, instance, done) => { done(); resolve(error ?? (instance === app ? undefined : new Error('another instance'))) }),
    async: (app, resolve) => app.close(async (error) => resolve(error)),
    disposed: (app, resolve) => app[Symbol.asyncDispose]().then(resolve, resolve),
    twice: (app, resolve) => Promise.all([app.close(), app.close()]).then(() => resolve(), resolve)
  }
  for (const [kind, close] of Object.entries(kinds)) {
    if (kind === 'disposed' && typeof Symbol.asyncDispose !== 'symbol') continue
    const { app, sink } = await appOf(t, FORMS['without await'])
    t.notOk(await new Promise((resolve) => close(app, resolve)), kind)
    t.same([names(sink), bodies(sink)], [['one', 'two'], ['one', 'two']], kind)
  }
})

test('close fails with the error of an onClose hook, as without light-trace, and loses nothing', async (t) => {
  for (const close of [(app) => app.close(), (app) => new Promise((resolve, reject) => app.close((error) => error ? reject(error) : resolve()))]) {
    const { app, sink } = await appOf(t, (app, plugin, options) => {
      app.register(plugin, options)
      app.addHook('onClose', saying('one', app))
      app.addHook('onClose', async () => { throw new Error('not closed') })
    })
    await t.rejects(close(app), { message: 'not closed' })
    t.same(names(sink), ['one'])
  }
  const { app } = await appOf(t, FORMS['with await'])
  t.throws(() => app.close('soon'), { code: 'AVV_ERR_CALLBACK_NOT_FN' })
})

test('loaded after the application was created, light-trace closes after the hooks that are added later', async (t) => {
  const sink = await startMetricSink(t)
  const { said } = await runInChild(t, async ({ Fastify, root, say }, url) => {
    const app = Fastify()
    app.addHook('onClose', async () => app.lightTrace.tracer.startSpan('too late').end())
    await app.register(require(root), { exporter: { url }, registerGlobals: false })
    app.addHook('onClose', async () => app.lightTrace.tracer.startSpan('last').end())
    await app.close()
    say({ ...app.lightTrace.stats().spans.dropped })
  }, { args: [sink.url] }).exit
  t.same(said, [{ after_shutdown: 1 }])
  t.same(names(sink), ['last'])
})

test('without a collector, or with one that hangs, close settles in time and counts what the hooks created', { skip: without('logs') || without('metrics') }, async (t) => {
  const dead = await startMetricSink(t)
  await dead.down()
  dead.down = async () => {}
  const hanging = await startMetricSink(t)
  hanging.answer = () => ({ hang: true })
  for (const [what, url] of [['dead', dead.url], ['hanging', hanging.url]]) {
    const { app } = await appOf(t, FORMS['without await'], { url, trace: { closeTimeoutMs: 100 } })
    await app.close()
    const { spans, logs } = app.lightTrace.stats()
    t.same({ ...spans.dropped }, { shutdown_deadline: 2 }, what)
    t.same({ ...logs.records.dropped }, { shutdown_deadline: 2 }, what)
  }
})

test('lines after the close are printed and counted as after_shutdown, and one warning is logged for each kind', { skip: without('logs') || without('metrics') }, async (t) => {
  const { app, sink, lines } = await appOf(t, FORMS['without await'])
  const late = app.lightTrace.tracer.startSpan('late')
  await app.close()
  late.end()
  app.log.info('bye')
  app.log.debug('not printed')
  app.log.info('bye again')
  const { spans, logs } = app.lightTrace.stats()
  t.same({ ...spans.dropped }, { after_shutdown: 1 })
  t.same({ ...logs.records.dropped }, { after_shutdown: 2 })
  t.ok(isAccounted(logs.records))
  t.same(lines.slice(2).map(({ code, msg }) => code ?? msg), ['LT_WARN_LOSS', 'bye', 'LT_WARN_LOSS', 'bye again'])
  t.match(lines[2].msg, /^a span ended after the application closed/)
  t.match(lines[4].msg, /^a log line came after the application closed/)
  t.same(bodies(sink), ['one', 'two'])
})

test('the process exits by itself', async (t) => {
  const { code, said } = await runInChild(t, async ({ Fastify, lightTrace, say }) => {
    const app = Fastify()
    app.register(lightTrace, { exporter: { url: 'http://127.0.0.1:9/v1/traces' }, registerGlobals: false })
    app.addHook('onClose', async () => app.lightTrace.tracer.startSpan('last').end())
    await app.listen({ port: 0 })
    await app.close()
    say({ ...app.lightTrace.stats().spans.dropped })
  }).exit
  t.equal(code, 0)
  t.same(said, [{ shutdown_deadline: 1 }])
})
