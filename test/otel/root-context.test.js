'use strict'

// Outside of any context, the active context is the API's ROOT_CONTEXT object, since users compare with it.

const { test } = require('tap')
const Fastify = require('fastify')
const { runInChild } = require('../support/child')
const lightTrace = require('../..')

for (const [when, isEarly] of [['before', true], ['after', false]]) {
  test(`with the API loaded ${when} light-trace is registered`, async (t) => {
    const child = runInChild(t, async ({ Fastify, lightTrace, say }, isEarly) => {
      if (isEarly) require('@opentelemetry/api')
      const app = Fastify()
      await app.register(lightTrace, { exporter: 'none' })
      const { context, ROOT_CONTEXT, trace } = require('@opentelemetry/api')
      const isRoot = () => context.active() === ROOT_CONTEXT
      app.get('/', async () => isRoot())
      await app.ready()
      say({
        outside: isRoot(),
        inTimer: await new Promise((resolve) => setTimeout(() => resolve(isRoot()), 1)),
        inRequest: (await app.inject('/')).payload,
        after: isRoot(),
        underRoot: context.with(ROOT_CONTEXT, isRoot),
        underNothing: context.with(undefined, isRoot),
        underAnother: context.with(ROOT_CONTEXT.setValue(Symbol('a'), 1), isRoot),
        isChild: await trace.getTracer('x').startActiveSpan('a', async (span) => {
          const child = trace.getTracer('x').startSpan('b', {}, context.active())
          return child.spanContext().traceId === span.spanContext().traceId
        }),
        isApart: trace.getTracer('x').startSpan('c', {}, ROOT_CONTEXT).spanContext().traceId !== '0'.repeat(32)
      })
      await app.close()
      say({ closed: isRoot() })
    }, { args: [isEarly] })
    const { said, stderr } = await child.exit
    t.equal(stderr, '')
    t.same(said, [
      { outside: true, inTimer: true, inRequest: 'false', after: true, underRoot: true, underNothing: true, underAnother: false, isChild: true, isApart: true },
      { closed: true }
    ])
  })
}

test('every hook of light-trace has a name that identifies its owner', async (t) => {
  const names = []
  const app = Fastify()
  t.teardown(() => app.close())
  const { addHook } = app
  app.addHook = function (name, fn) {
    names.push(`${name} ${fn.name}`)
    return addHook.call(this, name, fn)
  }
  await app.register(lightTrace, { exporter: 'none', registerGlobals: false, spans: { handler: true, hooks: ['preHandler', 'onSend', 'onError'] }, logs: true })
  t.same(names.filter((name) => !/ lightTrace[A-Z]/.test(name)), [])
  t.ok(names.length >= 4) // onClose is added when the application is created. The hooks of stages and handlers are added to a route on its first request
})
