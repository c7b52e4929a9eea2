'use strict'

// If no object of a hidden class is alive, V8 forgets the class and the code that it has compiled for it. Only V8 itself can compare hidden
// classes.

const v8 = require('node:v8')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { RequestContext } = require('../../lib/context/request-context')

v8.setFlagsFromString('--allow-natives-syntax')
// eslint-disable-next-line no-new-func -- not JavaScript but for V8
const haveSameMap = new Function('a', 'b', 'return %HaveSameMap(a, b)')

test('one object of each kind in a request is kept, with the final hidden class', async (t) => {
  const seen = {}
  const { origin, collector } = await tracedApp(t, {
    routes: (app) => {
      app.get('/', async ({ trace }) => {
        seen.context = trace
        seen.server = trace.span
        trace.span.setAttribute('app.order.id', 'a-1')
        await trace.withSpan('step', (span) => { seen.child = span })
        return 'ok'
      })
    }
  })
  for (let i = 0; i < 20; i++) await (await fetch(origin)).text() // until V8 knows the size of the objects
  await collector.spans()
  const [server, child] = seen.context.tracer.ownStarter.retained
  t.ok(haveSameMap(seen.server, server), 'ServerSpan')
  t.ok(haveSameMap(seen.child, child), 'ChildSpan')
  t.ok(haveSameMap(seen.context, RequestContext.retained), 'RequestContext')
})
